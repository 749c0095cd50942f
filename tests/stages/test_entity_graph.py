from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import SCHEMAS, frame
from memlab.stages.entity_graph import Graph, graphs
from tests.stages.write.conversations import DAY

PEOPLE = [(0, "Ann Lee", "person", "A cook."), (0, "Bo", "person", "Her brother."), (1, "Oslo", "location", "Cold."),
          (2, "ann  lee", "person", "Retired."), (1, "Ski Club", "organization", "")]
TIES = [(0, "Ann Lee", "brother of", "Bo"), (1, "Bo", "lives in", "Oslo"), (1, "Oslo", "home of", "Ski Club"),
        (1, "Ski Club", "led by", "Cy"), (2, "bo", "Lives in", "OSLO")]


def table(name: str, rows: list[tuple], said_on: bool = False) -> pl.DataFrame:
    """Rows (session, ...) of corpus 0; links told on their session's day."""
    columns = [c for c in SCHEMAS[name] if c not in ("corpus", "said_on")]
    made = {c: [r[i] for r in rows] for i, c in enumerate(columns)}
    days = {"said_on": [DAY + timedelta(days=r[0]) for r in rows]} if said_on else {}
    return frame(name, {"corpus": [0] * len(rows), **made, **days})


def known(day: datetime | None, people: list[tuple] = PEOPLE, ties: list[tuple] = TIES) -> Graph:
    """The graph as of a day."""
    sessions = frame("sessions", {"corpus": [0] * 3, "session": range(3),
                                  "said_on": [DAY + timedelta(days=s) for s in range(3)]})
    questions = frame("questions", {"question": [7], "corpus": [0], "text_id": [""], "asked_on": [day]})
    ((question, graph),) = graphs(table("entities", people), table("links", ties, True), sessions, questions)
    assert question == 7
    return graph


def triples(near) -> list[tuple[str, str, str]]:
    return [(r.source, r.relation, r.target) for r in near.links]


def test_two_hops_and_no_more() -> None:
    near = known(None).near("Where does Ann Lee live?")
    assert [name for name, *_ in near.entities] == ["ann  lee", "Bo", "Oslo"]  # written as in the last session
    assert triples(near) == [("Ann Lee", "brother of", "Bo"), ("bo", "Lives in", "OSLO")]
    assert near.entities[0] == ("ann  lee", "person", "A cook. Retired.")
    assert len(known(None).near("Ann", hops=1).entities) == 2
    assert len(known(None).near("Ann", hops=4).links) == 4


def test_what_is_told_again_is_one_relationship_as_last_told() -> None:
    (link,) = known(None).near("Oslo", hops=1).links[:1]
    assert (link.source, link.said_on) == ("bo", DAY + timedelta(days=2))


def test_nothing_of_a_later_day_is_known() -> None:
    first = known(DAY.replace(hour=0)).near("Ann, Bo and Oslo", hops=4)  # the same day counts, whatever the hour
    assert [name for name, *_ in first.entities] == ["Bo", "Ann Lee"]  # the full name before the part of one
    assert triples(first) == [("Ann Lee", "brother of", "Bo")]
    second = known(DAY + timedelta(days=1)).near("Ann", hops=4)
    assert second.entities[0][2] == "A cook."
    assert second.links[1].relation == "lives in"
    assert known(DAY - timedelta(days=1)).near("Ann, Bo and Oslo").entities == []


@pytest.mark.parametrize(("question", "named"), [
    ("who is ANN  lee's boss", ["ann lee"]), ("Is Lee in?", ["ann lee"]), ("Any annual leek?", []),
    ("To bo or not", ["bo"]), ("Club of Lee in Oslo", ["oslo", "ski club", "ann lee"]), ("", []),
    ("\u5965\u65af\u9646\u5728\u54ea\u91cc", [])])
def test_names_in_a_question(question: str, named: list[str]) -> None:
    assert known(None).names_in(question) == named


def test_words_that_every_question_has_name_nobody() -> None:
    people = [(0, "The Who", "organization", ""), (0, "What", "object", ""), (0, "The Shining", "object", "")]
    assert known(None, people).names_in("What is the film? Who made it?") == []
    assert known(None, people).names_in("When did I see Shining?") == ["the shining"]


def test_caps() -> None:
    people = [(0, f"Name{n}", "person", "long " * 60) for n in range(30)]
    ties = [(0, "Name0", "knows", f"Name{n}") for n in range(1, 30)]
    near = known(None, people, ties).near("Name0")
    assert (len(near.entities), len(near.links)) == (10, 20)
    assert triples(near)[0][2] == "Name29"  # the last told first
    again = [(s, "Name0", "person", f"{s} " + "long " * 60) for s in range(3)]
    summary = known(None, again).near("Name0").entities[0][2]
    assert len(summary) <= 500
    assert summary.startswith("0 long")
    assert "1 long" in summary


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.just("is"), st.sampled_from("abcde")),
                max_size=12), st.integers(0, 2), st.integers(1, 3))
def test_a_graph_of_a_day_is_that_of_its_sessions_alone(ties: list[tuple], day: int, hops: int) -> None:
    people = [(s, name, "person", f"{name}{s}") for s in range(3) for name in "abcd"]
    asked = DAY + timedelta(days=day)
    before = known(None, [p for p in people if p[0] <= day], [t for t in ties if t[0] <= day])
    assert known(asked, people, ties).near("a d", hops) == before.near("a d", hops)


def test_a_name_is_found_in_a_sentence_without_spaces() -> None:
    graph = known(None, [(0, "\u4e0a\u6d77", "location", "")], [])
    assert graph.names_in("\u6211\u4f4f\u5728\u4e0a\u6d77") == ["\u4e0a\u6d77"]
    assert graph.names_in("\u6d77\u4e0a") == []
