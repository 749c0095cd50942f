"""Upper bounds of classifiers, reranking and adaptive K."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.pipeline.question_types import OF_TYPE, VOCABULARY
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import GOLD, Tables, frame
from memlab.stages.oracle.upper_bounds import OracleClasses, OracleContext, OracleRerank, OracleSelect, OracleSetSelect
from memlab.store import Store
from tests.small import lexical

STORE = Store()
UNITS = 8


def world(evidence: list[tuple[int, int]], session: list[int] | None = None) -> Tables:
    """Two questions, each ranking turns 0..7 in that order; session tells the session of each."""
    session = session or list(range(UNITS))
    return Tables(
        units=frame("units", {"unit": range(UNITS), "corpus": [0] * UNITS, "session": session,
                              "turns": [[u] for u in range(UNITS)], "level": ["turn"] * UNITS}),
        ranking=frame("ranking", {"question": [0] * UNITS + [1] * UNITS, "unit": [*range(UNITS)] * 2,
                                  "score": [float(UNITS - u) for u in range(UNITS)] * 2,
                                  "rank": [*range(1, UNITS + 1)] * 2, "selected": [False] * 2 * UNITS}),
        evidence=frame("evidence", {"question": [q for q, _ in evidence], "session": [s for _, s in evidence],
                                    "turn": [None] * len(evidence)}),
    )


def counts(stage, tables: Tables) -> list[int]:
    made = stage.run(tables.only(stage.reads), STORE)["ranking"]
    return made.group_by("question", maintain_order=True).agg(pl.col("selected").sum())["selected"].to_list()


@pytest.mark.parametrize(("slot", "stage", "gold"), [
    ("select", OracleSelect(), "evidence"), ("select", OracleSetSelect(), "evidence"),
    ("rerank", OracleRerank(), "evidence"), ("pack", OracleContext(), "evidence"),
    ("classify", OracleClasses(), "gold")])
def test_oracles_are_marked_and_read_gold(slot: str, stage: Stage, gold: str) -> None:
    arm = lexical(**{slot: stage})
    assert arm.uses_oracle()
    assert arm.looks_at_gold() == [slot]
    assert GOLD & set(stage.reads) == {gold}


def test_select_takes_the_smallest_complete_k_and_is_charged_for_what_is_never_complete() -> None:
    tables = world([(0, 2), (0, 4), (1, 1), (1, 7)])
    assert counts(OracleSelect(), tables) == [5, 8]
    assert counts(OracleSelect(max_k=6), tables) == [5, 6]
    assert counts(OracleSelect(max_k=1), tables) == [1, 1]
    assert counts(OracleSelect(), world([(0, 3)])) == [4, 1]


def test_the_set_oracle_shows_the_evidence_alone() -> None:
    tables = world([(0, 2), (0, 4), (1, 1), (1, 7)])
    assert counts(OracleSetSelect(), tables) == [2, 2]
    assert counts(OracleSetSelect(max_k=6), tables) == [2, 6]  # the second is never complete
    assert counts(OracleSetSelect(), world([(0, 3)])) == [1, 1]
    rows = OracleSetSelect().run(tables.only(OracleSetSelect.reads), STORE)["ranking"]
    assert rows.filter("selected")["unit"].to_list() == [2, 4, 1, 7]


def test_select_by_turn() -> None:
    tables = world([(0, 0)], session=[0, 0, 0, 1, 1, 1, 2, 2])
    turns = tables["evidence"].with_columns(turn=pl.lit(2, pl.Int32))
    assert counts(OracleSelect(level="session"), tables) == [1, 1]
    assert counts(OracleSelect(level="turn"), tables.updated({"evidence": turns})) == [3, 1]


def order(stage: OracleRerank, tables: Tables) -> list[list[int]]:
    made = stage.run(tables.only(stage.reads), STORE)["ranking"]
    return [p["unit"].to_list() for p in made.partition_by("question", maintain_order=True)]


def test_rerank_brings_one_unit_of_each_item_to_the_front_of_the_pool() -> None:
    tables = world([(0, 1), (0, 2), (1, 2)], session=[0, 0, 1, 1, 1, 0, 2, 2])
    assert order(OracleRerank(), tables) == [[2, 6, 0, 1, 3, 4, 5, 7], [6, 0, 1, 2, 3, 4, 5, 7]]
    assert order(OracleRerank(pool=3), tables) == [[2, 0, 1, 3, 4, 5, 6, 7], [*range(8)]]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 7)), max_size=5, unique=True), st.integers(1, 9))
def test_a_perfect_order_is_a_permutation_within_the_pool(evidence, pool) -> None:
    for q, units in enumerate(order(OracleRerank(pool=pool), world(evidence))):
        gold = sorted(s for a, s in evidence if a == q and s < pool)
        assert units == gold + [u for u in range(UNITS) if u not in gold]


def told(stage: OracleClasses, *types: str | None) -> list[tuple[int, str]]:
    tables = Tables(questions=frame("questions", {"question": range(len(types))}),
                    gold=frame("gold", {"question": range(len(types)), "category": types}).reverse())
    return stage.run(tables.only(stage.reads), Store())["classes"].rows()


def test_the_types_of_the_benchmarks_have_their_classes() -> None:
    assert told(OracleClasses(), "knowledge-update", "multi-hop", "single-session-user", "temporal") == [
        (0, "update"), (1, "multi_session"), (2, "factual"), (3, "temporal")]


def test_a_type_that_nobody_mapped_is_otherwise_and_types_can_be_mapped() -> None:
    assert told(OracleClasses(otherwise="general"), "recipes", None, "adversarial") == [
        (0, "general"), (1, "general"), (2, "general")]
    assert told(OracleClasses(classes={"recipes": "procedural", "multi-hop": "counting"}), "recipes", "multi-hop") == [
        (0, "procedural"), (1, "counting")]


def test_a_class_must_be_in_the_vocabulary() -> None:
    with pytest.raises(ValidationError, match="'conting', given for 'recipes', is no class.*counting"):
        OracleClasses(classes={"recipes": "conting"})
    assert {*OF_TYPE.values()} <= set(VOCABULARY)
