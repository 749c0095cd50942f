"""What a system returned in a scenario: rank, score, source, day, and a snippet with the matched terms marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import polars as pl

from memlab.evaluate.scenarios import pieces
from memlab.report.folders import ArmRun
from memlab.report.words import one_line
from memlab.search.tokens import LUCENE_STOP_WORDS

LETTERS = 160
"""Letters of a snippet."""
_WORD = re.compile(r"\w+")

Marked = list[tuple[str, bool]]
"""A text in parts, each with whether the question holds it, too."""


class Row(NamedTuple):
    """One returned unit; ``holds`` names the pieces in it, ``returned`` tells whether it was selected."""

    rank: int
    score: float
    returned: bool
    holds: tuple[str, ...]
    source: str
    said_on: datetime | None
    snippet: Marked


def rows(arm: ArmRun, ids: pl.DataFrame, case: str, top: int) -> list[Row]:
    """Return the first ``top`` returned units of a case, and those that hold a piece (of the 20 that are kept)."""
    question = ids.filter(kind="question", name=case)["question"].item()
    held = {place: name for name, place in pieces(ids).get(case, {}).items()}
    sources = _sources(ids, arm.questions.filter(question=question)["corpus"].item())
    asked = arm.questions.filter(question=question)["text"].item()
    scores = arm.ranking.select("question", "rank", "score")
    shown = arm.shown.filter(question=question).join(scores, on=["question", "rank"], how="left").sort("rank")
    out = []
    for row in shown.iter_rows(named=True):
        holds = tuple(held[row["session"], turn] for turn in row["turns"] if (row["session"], turn) in held)
        if holds or (row["selected"] and row["rank"] <= top):
            out.append(Row(row["rank"], row["score"], row["selected"], holds, sources.get(row["session"], "session"),
                           row["said_on"], snippet(row["text"] or "", asked)))
    return out


def _sources(ids: pl.DataFrame, corpus: int) -> dict[int, str]:
    """Return session -> "memory file X" or its own name."""
    named = ids.filter(kind="session", corpus=corpus).select("session", "name")
    return {session: f"memory file {name}" if name.endswith(".md") else name for session, name in named.iter_rows()}


def snippet(text: str, question: str, letters: int = LETTERS) -> Marked:
    """Cut a text around its first matched term, and mark all of them; terms match by their stems, stop words do not.

    >>> snippet("user: My cats sleep.", "Where is the cat?")
    [('user: My ', False), ('cats', True), (' sleep.', False)]
    """
    line = one_line(text)
    wanted = set(_stems(_WORD.findall(question.lower()))) - set(_stems(LUCENE_STOP_WORDS))
    found = list(_WORD.finditer(line))
    hits = [m for m, stem in zip(found, _stems(m[0].lower() for m in found)) if stem in wanted]
    start = max(min(hits[0].start() - letters // 3, len(line) - letters), 0) if hits else 0
    stop = min(start + letters, len(line))
    return list(_marked(line, start, stop, [m.span() for m in hits]))


def _marked(line: str, start: int, stop: int, spans: list[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
    at = start
    if start > 0:
        yield "…", False
    for begin, end in spans:
        if begin >= start and end <= stop:
            if begin > at:
                yield line[at:begin], False
            yield line[begin:end], True
            at = end
    if at < stop:
        yield line[at:stop], False
    if stop < len(line):
        yield "…", False


def _stems(terms: Iterable[str]) -> list[str]:
    import Stemmer

    return list(Stemmer.Stemmer("english").stemWords(list(terms)))
