from __future__ import annotations

import polars as pl

from memlab.evaluate.evidence import selection, with_evidence
from memlab.evaluate.retrieval import holders, scored_evidence
from memlab.rank.select import Fixed
from memlab.read.pack import ByRank
from memlab.read.tokens import TokenCost
from memlab.store import Store
from tests.small import lexical, lives


def test_selected_sets_and_their_cost(make_world) -> None:
    # units 0,1 = session 0; 2,3 = session 1; each (unit + 1) * 10 tokens; the first two ranks are selected
    tables = make_world({0: [["user"] * 2, ["user"] * 2]}, {0: [(0, 0), (1, 1)], 1: [(0, 1)], 2: []},
                        {0: [0, 2, 3], 1: [3, 0], 2: [1, 0]})
    metrics = selection(tables)
    assert metrics["selected/session/recall_all"].to_list() == [1, 1, None]
    assert metrics["selected/turn/recall_any"].to_list() == [1, 0, None]
    assert metrics["selected/turn/recall"].to_list() == [.5, 0, None]
    assert metrics["selected/turn/recall_all"].to_list() == [0, 0, None]
    assert metrics["selected/k"].to_list() == [2, 2, 2]
    assert metrics["context/tokens"].to_list() == [10 + 30, 40 + 10, 20 + 10]
    assert metrics["context/evidence_share"].to_list() == [10 / 40, 0, None]


def test_what_the_packer_dropped_lowers_the_cost_not_the_recall(make_world) -> None:
    tables = make_world({0: [["user"] * 2, ["user"] * 2]}, {0: [(0, 0), (1, 1)]}, {0: [0, 3]})
    cut = selection(tables.updated({"context": tables["context"].filter(pl.col("unit") == 3)}))
    assert cut["context/tokens"].to_list() == [40]
    assert cut["context/evidence_share"].to_list() == [1]
    assert cut["selected/turn/recall_all"].to_list() == [1]


def test_nothing_selected_costs_nothing(make_world) -> None:
    metrics = selection(make_world({0: [["user"]]}, {0: [(0, 0)]}, {0: [0]}, selected=0))
    row = metrics.row(0, named=True)
    assert row["selected/k"] == 0
    assert row["context/tokens"] == 0
    assert row["context/evidence_share"] is None
    assert row["selected/session/recall_all"] == 0


def test_without_known_turns_there_are_no_turn_metrics_and_evidence_is_by_session(make_world) -> None:
    metrics = selection(make_world({0: [["user"], ["user"]]}, {0: [(1, None)]}, {0: [0, 1]}, level="session"))
    assert "selected/turn/recall" not in metrics.columns
    assert metrics["context/evidence_share"].to_list() == [20 / 30]


def test_a_selected_session_shows_all_its_turns(make_world) -> None:
    metrics = selection(make_world({0: [["user", "user"], ["user"]]}, {0: [(0, 1), (1, 0)]}, {0: [0, 1]},
                                   level="session", selected=1))
    assert metrics["selected/turn/recall"].to_list() == [.5]


def test_a_row_that_shows_the_session_around_its_unit_shows_the_evidence_in_it() -> None:
    tables = lexical(select=Fixed(k=2), measure=TokenCost(value="session"), pack=ByRank(value="session")).run(
        lives().load(), Store())
    evidence = scored_evidence(tables)
    shown = with_evidence(tables, evidence)
    sessions = tables["context"].join(tables["units"].select("unit", "session"), on="unit", maintain_order="left").join(
        evidence.select("question", "session").unique().with_columns(pl.lit(True).alias("wanted")),
        on=["question", "session"], how="left", maintain_order="left")
    assert shown["evidence"].fill_null(False).to_list() == sessions["wanted"].fill_null(False).to_list()
    by_turn = holders(tables["units"], evidence).select("question", "unit").unique()
    assert by_turn.join(tables["context"], on=["question", "unit"]).height < shown["evidence"].sum()
