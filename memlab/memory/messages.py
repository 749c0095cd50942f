"""Messages of OpenAI's API as a session of a live memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from memlab.data.chats.content import read_openai
from memlab.data.chats.conversation import Tally
from memlab.data.chats.times import FIX, UnreadTime
from memlab.data.fields import check_fields
from memlab.memory.sessions import Session, Turn
from memlab.support.errors import MemlabError


def session_of_messages(messages: Iterable[Mapping[str, Any]], said_on: datetime | date | str | None = None,
                        name: str | None = None, **fields: Any) -> Session:
    """Return the session of a list of messages; ``said_on`` is the first date that a message states, unless given.

    fields: fields of a Session, such as user="ann".

    Instructions (system, developer) and results of tools are left out; pictures, files and calls of tools are named.
    Raises MemlabError for an entry that is no message, if nobody says anything, and for a date that cannot be read:
    a session without a date is found by questions of any day.

    >>> session = session_of_messages([{"role": "system", "content": "Be brief."},
    ...                                {"role": "user", "content": [{"type": "text", "text": "I adopted a cat."}]}])
    >>> session.turns
    (Turn(role='user', text='I adopted a cat.', speaker=None, offset=None, page=None),)
    """
    check_fields(fields)
    turns, dates = [], []
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise MemlabError(f"expected a list of messages, got {type(messages).__name__}", where="session",
                          fix='write [{"role": "user", "content": "..."}]')
    for index, value in enumerate(messages):
        where = f"message {index}"
        if not isinstance(value, Mapping):
            raise MemlabError(f"expected an object with role and content, got {type(value).__name__}", where=where,
                              fix='write {"role": "user", "content": "..."}')
        if message := read_openai(value, Tally(), where):
            turns.append(Turn(message.role, message.text, message.speaker))
            dates += [message.said_on] if message.said_on else []
            if isinstance(message.said_on, UnreadTime) and said_on is None:
                raise MemlabError(f"{message.said_on.value} is no date (field {message.said_on.field})", where=where,
                                  fix=f"{FIX}; or give said_on")
    if not turns:
        raise MemlabError("there is no message of the user or the assistant with words", where="session",
                          fix='give at least one, such as {"role": "user", "content": "..."}')
    return Session(said_on if said_on is not None else dates[0] if dates else None, turns, name, **fields)
