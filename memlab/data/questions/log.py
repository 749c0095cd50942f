"""A log as the questions page shows it: turns with their neighbours and copies, and search over all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.data.jsonl import Evidence, Moment, SessionLine, TurnLine
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.postings import Corpus, lucene_idf
from memlab.support.text.display import safe_line, safe_text
from memlab.support.text.tokenize import LUCENE_STOP_WORDS, count, normalise, words

NEAR = 400
"""Characters of a neighbouring turn that are shown."""

LONGEST = 20_000
"""Characters of a turn that are shown."""

COPY = 12
"""Fewest characters of a text that counts once: what "Yes, I do." answers depends on the turn before it."""


class TurnPlace(NamedTuple):
    """A turn: the number of its session in the log, and its own in the session, both from 0."""

    session: int
    turn: int


class Log:
    """Sessions in the order of their file, with the copies and the words of their turns."""

    def __init__(self, sessions: Sequence[SessionLine]) -> None:
        self.sessions = sessions
        self.corpora = list(dict.fromkeys(session.corpus for session in sessions))
        self._numbers = {(session.corpus, session.session): n for n, session in enumerate(sessions)}
        self._places = [TurnPlace(n, t) for n, session in enumerate(sessions) for t in range(len(session.turns))]
        self._own = {corpus: np.array([sessions[n].corpus == corpus for n, _ in self._places], bool)
                     for corpus in self.corpora}
        texts = pl.Series([self[place].text for place in self._places], dtype=pl.String)
        self._tokens, self._lower = _tokens(texts), normalise(texts)
        copies: dict[tuple[str, str, str], list[TurnPlace]] = defaultdict(list)
        for place in self._places:
            copies[self._key(place)].append(place)
        self._copies = {place: group for (*_, text), group in copies.items() if len(text) >= COPY and len(group) > 1
                        for place in group}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: TurnPlace) -> TurnLine:
        return self.sessions[place.session].turns[place.turn]

    def __contains__(self, session: tuple[str, str]) -> bool:
        return session in self._numbers

    def number(self, corpus: str, session: str) -> int:
        """Return the number of a session by its name; KeyError for one that is not there."""
        return self._numbers[corpus, session]

    def evidence(self, place: TurnPlace) -> Evidence:
        """Return a turn as evidence."""
        return Evidence(session=self.sessions[place.session].session, turn=place.turn)

    def _key(self, place: TurnPlace) -> tuple[str, str, str]:
        turn = self[place]
        return self.sessions[place.session].corpus, turn.speaker or turn.role, " ".join(turn.text.casefold().split())

    def copies(self, place: TurnPlace) -> list[TurnPlace]:
        """Return the turns of the corpus in which the same person says the same, this one among them."""
        return self._copies.get(place, [place])

    def without_copies(self, places: Iterable[TurnPlace]) -> list[TurnPlace]:
        """Return the first copy of each turn, in the order given."""
        return list(dict.fromkeys(self.copies(place)[0] for place in places))

    def search(self, corpus: str, text: str, most: int) -> tuple[list[TurnPlace], int]:
        """Return the first ``most`` turns of a corpus that hold words of a text, and how many there are.

        Turns are ranked by BM25; those that hold the text as it is, as a part of a word, come after them. Copies
        count once.
        """
        if corpus not in self._own:
            return [], 0
        own, n = self._own[corpus], len(self._places)
        counts = count(self._tokens, _tokens(pl.Series([text])), (n, 1), whole=False)
        scores = np.where(own, Corpus.of(counts.texts, counts.lengths, np.arange(n)).scores(
            counts.queries[[0]], n, BM25.k1, BM25.b, lucene_idf), 0)
        ranked = np.argsort(-scores, kind="stable")[:np.count_nonzero(scores)]
        literal = normalise(pl.Series([" ".join(text.split())]))[0]
        held = self._lower.str.contains(literal, literal=True).to_numpy() if literal else np.zeros(n, bool)
        parts = np.flatnonzero(held & own & (scores == 0))
        found = self.without_copies(self._places[row] for row in np.concatenate([ranked, parts]))
        return found[:most], len(found)

    def describe(self, place: TurnPlace, *, near: bool = True) -> dict[str, Any]:
        """Return a turn for the page, with its copies and the turns before and after it."""
        session, turn, copies = self.sessions[place.session], self[place], self.copies(place)
        return {"session": session.session, "turn": place.turn, "title": safe_line(session.session),
                "said_on": day(session.said_on), "speaker": safe_line(turn.speaker or turn.role),
                "text": _cut(turn.text, LONGEST),
                "copies": [{"session": self.sessions[copy.session].session, "turn": copy.turn,
                            "said_on": day(self.sessions[copy.session].said_on)} for copy in copies],
                **({"before": self._near(place, -1), "after": self._near(place, 1)} if near else {})}

    def _near(self, place: TurnPlace, step: int) -> dict[str, str] | None:
        number = place.turn + step
        if not 0 <= number < len(self.sessions[place.session].turns):
            return None
        turn = self[TurnPlace(place.session, number)]
        return {"speaker": safe_line(turn.speaker or turn.role), "text": _cut(turn.text, NEAR)}


def day(moment: Moment) -> str:
    """Return a date, or the day and minute of a time; empty where it is not known.

    >>> day(datetime(2024, 3, 1, 18, 30)), day(None)
    ('2024-03-01 18:30', '')
    """
    if moment is None:
        return ""
    return f"{moment:%Y-%m-%d %H:%M}" if isinstance(moment, datetime) else f"{moment:%Y-%m-%d}"


def _cut(text: str, most: int) -> str:
    return safe_text(text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)")


def _tokens(texts: pl.Series) -> pl.DataFrame:
    return words(texts, None, LUCENE_STOP_WORDS, "auto")
