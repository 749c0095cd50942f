"""Sessions that are added to a live memory, and their lines on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from memlab.errors import MemlabError, did_you_mean
from memlab.text.unicode import replace_surrogates

ROLES = ("user", "assistant")


@dataclass(frozen=True)
class Turn:
    """What was said at once; people talking to each other are all users, and have names."""

    role: str
    text: str
    speaker: str | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise MemlabError(f"there is no role '{self.role}'", where="turn", fix=did_you_mean(str(self.role), ROLES))
        for what, value in (("text", self.text), ("speaker", self.speaker)):
            if not isinstance(value, str) and not (what == "speaker" and value is None):
                raise MemlabError(f"expected text, got {type(value).__name__}", where=f"turn, {what}")
            if isinstance(value, str):
                object.__setattr__(self, what, replace_surrogates(value))


@dataclass(frozen=True, init=False)
class Session:
    """One chat or meeting: its day, or null where nobody knows it, and its turns.

    ``name`` is whatever the caller calls it. A name that is there already is not added again, so that an addition whose
    answer was lost may be repeated; without a name the same words are a second session.

    >>> Session("2023-05-20", [("user", "I adopted a cat."), Turn("assistant", "Lovely!")]).turns[0].text
    'I adopted a cat.'
    """

    said_on: datetime | None
    turns: tuple[Turn, ...]
    name: str | None

    def __init__(self, said_on: datetime | date | str | None, turns: Iterable[Turn | Sequence[str | None]],
                 name: str | None = None) -> None:
        object.__setattr__(self, "said_on", parse_moment(said_on, "session, said_on"))
        object.__setattr__(self, "turns", tuple(t if isinstance(t, Turn) else _turn(t) for t in turns))
        object.__setattr__(self, "name", name)


def _turn(given: Sequence[str | None]) -> Turn:
    if isinstance(given, str) or len(given) not in (2, 3):
        raise MemlabError(f"{given!r:.60} is no turn", where="session",
                          fix='write turns as [("user", text)] or [Turn("user", text, speaker)]')
    role, text, *speaker = given
    return Turn(role, text, *speaker)  # type: ignore[arg-type]  # checked by Turn itself


def parse_moment(given: datetime | date | str | None, where: str) -> datetime | None:
    """Read a day or a moment; a time zone is dropped, for days are as people lived them.

    >>> parse_moment("2023-05-20T18:30+02:00", ""), parse_moment(date(2023, 5, 20), "")
    (datetime.datetime(2023, 5, 20, 18, 30), datetime.datetime(2023, 5, 20, 0, 0))
    """
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            raise MemlabError(f"'{given:.40}' is no date", where=where,
                              fix="write 2023-05-20 or 2023-05-20T18:30") from None
    if given is None or isinstance(given, datetime):
        return given and given.replace(tzinfo=None)
    if isinstance(given, date):
        return datetime.combine(given, time())
    raise MemlabError(f"expected a date, got {type(given).__name__}", where=where)


@dataclass(frozen=True)
class Entry:
    """A session under its number, without what was forgotten of it: of all, nothing but the number is left.

    numbers: the number of each turn that is left, counted from 0 when the session was added.
    """

    id: int
    session: Session | None
    numbers: tuple[int, ...] = ()

    @classmethod
    def new(cls, number: int, session: Session) -> Entry:
        """Give a session its number."""
        return cls(number, session, tuple(range(len(session.turns))))

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Entry:
        """Read what ``row`` wrote."""
        if "turns" not in row:
            return cls(row["id"], None)
        turns = [Turn(role, text, speaker) for _, role, speaker, text in row["turns"]]
        return cls(row["id"], Session(row["said_on"], turns, row["name"]), tuple(t[0] for t in row["turns"]))

    def row(self) -> dict[str, Any]:
        """Return what is written of it."""
        if self.session is None:
            return {"id": self.id, "forgotten": True}
        said_on = self.session.said_on
        turns = [[n, t.role, t.speaker, t.text] for n, t in zip(self.numbers, self.session.turns)]
        return {"id": self.id, "name": self.session.name, "said_on": said_on and said_on.isoformat(), "turns": turns}

    def without(self, turns: Iterable[int] | None) -> Entry:
        """Return it without some turns; without any turn left, or for null, all of it is forgotten."""
        gone = set(self.numbers if turns is None else turns)
        if self.session is None or gone >= set(self.numbers):
            return Entry(self.id, None)
        left = [(n, t) for n, t in zip(self.numbers, self.session.turns) if n not in gone]
        session = Session(self.session.said_on, [t for _, t in left], self.session.name)
        return Entry(self.id, session, tuple(n for n, _ in left))


def same_words(a: Session, b: Session) -> bool:
    """Return whether two sessions say the same on the same day."""
    return json.dumps(Entry.new(0, a).row()) == json.dumps(Entry.new(0, b).row())
