from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from memlab.data.build import Builder
from memlab.errors import MemlabError
from memlab.score.runs import Run
from memlab.score.units import Matched, match
from memlab.tables import Tables


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
    return Run(table.sort("topic", "score", "place", descending=[False, True, False]), "TREC run", 0, 0)


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


def test_what_is_wrong_with_a_run_is_counted_and_left_out(tables: Tables) -> None:
    found = match(run(("q0", "late", 3.0), ("q0", "nowhere", 2.5), ("q0", "s1", 2.0), ("who", "s1", 1.0)), tables)
    assert ranked(found) == [(0, 0, [0, 1], 1)]
    assert found.faults == [
        "1 topics are no questions of this data set ('who').",
        "1 rows name documents that the question's history does not have ('nowhere'). They are left out.",
        "1 of 2 questions have no ranking ('q1'). They count as not found.",
        "1 rows name a session of a later day than the question. They are left out."]


def test_a_run_of_other_data_is_refused_with_names_of_both(tables: Tables) -> None:
    with pytest.raises(MemlabError, match="no topic of the run is a question of this data set: 'x'; its questions have "
                                          "names such as 'q0', 'q1'"):
        match(run(("x", "s1", 1.0)), tables)
    with pytest.raises(MemlabError, match=r"no document of the run is a session or turn of this data set: 'doc'; .*"
                                          r"'s1:0', 's1:1', 'twin:0', \.\.\., its sessions 's1', 'twin', 'late'"):
        match(run(("q0", "doc", 1.0)), tables)


def test_ids_in_the_texts_are_pointed_out(tables: Tables) -> None:
    build = Builder()
    build.session(corpus=0, session=0, said_on=None, name="answer_1")
    build.turn(corpus=0, session=0, turn=0, role="user", speaker=None, text="see answer_1", name="t")
    build.question(question=0, corpus=0, text="?", asked_on=None, name="q", answer="x", category="c", abstain=False,
                   scored=True)
    assert match(run(("q", "answer_1", 1.0)), build.tables()).faults == [
        "1 texts of this data set contain an id of the benchmark, so that a search can find it."]
