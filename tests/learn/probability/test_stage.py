from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.learn.probability.model import load, save
from memlab.learn.probability.stage import CrossFitProbability, LoadedProbability, fit_tables, labels
from memlab.stage import spec_digest
from memlab.store import Store
from memlab.tables import Tables
from tests.learn.probability.worlds import world

STORE = Store()


def estimated(tables: Tables, **options) -> pl.DataFrame:
    stage = CrossFitProbability(**{"depth": 12, **options})
    return stage.run(tables.only(stage.reads), STORE)["ranking"]


def test_each_unit_up_to_the_depth_has_a_probability() -> None:
    tables = world()
    ranking = estimated(tables)
    assert ranking.drop("probability").equals(tables["ranking"])
    assert ranking.filter(pl.col("rank") <= 12)["probability"].is_between(0, 1).all()
    assert ranking.filter(pl.col("rank") > 12)["probability"].null_count() == 80 * 3


def test_estimates_follow_the_chance_that_was_drawn_with() -> None:
    ranking = estimated(world(questions=400), depth=15).drop_nulls("probability")
    truth = 1 / (1 + np.exp(3 - 2 * ranking["score"].to_numpy()))
    assert np.abs(ranking["probability"].to_numpy() - truth).mean() < .05


def test_labels_are_known_turns_of_questions_that_count() -> None:
    tables = world(questions=6)
    tables = tables.updated({"gold": tables["gold"].with_columns(scored=pl.col("question") != 2)})
    rows = labels(tables["ranking"].select("question", "unit"), tables)
    held = set(rows.filter(pl.col("held") == 1).select("question", "unit").rows())
    expected = {(q, 15 * q + 5 * s + t) for q, s, t in tables["evidence"].rows() if q != 2}
    assert held == expected
    assert 2 not in rows["question"]
    whole = tables.updated({"evidence": tables["evidence"].with_columns(turn=pl.lit(None, pl.Int32))})
    assert set(labels(tables["ranking"].select("question", "unit"), whole).filter(pl.col("held") == 1)["unit"] // 5
               ) == {unit // 5 for _, unit in expected}


def test_a_questions_own_label_changes_neither_its_probability_nor_its_threshold() -> None:
    tables = world(questions=30)
    stage = CrossFitProbability(depth=12)
    before = stage.valued(tables, "share", 1).sort("question", "rank")
    for mine in tables["evidence"]["question"].unique().sort()[:2]:
        own = pl.col("question") == mine
        moved = tables["evidence"].with_columns(pl.when(own).then((pl.col("turn") + 1) % 5).otherwise("turn")
                                                .cast(pl.Int32).alias("turn"))
        after = stage.valued(tables.updated({"evidence": moved}), "share", 1).sort("question", "rank")
        columns = ["unit", "probability", "value", "shown_from"]
        assert after.filter(own).select(columns).equals(before.filter(own).select(columns))
        assert not after.equals(before)  # but it does change those of other folds


def test_questions_that_do_not_count_are_estimated_but_not_fitted_on() -> None:
    tables = world(questions=30)
    tables = tables.updated({"gold": tables["gold"].with_columns(scored=pl.col("question") > 5)})
    moved = tables["evidence"].with_columns(pl.when(pl.col("question") <= 5).then(0).otherwise("turn")
                                            .cast(pl.Int32).alias("turn"))
    assert estimated(tables).equals(estimated(tables.updated({"evidence": moved})))
    assert estimated(tables).filter(pl.col("rank") == 1)["probability"].null_count() == 0


def test_a_saved_fit_gives_the_same_estimates_wherever_it_lies(tmp_path: Path) -> None:
    tables = world(questions=40)
    model = fit_tables(tables, depth=12)
    save(model, tmp_path / "a.json")
    save(model, tmp_path / "b.json")
    assert load(tmp_path / "a.json") == model
    stage = LoadedProbability(path=str(tmp_path / "a.json"))
    assert not {"evidence", "gold", "ids"} & set(stage.reads)
    ranking = stage.run(tables.only(stage.reads), STORE)["ranking"]
    assert ranking["probability"].null_count() == 40 * 3
    assert spec_digest(stage) == spec_digest(LoadedProbability(path=tmp_path / "b.json"))
    shown = stage.valued(tables.only(stage.reads), "token", 1)
    assert shown.filter(pl.col("shown_from") <= 200)["tokens"].sum() / 40 == pytest.approx(200, rel=.1)


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda d: d.update(format="memlab-probability-0"), "made by another version"),
    (lambda d: d.pop("bias"), "Field required"),
    (lambda d: d.update(weights=d["weights"][1:]), "numbers each"),
    (lambda d: d.pop("prices"), "prices"),
    (lambda d: d["prices"].pop("share"), "prices of unit, token and share"),
    (lambda d: d["prices"]["unit"]["tokens"].reverse(), "must not fall"),
])
def test_a_damaged_fit_is_refused_when_the_stage_is_made(tmp_path: Path, spoil, message: str) -> None:
    path = tmp_path / "fit.json"
    save(fit_tables(world(questions=20), depth=12), path)
    damaged = json.loads(path.read_text())
    spoil(damaged)
    path.write_text(json.dumps(damaged))
    with pytest.raises(MemlabError, match=message):
        LoadedProbability(path=path)


def test_missing_truncated_unmeasured_and_unlabelled(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="No such file"):
        LoadedProbability(path=tmp_path / "none.json")
    (tmp_path / "cut.json").write_text('{"format": "memlab')
    with pytest.raises(MemlabError, match="is not a probability fit"):
        LoadedProbability(path=tmp_path / "cut.json")
    tables = world(questions=20)
    with pytest.raises(MemlabError, match="no ranked unit is evidence"):
        estimated(tables.updated({"evidence": tables["evidence"].head(0)}))
    with pytest.raises(MemlabError, match="no column 'tokens'"):
        estimated(tables.updated({"ranking": tables["ranking"].drop("tokens")}))
    assert estimated(tables.updated({"ranking": tables["ranking"].head(0)})).height == 0
    with pytest.raises(ValidationError):
        CrossFitProbability(folds=1)
