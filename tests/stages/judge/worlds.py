"""Answered questions as tables, and a chat model that judges by a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memlab.models.protocols import Prompt
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame
from memlab.store import Store
from tests.chats import ScriptedChat

Row = tuple[str, str | None, str, bool, str]
"""Question, gold answer, category, abstain, response."""


def world(rows: Sequence[Row]) -> Tables:
    n = len(rows)
    return Tables(
        questions=frame("questions", {"question": list(range(n)), "corpus": [0] * n,
                                      "text_id": [text_hash(r[0]) for r in rows]}),
        gold=frame("gold", {"question": list(range(n)), "answer": [r[1] for r in rows],
                            "category": [r[2] for r in rows], "abstain": [r[3] for r in rows],
                            "scored": [not r[3] for r in rows]}),
        answers=frame("answers", {"question": list(range(n)), "sample": [0] * n,
                                  "text_id": [text_hash(r[4]) for r in rows]}),
        texts=texts_frame(t for r in rows for t in (r[0], r[4])),
    )


def one(gold: str | None, response: str, category: str = "single-hop", abstain: bool = False) -> Tables:
    return world([("What was it?", gold, category, abstain, response)])


def judged(judge: Stage, tables: Tables, store: Store) -> list[tuple[float | None, bool | None, str]]:
    """(score, correct, reply) by question, with only the tables that the judge declares."""
    made = judge.run(tables.only(judge.reads), store)["verdicts"].sort("question")
    return list(made.select("score", "correct", "reply").iter_rows())


def says(rule: Callable[[str], str] | str, window: int = 4096) -> ScriptedChat:
    """A model that answers by what it reads, or always the same."""

    def answer(prompt: Prompt) -> str:
        return rule if isinstance(rule, str) else rule(prompt.messages[-1].content)

    return ScriptedChat(answer, window=window)
