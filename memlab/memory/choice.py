"""Sessions and turns that a caller chooses, by name and number or by a filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memlab.memory.working_set import WorkingSet
from memlab.stages.query.where import Where
from memlab.support.errors import MemlabError

Turns = Mapping[int, set[int]]
"""Turns by session."""


def choose(sessions: WorkingSet, session: int | str | None = None, turns: Iterable[int] | None = None,
           where: Mapping[str, Any] | None = None, replaced: bool = True) -> Turns:
    """Return the turns of a session, or those that fit a filter; raise MemlabError for none, and for both.

    A filter without a role chooses whole sessions; whether ``replaced`` ones, with a newer version, are among them.
    """
    if session is not None and where is None:
        return _of_session(sessions, session, turns)
    if session is not None or turns is not None or not where:
        raise MemlabError("nothing is named" if where is None else "a filter is given without a condition" if not where
                          else "a session and a filter are given", where="session, where",
                          fix='give a session, or a filter such as where={"user": "ann"}')
    wanted = Where.read(where, sessions.clock())
    found: dict[int, set[int]] = {}
    left_out = set() if replaced else sessions.replaced()
    for number, turn in sessions.turns_that_fit(wanted).select("session", "turn").iter_rows():
        if number in left_out:
            continue
        found.setdefault(number, set()).update(() if turn is None else (turn,))
    return found


def _of_session(sessions: WorkingSet, session: int | str, turns: Iterable[int] | None) -> Turns:
    number = sessions.number(session)
    turns_of_session = sessions.turns[number]
    if turns is None:
        return {number: turns_of_session}
    given = [*turns] if isinstance(turns, Iterable) else []
    if not given or not turns_of_session.issuperset(given):
        raise MemlabError(f"session {number} has no turns {given or turns!r:.80}", where="turns",
                          fix=f"give a list with some of {sorted(turns_of_session)!r:.200}")
    return {number: {int(turn) for turn in given}}  # those of numpy cannot be stored
