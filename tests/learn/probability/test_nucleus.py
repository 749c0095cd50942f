from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab.learn.probability.model import save
from memlab.learn.probability.nucleus import CalibratedTopP
from memlab.learn.probability.stage import CrossFitProbability, LoadedProbability, fit_tables
from memlab.store import Store
from tests.learn.probability.worlds import world

STORE = Store()


@pytest.mark.parametrize("p", [.3, .6, .9])
def test_the_shown_units_hold_the_share_of_expected_evidence(p) -> None:
    tables = world()
    rule = CalibratedTopP(probability=CrossFitProbability(depth=12), p=p)
    ranking = rule.run(tables.only(rule.reads), STORE)["ranking"].drop_nulls("probability")
    chance = pl.col("probability")
    rows = ranking.group_by("question").agg(
        chance.sum().alias("expected"), chance.filter("selected").sum().alias("held"),
        chance.filter("selected").min().alias("least"), chance.filter(~pl.col("selected")).max().alias("best_left_out"))
    assert rows.select((pl.col("held") >= p * pl.col("expected") - 1e-6).all()).item()
    assert rows.select((pl.col("held") - pl.col("least") < p * pl.col("expected") + 1e-6).all()).item()
    assert rows.select((pl.col("least") >= pl.col("best_left_out")).all()).item()


def test_a_saved_fit_needs_no_gold(tmp_path: Path) -> None:
    save(fit_tables(world(), depth=12), tmp_path / "fit.json")
    rule = CalibratedTopP(probability=LoadedProbability(path=tmp_path / "fit.json"))
    assert not {"gold", "evidence"} & set(rule.reads)
    other = world(seed=1)
    assert rule.run(other.only(rule.reads), STORE)["ranking"].filter("selected")["question"].n_unique() == 80
