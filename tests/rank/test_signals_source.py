from __future__ import annotations

import polars as pl

from memlab.config.instantiate import choice_settings, construct
from memlab.rank.signals import Source
from memlab.store import Store
from tests.rank.signals.worlds import dated, order, values

SOURCES = [*["conversation"] * 5, "user", *["conversation"] * 6]


def filed():
    """The fifth turn is read from a file, and so is the memory of its session, which stands for three turns."""
    tables = dated(source=SOURCES)
    spoken = pl.Series("speaker", ["Notes/x.MD" if row == 4 else None for row in range(tables["turns"].height)],
                       pl.String)
    turns = tables["turns"].sort("corpus", "session", "turn").with_columns(spoken)
    return tables.updated({"turns": turns})


def test_documents_come_before_talk() -> None:
    assert values(Source(), filed()) == [0, 0, 1, 1, 1, 0]


def test_sources_may_be_graded() -> None:
    graded = Source(speakers={".md": .9}, sources={"user": .5, "conversation": .1})
    assert values(graded, filed()) == [.1, .1, .9, .9, .9, .5]


def test_a_filter_keeps_documents_alone() -> None:
    fields = choice_settings("rank/boost/source_only")
    faults: list[str] = []
    boost = construct(fields, "rank.boost", faults)
    assert faults == []
    kept = boost.run(filed(), Store())["ranking"].sort("question", "rank")
    assert kept.filter(question=0)["unit"].to_list() == [u for u in order(filed(), weights={"first": 1})
                                                         if u in (2, 3, 4)]
