"""Sessions of a live memory, and their rows on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from memlab.errors import MemlabError, did_you_mean
from memlab.runtime.clock import midnight, read_moment
from memlab.text.display import replace_surrogates

ROLES = ("user", "assistant")


@dataclass(frozen=True)
class Turn:
    """A turn of a session; people who talk to each other are all users, and have names."""

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
    """One chat or meeting: its date or time, or None if it is unknown, and its turns.

    A time with a UTC offset is a moment, one without the reading of a wall clock; a memory holds either
    (``memlab.runtime.clock``).

    ``name`` is chosen by the caller. A name that is there already is not added again, so that an addition may be
    repeated safely; without a name the same words are a second session.

    >>> Session("2023-05-20", [("user", "I adopted a cat."), Turn("assistant", "Lovely!")]).turns[0].text
    'I adopted a cat.'
    """

    said_on: date | datetime | None
    turns: tuple[Turn, ...]
    name: str | None

    def __init__(self, said_on: datetime | date | str | None, turns: Iterable[Turn | Sequence[str | None]],
                 name: str | None = None) -> None:
        object.__setattr__(self, "said_on", None if said_on is None else read_moment(said_on, "session, said_on"))
        object.__setattr__(self, "turns", tuple(t if isinstance(t, Turn) else _turn(t) for t in turns))
        if not (name is None or isinstance(name, str)):
            raise MemlabError(f"expected text, got {type(name).__name__}", where="session, name")
        object.__setattr__(self, "name", name if name is None else replace_surrogates(name))


def _turn(parts: Sequence[str | None]) -> Turn:
    if isinstance(parts, str) or len(parts) not in (2, 3):
        raise MemlabError(f"{parts!r:.60} is no turn", where="session",
                          fix='write turns as [("user", text)] or [Turn("user", text, speaker)]')
    role, text, *speaker = parts
    return Turn(role, text, *speaker)  # type: ignore[arg-type]  # checked by Turn itself


def _other_form() -> MemlabError:
    return MemlabError("a stored session is not as memlab writes it", where="live memory",
                       fix="bring the memory back from a copy")


@dataclass(frozen=True)
class Entry:
    """A session and its number, without its forgotten turns; of a forgotten session the number alone is left.

    numbers: the number of each turn that is left, counted from 0 when the session was added.
    """

    id: int
    session: Session | None
    numbers: tuple[int, ...] = ()

    @classmethod
    def new(cls, number: int, session: Session) -> Entry:
        """Return the entry of a new session."""
        return cls(number, session, tuple(range(len(session.turns))))

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Entry:
        """Return the entry of a row that ``row`` returned; raise MemlabError for one of another form."""
        try:
            turns = [Turn(role, text, speaker) for _, role, speaker, text in row["turns"]]
            session, numbers = Session(row["said_on"], turns, row["name"]), tuple(t[0] for t in row["turns"])
            id_ = row["id"]
        except (KeyError, TypeError, ValueError) as error:
            raise _other_form() from error
        if not all(type(number) is int and 0 <= number < 2**31 for number in (id_, *numbers)):
            raise _other_form()
        return cls(id_, session, numbers)

    def row(self) -> dict[str, Any]:
        """Return the entry of a session that is not forgotten as plain JSON values."""
        assert self.session is not None
        said_on = self.session.said_on
        turns = [[n, t.role, t.speaker, t.text] for n, t in zip(self.numbers, self.session.turns)]
        return {"id": self.id, "name": self.session.name, "said_on": said_on and said_on.isoformat(), "turns": turns}

    def without(self, turns: Iterable[int] | None) -> Entry:
        """Return the entry without some turns; if none is left, or for None, the session is forgotten."""
        left = set() if turns is None else set(self.numbers) - set(turns)
        if self.session is None or not left:
            return Entry(self.id, None)
        kept = [turn for number, turn in zip(self.numbers, self.session.turns) if number in left]
        return Entry(self.id, Session(self.session.said_on, kept, self.session.name), tuple(sorted(left)))


def same_words(a: Session, b: Session) -> bool:
    """Return whether two sessions say the same at the same time."""
    return (a.turns, a.said_on and midnight(a.said_on)) == (b.turns, b.said_on and midnight(b.said_on))
