from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import polars as pl
import pytest

from memlab.data.benchmarks import Builder
from memlab.evaluate.score.arm import Matched, match
from memlab.evaluate.score.runs import Order, Run
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError


@pytest.fixture
def tables() -> Tables:
    """One history of four sessions, two of the same name, the last after the question; and an empty second one."""
    build = Builder()
    for session, (name, day) in enumerate([("s1", 1), ("twin", 2), ("twin", 3), ("late", 9)]):
        build.session(corpus=0, session=session, said_on=datetime(2024, 1, day), name=name)
        for turn in range(2):
            build.turn(corpus=0, session=session, turn=turn, role="user", speaker=None, text=f"{name} {day} {turn}",
                       name=f"{name}:{turn}")
    for number in range(2):
        build.question(question=number, corpus=0, text=f"what {number}", asked_on=datetime(2024, 1, 5),
                       name=f"q{number}", answer="x", category="c", abstain=False, scored=True)
    return build.tables()


def run(*rows: tuple[str, str, float]) -> Run:
    table = pl.DataFrame([(*row, place) for place, row in enumerate(rows, 1)], orient="row", schema={
        "topic": pl.String, "document": pl.String, "score": pl.Float64, "place": pl.Int64})
    return Run(table.sort("topic", "score", "place", descending=[False, True, False]), "TREC run")


def ranked(matched: Matched) -> list[tuple[int, int, list[int], int]]:
    rows = matched.ranking.join(matched.units, on="unit").sort("question", "rank")
    return [(q, s, t, r) for q, s, t, r in rows.select("question", "session", "turns", "rank").iter_rows()]


def test_names_of_sessions_become_sessions_in_the_runs_order(tables: Tables) -> None:
    matched = match(run(("q0", "s1", 1.0), ("q0", "twin#2", 3.0), ("q0", "twin", 2.0), ("q1", "s1", 1.0)), tables)
    assert matched.level == "session"
    assert ranked(matched) == [(0, 2, [0, 1], 1), (0, 1, [0, 1], 2), (0, 0, [0, 1], 3), (1, 0, [0, 1], 1)]
    assert matched.units.height == 4
    assert matched.faults == []


def test_names_of_turns_become_turns(tables: Tables) -> None:
    matched = match(run(("q0", "s1:1", 1.0), ("q1", "twin:0#2", 1.0)), tables)
    assert matched.level == "turn"
    assert ranked(matched) == [(0, 0, [1], 1), (1, 2, [0], 1)]


def named(matched: Matched) -> list[tuple[int, str, int]]:
    names = matched.ids.filter(pl.col("kind") == "session").select("corpus", "session", "name")
    rows = matched.ranking.join(matched.units, on="unit").join(names, on=["corpus", "session"]).sort("question", "rank")
    return [(q, name, rank) for q, name, rank in rows.select("question", "name", "rank").iter_rows()]


MISSES = "They keep their ranks as misses, count for K and cost no tokens."


def test_unknown_documents_and_later_days_keep_their_ranks_and_are_counted(tables: Tables) -> None:
    found = match(run(("q0", "late", 3.0), ("q0", "nowhere", 2.5), ("q0", "s1", 2.0), ("who", "s1", 1.0)), tables)
    assert named(found) == [(0, "late (of a later day)", 1), (0, "nowhere", 2), (0, "s1", 3)]
    assert [(turns, session < 0) for _, session, turns, _ in ranked(found)] == [([], True), ([], True), ([0, 1], False)]
    assert found.faults == [
        "Topics that are no questions of this data set: 1 ('who'). They are left out.",
        f"Rows that name documents that the question's history does not have: 1, in 1 of 2 questions ('nowhere'). "
        f"{MISSES}",
        f"Rows that name a session of a later day than the question: 1, in 1 of 2 questions ('late'). {MISSES}",
        "1 of 2 questions have no ranking ('q1'). They count as not found."]


def test_a_question_of_unknown_documents_alone_has_a_ranking(tables: Tables) -> None:
    found = match(run(("q0", "fact", 2.0), ("q0", "other", 1.0), ("q1", "fact", 2.0), ("q1", "s1", 1.0)), tables)
    assert named(found) == [(0, "fact", 1), (0, "other", 2), (1, "fact", 1), (1, "s1", 2)]
    assert found.units["session"].is_unique().all()
    assert found.faults[1] == "1 of 2 questions rank such documents alone ('q0'). They count as not found."


def test_the_level_is_that_of_most_rows_and_names_of_the_other_are_unknown(tables: Tables) -> None:
    found = match(run(("q0", "s1", 3.0), ("q0", "s1:0", 2.0), ("q0", "s1:1", 1.0)), tables)
    assert found.level == "turn"
    assert [(turns, rank) for _, _, turns, rank in ranked(found)] == [([], 1), ([0], 2), ([1], 3)]


def test_a_document_that_is_ranked_again_is_left_out_and_the_ranks_close_up(tables: Tables) -> None:
    found = match(run(("q0", "s1", 5.0), ("q0", "s1", 4.0), ("q0", "x", 3.0), ("q0", "x", 2.5), ("q0", "twin", 2.0),
                      ("q0", "twin", 1.5), ("q0", "twin#2", 1.0), ("q0", "twin", .5)), tables)
    assert [(session, rank) for _, session, _, rank in ranked(found)] == [(0, 1), (-1, 2), (1, 3), (2, 4)]
    assert found.faults[-1] == "Rows that name a document again: 4. The best one counts, and the ranks close up."


@pytest.mark.parametrize(("order", "decides"), [
    ("score", "The highest score is taken for the best; add --ascending if the scores are distances, --by-rank if the "
              "ranks are right."),
    ("ascending", "The lowest score is taken for the best; leave out --ascending if the scores are no distances, or "
                  "take --by-rank in its place if the ranks are right.")])
def test_what_decides_the_order_is_said(tables: Tables, order: Order, decides: str) -> None:
    one = replace(run(("q0", "s1", 1.0), ("q0", "twin", 1.0)), tied=2, contradicted=1, order=order)
    assert match(one, tables).faults[1:] == [
        f"The ranks contradict the scores in 1 of 1 topics. {decides}",
        "Rows that share their score with another row of the question: 2. The file's own order breaks these ties."]


def test_names_without_evidence_in_longmemevals_logs_are_those_of_the_data(tables: Tables) -> None:
    build = Builder()
    for session, name in enumerate(["answer_1", "x", "noans_x"]):
        build.session(corpus=0, session=session, said_on=None, name=name)
        build.turn(corpus=0, session=session, turn=0, role="user", speaker=None, text="?", name=f"{name}_1")
    build.question(question=0, corpus=0, text="?", asked_on=None, name="q", answer="x", category="c", abstain=False,
                   scored=True)
    for level, end in (("session", ""), ("turn", "_1")):
        found = match(run(("q", "noans_1" + end, 2.0), ("q", "noans_x" + end, 1.0)), build.tables())
        assert (found.level, [session for _, session, _, _ in ranked(found)]) == (level, [0, 2])
        assert found.faults == []


def test_a_run_of_other_data_is_refused_with_names_of_both(tables: Tables) -> None:
    with pytest.raises(MemlabError, match="no topic of the run is a question of this data set: 'x'; its questions have "
                                          "names such as 'q0', 'q1'"):
        match(run(("x", "s1", 1.0)), tables)
    with pytest.raises(MemlabError, match=r"no document of the run is a session or turn of this data set: 'doc'; .*"
                                          r"'s1:0', 's1:1', 'twin:0', \.\.\., its sessions 's1', 'twin', 'late'"):
        match(run(("q0", "doc", 1.0)), tables)
