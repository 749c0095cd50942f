from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from memlab.pipeline.tables import frame
from memlab.stages.write.prune import Age, Deprecated, RuleImportance, removable
from tests.stages.write.relations.worlds import DAY, done, told


def kept(tables):
    return tables["memories"]["memory"].to_list()


def test_old_plain_memories_go_and_important_ones_stay(store):
    tables = told((0, 0, "We talked about tents and boats"), (1, 0, "Remember that I am allergic to wool"),
                  (2, 10, "We talked about rivers and boats"), (3, 60, "Another talk about kites"), asked=100)
    tables = tables.updated({"edges": frame("edges", {
        "source": [2, 3, 3], "target": [0, 0, 2], "kind": ["RELATED_TO"] * 3, "confidence": [0.9] * 3})})
    out = done(Age(days=90), tables, store)
    assert kept(out) == [1, 2, 3]  # memory 2 is 90 days old, no more
    assert out["edges"].select("source", "target").rows() == [(3, 2)]
    assert kept(done(Age(days=30, important=2.0), tables, store)) == []
    assert kept(done(Age(days=40, important=2.0), tables, store)) == [3]


def test_age_counts_to_the_earliest_question_so_that_nothing_later_is_used(store):
    tables = told((0, 0, "We talked about tents and boats"), (1, 300, "Another talk about kites"), asked=50)
    asked = tables["questions"]
    later = pl.concat([asked, asked.with_columns(pl.lit(1, pl.Int32).alias("question"),
                                                 pl.col("asked_on") + timedelta(days=250))])
    for questions in (asked, later):
        assert kept(done(Age(days=90), tables.updated({"questions": questions}), store)) == [0, 1]
    newest = tables.updated({"questions": asked.clear()})
    assert kept(done(Age(days=90), newest, store)) == [1]  # nobody asks: the newest session is today


def test_an_importance_that_an_extractor_gave_counts(store):
    tables = told((0, 0, "We talked about tents and boats"), (1, 0, "Remember I am allergic"), importance=[1.0, 0.1])
    assert kept(done(Age(days=90), tables, store)) == [0]


def test_removable_by_hand():
    said = frame("memories", {"memory": range(5), "said_on": [DAY, DAY, DAY, DAY + timedelta(days=70), None]})
    important = pl.Series([False, True, False, False, False])
    accessed = pl.Series([0, 0, 4, 0, 0])
    now = DAY + timedelta(days=91)
    assert removable(said, now, 90, important, accessed, 3).to_list() == [True, False, False, False, False]
    assert removable(said, now, 90, important, accessed, 4).to_list() == [True, False, True, False, False]
    assert removable(said, now, 90, important).to_list() == [True, False, True, False, False]
    same_day = DAY.replace(hour=23) + timedelta(days=90)
    assert not removable(said, same_day, 90, important).any()  # calendar days count, not hours


@pytest.mark.parametrize(("text", "marked"), [
    ("[DEPRECATED] The key is in the tin.", True), ("Deprecated: use the drawer.", True),
    ("# Obsolete\nOld plan", True),
    ("Plan A (superseded) was to walk.", True), ("status: deprecated", True), ("This note is now obsolete.", True),
    ("user: Superseded by the March plan", True), ("The function is deprecated in Python 3.12.", False),
    ("My obsolete phone broke.", False), ("Deprecated functions are my topic", False), ("Hello", False),
])
def test_marks_are_not_mentions(store, text, marked):
    assert kept(done(Deprecated(), told((0, 0, text)), store)) == ([] if marked else [0])


def test_importance_is_written_and_nothing_is_lost(store):
    tables = told((0, 0, "Thanks!"), (0, 0, "Boats leave the harbour at noon"), (1, 1, "My boss is Ann Miller Smith"),
                  (2, 2, "My doctor is Ann Miller"), (3, 3, "Please remember: my doctor is Ann"), (4, 4, "x"),
                  importance=[None] * 5 + [0.7])
    assert done(RuleImportance(), tables, store)["memories"]["importance"].round(6).to_list() == [
        0.1, 0.4, 0.6, 0.8, 1.0, 0.7]
