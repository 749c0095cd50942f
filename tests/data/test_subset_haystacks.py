"""Grown and pooled haystacks: what is added, where, and that questions and evidence stay what they were."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.benchmarks import Builder
from memlab.data.dataset import session_texts
from memlab.data.subset import Subset, grow, pool_corpora
from memlab.data.synthetic.dataset import Synthetic
from memlab.pipeline.tables import SCHEMAS, SESSION, Tables, as_of, with_text
from memlab.support.errors import MemlabError

DAY = datetime(2024, 1, 1)


def make(corpora: dict[str, list[str]], asked: dict[str, int] | None = None, dated: bool = True,
         order: list[str] | None = None) -> Tables:
    """Build a corpus for each name, a session for each text, a day apart; a question asks for the last session."""
    build = Builder()
    for corpus, name in enumerate(order or corpora):
        build.corpus(corpus=corpus, name=name)
        for session, text in enumerate(corpora[name]):
            build.session(corpus=corpus, session=session, name=f"s{session}",
                          said_on=DAY + timedelta(days=session) if dated else None)
            for turn, part in enumerate((text, f"reply to {text}")):
                build.turn(corpus=corpus, session=session, turn=turn, role=("user", "assistant")[turn], speaker=None,
                           text=part, name=f"s{session}t{turn}")
        day = (asked or {}).get(name, len(corpora[name]))
        build.question(question=corpus, corpus=corpus, text=f"q of {name}", name=f"q-{name}", answer="a",
                       asked_on=DAY + timedelta(days=day), category="c", abstain=False, scored=True)
        build.evidence(question=corpus, session=len(corpora[name]) - 1, turn=0)
    return build.tables()


def said(tables: Tables) -> list[tuple[str, datetime | None, str]]:
    """(corpus, date, text of the first turn) of every session, in any order."""
    names = tables["ids"].filter(pl.col("kind") == "corpus").select("corpus", pl.col("name").alias("haystack"))
    rows = with_text(tables["turns"].filter(pl.col("turn") == 0), tables["texts"]).join(
        tables["sessions"], on=SESSION).join(names, on="corpus")
    return sorted(rows.select("haystack", "said_on", "text").rows())


def evidence(tables: Tables) -> list[tuple[str, str]]:
    """(question, text of its evidence)."""
    rows = with_text(tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question").join(
        tables["turns"], on=[*SESSION, "turn"]), tables["texts"])
    asked = tables["ids"].filter(pl.col("kind") == "question").select("question", "name")
    return sorted(rows.join(asked, on="question").select("name", "text").rows())


texts = st.sampled_from([f"text {i}" for i in range(9)])
haystacks = st.lists(st.lists(texts, min_size=1, max_size=4), min_size=2, max_size=6).map(
    lambda lists: {f"c{i}": sessions for i, sessions in enumerate(lists)})


@given(haystacks, st.integers(1, 4), st.integers(0, 3), st.dictionaries(st.sampled_from(["c0", "c1"]),
                                                                       st.integers(-1, 5)), st.booleans())
def test_a_grown_haystack_keeps_what_it_had_and_gains_what_it_may(
        corpora: dict[str, list[str]], times: int, seed: int, asked: dict[str, int], dated: bool) -> None:
    before = make(corpora, asked, dated)
    everything = {text for sessions in corpora.values() for text in sessions}
    if any(len(everything - set(own)) < len(own) * (times - 1) for own in corpora.values()):
        with pytest.raises(MemlabError, match="haystacks cannot grow"):
            grow(before, before, times, seed)
        return
    after = grow(before, before, times, seed)
    for name, table in after.items():
        assert dict(table.schema) == SCHEMAS[name]
    assert after["questions"].equals(before["questions"])
    assert after["gold"].equals(before["gold"])
    assert evidence(after) == evidence(before)
    assert after["evidence"].height == before["evidence"].height
    rest = Counter(said(after))
    rest.subtract(said(before))
    assert min(rest.values()) >= 0  # each session is still there, under its date
    for name, own in corpora.items():
        added = [text for (haystack, _, text), n in rest.items() for _ in range(n) if haystack == name]
        assert len(added) == len(own) * (times - 1)
        assert len(set(added)) == len(added)
        assert not set(added) & set(own)
    keys = after["sessions"].select(SESSION)
    assert keys.is_unique().all()
    assert after["turns"].select(*SESSION, "turn").is_unique().all()
    assert after["turns"].select(SESSION).unique().sort(SESSION).equals(keys.sort(SESSION))
    assert set(after["texts"]["text_id"]) == {*after["turns"]["text_id"], *after["questions"]["text_id"]}
    names = after["ids"].filter(pl.col("kind") == "session")
    assert names.select(SESSION).sort(SESSION).equals(keys.sort(SESSION))
    assert names.select("corpus", "name").is_unique().all()
    assert after["ids"].filter(pl.col("kind") == "turn").height == after["turns"].height
    if dated:
        ordered = after["sessions"].sort(SESSION)
        assert all(part["said_on"].is_sorted() for part in ordered.partition_by("corpus"))
        questions = after["questions"].select("corpus", "asked_on")
        visible = after["sessions"].join(questions, on="corpus").filter(as_of()).height
        seen_before = before["sessions"].join(questions, on="corpus").filter(as_of()).height
        assert visible == seen_before + len(said(after)) - len(said(before))
    else:
        assert after["sessions"]["said_on"].null_count() == after["sessions"].height


@given(haystacks, st.permutations(["c0", "c1", "c2", "c3", "c4", "c5"]), st.integers(0, 3))
def test_no_order_of_the_file_changes_what_is_drawn(corpora: dict[str, list[str]], order: list[str], seed: int) -> None:
    everything = {text for sessions in corpora.values() for text in sessions}
    if any(len(everything - set(own)) < len(own) for own in corpora.values()):
        return
    one, other = make(corpora), make(corpora, order=[name for name in order if name in corpora])
    assert said(grow(one, one, 2, seed)) == said(grow(other, other, 2, seed))


def wide() -> dict[str, list[str]]:
    return {f"c{i}": [f"{i}.{j}" for j in range(2)] for i in range(20)}


def test_a_part_of_the_questions_draws_from_the_whole_data() -> None:
    tables = make(wide())
    part = Subset(limit=1, grow=10).cut(tables)
    assert part["questions"].height == 1
    assert said(part) == [row for row in said(grow(tables, tables, 10)) if row[0] == "c0"]
    assert part["ids"].filter(pl.col("kind") == "corpus")["name"].to_list() == ["c0"]


def test_too_few_sessions_are_an_error_that_tells_how_many_there_are() -> None:
    tables = make(wide())
    with pytest.raises(MemlabError) as error:
        grow(tables, tables, 100)
    assert str(error.value).startswith("data.grow: 20 of 20 haystacks cannot grow 100 times: 'c0' has 2 sessions and "
                                       "needs 198 others, and there are 38 distinct ones. Fix: the most for all of "
                                       "them is data.grow=20")
    assert grow(tables, tables, 20)["sessions"].height == 20 * 40
    alone = make({"c0": ["a"], "c1": ["a"]})
    with pytest.raises(MemlabError, match="there are 0 distinct ones. Fix: use more data"):
        grow(alone, alone, 2)


def test_grow_is_an_option_of_every_data_set() -> None:
    small = {"lives": 6, "questions": 2, "sessions": 8}
    plain, large, same = (Synthetic(**small, **more) for more in ({}, {"grow": 3}, {"grow": 1}))
    assert [data.name for data in (plain, large, same)] == ["synthetic", "synthetic-x3", "synthetic"]
    assert plain.identity() == same.identity() != large.identity()
    assert any("3 times its sessions" in note for note in large.notes())
    assert large.notes() != plain.notes()
    assert same.load().digest(plain.load()) == plain.load().digest(plain.load())
    before, after = plain.load(), large.load()
    assert after["sessions"].height == 3 * before["sessions"].height
    assert evidence(after) == evidence(before)
    contents = session_texts(after["turns"])
    assert contents.select("corpus", "content").is_unique().all()


def test_grown_and_pooled_exclude_each_other() -> None:
    with pytest.raises(MemlabError, match="choose one of the two"):
        Synthetic(pool=True, grow=2)


def test_pool_is_one_corpus_in_the_order_of_dates_with_every_slot() -> None:
    tables = make({"c0": ["a", "shared", "b"], "c1": ["shared", "c"]})
    pile = pool_corpora(tables)
    assert pile["sessions"]["corpus"].unique().to_list() == [0]
    assert pile["sessions"]["session"].to_list() == list(range(5))
    assert pile["sessions"]["said_on"].is_sorted()
    assert pile["turns"].height == tables["turns"].height  # the shared text stands there under both dates
    assert pile["questions"]["corpus"].unique().to_list() == [0]
    assert evidence(pile) == evidence(tables)
    for name in pile:
        assert dict(pile[name].schema) == SCHEMAS[name]


def test_pooled_evidence_keeps_the_date_of_the_questions_own_slot() -> None:
    pile = pool_corpora(make({"c0": ["a", "shared"], "c1": ["shared"]}))
    dated = pile["evidence"].join(pile["sessions"], on="session").sort("question")
    assert dated["said_on"].to_list() == [DAY + timedelta(days=1), DAY]
