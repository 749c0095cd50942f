"""Questions with their queries, for the stages that work on queries."""

from __future__ import annotations

from datetime import datetime

from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame
from memlab.stages.query.original import Original
from memlab.store import Store


def asked(*questions: str, on: datetime | None = datetime(2023, 7, 1, 9, 30)) -> Tables:
    """Questions of one day, each with its original query."""
    tables = Tables(texts=texts_frame(questions), questions=frame("questions", {
        "question": range(len(questions)), "corpus": [0] * len(questions), "text_id": [text_hash(q) for q in questions],
        "asked_on": [on] * len(questions)}))
    return tables.updated(Original().run(tables, Store()))


def done(stage, tables: Tables, store: Store | None = None) -> Tables:
    """The tables after a stage that was handed only what it reads."""
    made = stage.run(tables.only(stage.reads), store or Store())
    assert set(made) - {"notes"} == set(stage.writes)
    return tables.updated(made)


def searched(tables: Tables) -> list[tuple[int, str, str, float]]:
    """(question, kind, words, weight) of each query."""
    words = dict(tables["texts"].iter_rows())
    return [(q, kind, words[text], weight)
            for q, kind, text, weight in tables["queries"].select("question", "kind", "text_id", "weight").iter_rows()]
