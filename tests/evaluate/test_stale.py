"""Stale evidence, counted by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.evaluate.compare import ArmResult, compare
from memlab.evaluate.contrast import Contrast, measure
from memlab.evaluate.export import write_trec
from memlab.evaluate.stale import stale
from memlab.evaluate.statistics import ratio_parts
from memlab.evaluate.summary import averages, per_question
from memlab.pipeline.tables import Tables, frame
from memlab.report import sections
from tests.evaluate.conftest import DAY

U = "user"
WORLD = {0: [[U, U], [U, U], [U]]}  # units 0 1, 2 3, 4
EVIDENCE = {0: [(0, 0), (1, 0), (2, 0)], 1: [(2, 0), (1, 1)], 2: [(2, 0)], 3: [(2, 0)]}
OUTDATED = [(0, 0, 0), (0, 1, 0), (1, 0, 1), (2, 0, 0)]  # question 3 has none
RANKINGS = {0: [0, 4, 2], 1: [3, 1], 2: [0, 1], 3: [4]}


@pytest.fixture
def world(make_world) -> Tables:
    tables = make_world(WORLD, EVIDENCE, RANKINGS)
    days = tables["sessions"].with_columns(said_on=pl.Series([DAY + timedelta(n) for n in range(3)]))
    outdated = frame("outdated", dict(zip(("question", "session", "turn"), zip(*OUTDATED))))
    return tables.updated({"sessions": days, "outdated": outdated})


def test_figures_by_hand(world: Tables) -> None:
    metrics = stale(world, 50)
    # valid: turn 4; 4 and 3; 4. shown in the first ten: outdated 2, 1, 1 and valid 1, 1, 0
    assert metrics["stale/shown@10"].mean() == pytest.approx(4 / 6)
    assert metrics["stale/recall@10"].to_list() == [1, .5, 0, None]
    # a unit has 10 (number + 1) tokens, so within 50: 0; 3; 0 and 1
    assert metrics["stale/shown_within_50"].mean() == pytest.approx(2 / 3)
    assert metrics["stale/recall_within_50"].to_list() == [0, .5, 0, None]
    # the newest valid session is 2: behind an outdated turn; not ranked; not ranked
    assert metrics["stale/newest_first"].to_list() == [0, 0, 0, None]
    first = world.updated({"ranking": world["ranking"].with_columns(
        rank=pl.when(pl.col("unit") == 4).then(0).otherwise("rank").cast(pl.Int32))})
    assert stale(first, 50)["stale/newest_first"].to_list() == [1, 0, 0, None]


def test_pieces_are_sessions_where_no_turn_is_known_and_without_outdated_ones_there_is_no_figure(world: Tables) -> None:
    whole = {name: world[name].with_columns(turn=pl.lit(None, pl.Int32)).unique() for name in ("evidence", "outdated")}
    assert stale(world.updated(whole), 50)["stale/recall@10"].to_list() == [1, .5, 0, None]
    assert stale(world.updated({"outdated": world["outdated"].clear()}), 50).columns == ["question"]


def test_a_pooled_share_has_the_spread_of_a_ratio_and_no_figure_by_type(world: Tables, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shown = rng.poisson(4, (2000, 60)) + 1
    old = rng.binomial(shown, .3)
    spread = [ratio_parts(*pair).std(ddof=1) / 60 ** .5 for pair in zip(old.astype(float), shown.astype(float))]
    assert np.mean(spread) == pytest.approx((old.sum(1) / shown.sum(1)).std(), rel=.05)
    assert np.isnan(ratio_parts(np.zeros(2), np.zeros(2))).all()
    rows = per_question(world)
    assert not [name for name in averages(rows) if name.startswith("type=") and "stale/shown" in name]
    row = measure(Contrast("a", "b", "stale/shown@10", "less"), rows, rows, alpha=.05, seed=0)
    assert (row["difference"], row["wins"], row["losses"]) == (0, None, None)
    (table,) = sections.truth_table(compare("e", "d", {"a": ArmResult(rows)}, []))
    assert [table.head[1], table.rows[0][1][:8]] == ["outdated, of the evidence shown in top 10", "66.7 % ("]
    write_trec(world, tmp_path, name="a")
    qrels = (tmp_path / "qrels.stale.trec").read_text().splitlines()
    assert [len(qrels), qrels[0], qrels[2]] == [8, "0 0 0-0:1-1 -1", "0 0 0-2:1-1 1"]
