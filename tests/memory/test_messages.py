"""Messages of OpenAI's API as sessions of a live memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memlab.memory.memory import Memory, Session
from memlab.memory.messages import session_of_messages
from memlab.support.errors import MemlabError
from tests.small import lexical

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "I adopted a cat named Tom."},
    {"role": "assistant", "content": [{"type": "text", "text": "Lovely!"}]}]


def test_a_list_of_messages_is_added_like_the_session(tmp_path: Path) -> None:
    with Memory(tmp_path / "a", lexical()) as memory, Memory(tmp_path / "b", lexical()) as other:
        assert memory.add(MESSAGES, said_on="2023-05-20", name="cat") == 0
        assert memory.add(MESSAGES, said_on="2023-05-20", name="cat") == 0
        other.add(Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")], name="cat"))
        for asked in (memory, other):
            rows = asked.list().select("session", "name", "said_on", "turns").rows()
            assert rows == [(0, "cat", datetime(2023, 5, 20), 2)]
        found = [asked.search("Which cat?", now="2023-06-01") for asked in (memory, other)]
        assert found[0].equals(found[1])
        assert "I adopted a cat named Tom." in found[0]["text"][0]
        with pytest.raises(MemlabError, match="there with other words|with other words"):
            memory.add(MESSAGES[:2], said_on="2023-05-20", name="cat")


def test_the_date_is_the_given_one_or_that_of_the_messages() -> None:
    dated = [{**MESSAGES[1], "timestamp": "2024-03-01T09:40:00Z"}, {**MESSAGES[2], "created_at": 1709372400}]
    assert session_of_messages(dated).said_on == datetime(2024, 3, 1, 9, 40, tzinfo=UTC)
    assert session_of_messages(dated, said_on="2023-05-20").said_on == date(2023, 5, 20)
    assert session_of_messages(MESSAGES).said_on is None
    late = [{**MESSAGES[1], "date": "20 May 2023"}]
    with pytest.raises(MemlabError, match="message 0: '20 May 2023' is no date.*or give said_on"):
        session_of_messages(late)
    assert session_of_messages(late, said_on="2023-05-20").said_on == date(2023, 5, 20)


def test_an_unknown_field_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hi"}]
    with Memory(tmp_path, lexical()) as memory:
        memory.add(said, name="talk")
        uses: list[Callable[..., Any]] = [
            partial(memory.add, said), partial(memory.update, "talk", said),
            partial(memory.add_document, text="# Plan", name="plan.md")]
        for use in uses:
            with pytest.raises(MemlabError, match="there is no field 'user_id'. Fix: did you mean 'user'?"):
                use(user_id="ann")
            with pytest.raises(MemlabError, match="there is no field 'tags'. Fix: known: .*metadata"):
                use(tags=["a"])
        assert len(memory) == 1
