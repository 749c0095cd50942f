from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.learn.folds import folds
from memlab.learn.probability import stage
from memlab.learn.probability.choice import chosen_value, height
from memlab.learn.probability.model import save
from memlab.learn.probability.selection import Marginal
from memlab.learn.probability.stage import CrossFitProbability, LoadedProbability, fit_tables
from memlab.learn.probability.threshold import Value
from memlab.store import Store
from memlab.tables import Tables, frame
from tests.learn.probability.worlds import world

STORE = Store()
FITTED = CrossFitProbability(depth=12)


def selected(tables: Tables, **options) -> pl.DataFrame:
    rule = Marginal(probability=FITTED, **{"tokens": 100, **options})
    return rule.run(tables.only(rule.reads), STORE)["ranking"].sort("question", "rank")


def small(p: list[float], tokens: list[float], held: list[int]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Two units in each question, and evidence: the unit of each question whose place is in ``held``."""
    questions = len(held)
    q = np.repeat(np.arange(questions), 2)
    units = frame("units", {"unit": range(len(p)), "corpus": q, "session": np.tile([0, 1], questions),
                            "turns": [[0]] * len(p), "level": ["turn"] * len(p)})
    rows = pl.DataFrame({"question": q, "unit": range(len(p)), "rank": np.tile([1, 2], questions),
                         "tokens": tokens, "probability": p},
                        schema={"question": pl.Int32, "unit": pl.Int64, "rank": pl.Int32, "tokens": pl.Float64,
                                "probability": pl.Float64})
    return rows, units, frame("evidence", {"question": range(questions), "session": held, "turn": [0] * questions})


def test_height_by_hand() -> None:
    rows, units, evidence = small([.5] * 8, [10] * 8, [0, 1, 1, 1])
    shown = rows.with_columns(pl.Series("shown_from", [0, 400, 0, 200, 0, 30, 0, None]))
    # budgets 50 to 400: all of them, half of them (from 200 on: a third in logarithms), all, and none
    assert height(shown, units, evidence, 100) == pytest.approx((1 + 1 / 3 + 1 + 0) / 4)
    assert height(shown, units, evidence.head(0), 100) == 0


def test_tokens_count_where_evidence_is_short() -> None:
    p, tokens = [.5, .4, .5, .35], [10, 200, 10, 5]
    rows, units, evidence = small(p, tokens, [0, 1])  # the evidence beyond the first is short
    assert chosen_value(rows, units, evidence, 10, 1) == "token"
    assert chosen_value(rows, units, evidence.with_columns(session=1 - pl.col("session")), 200, 1) == "unit"


def test_the_simplest_of_equal_values_is_chosen() -> None:
    rows, units, evidence = small([.5, .1] * 3, [10, 10] * 3, [0, 0, 0])
    assert chosen_value(rows, units, evidence, 10, 1) == "unit"
    assert chosen_value(rows.head(0), units, evidence, 10, 1) == "unit"


def test_the_choice_for_a_fold_sees_the_other_folds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = world(questions=30)
    seen: list[set[int]] = []

    def record(rows: pl.DataFrame, *rest: Any) -> Value:
        seen.append(set(rows["question"]))
        return chosen_value(rows, *rest)

    monkeypatch.setattr(stage, "chosen_value", record)
    selected(tables, value="auto")
    fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], 5)
    assert seen == [set(fold_of.filter(pl.col("fold") != part)["question"]) for part in range(5)]


def test_each_fold_has_one_of_the_kinds() -> None:
    tables = world(questions=60)
    auto = selected(tables, value="auto").drop_nulls("value")
    kinds = [selected(tables, value=value).drop_nulls("value") for value in ("unit", "token", "share")]
    for mine in auto["question"].unique():
        assert any(auto.filter(question=mine)["value"].equals(kind.filter(question=mine)["value"]) for kind in kinds)


def test_a_saved_fit_has_nothing_to_choose_on(tmp_path) -> None:
    save(fit_tables(world(), depth=12), tmp_path / "fit.json")
    rule = Marginal(probability=LoadedProbability(path=tmp_path / "fit.json"), value="auto")
    tables = world(seed=1)
    with pytest.raises(MemlabError, match="no folds to choose the value on"):
        rule.run(tables.only(rule.reads), STORE)
