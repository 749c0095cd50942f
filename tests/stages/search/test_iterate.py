from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from memlab.models.protocols import Prompt
from memlab.pipeline.tables import Tables, frame
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.iterate import Iterate
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.chats import ScriptedChat
from tests.fences import inside
from tests.stages.search.world import day, world

ITEMS = [(0, "I bought a fern.", day(1)), (0, "A cactus came home.", day(2)), (0, "The orchid is new.", day(3)),
         (0, "It rained.", day(4)), (0, "A palm stands here now.", day(20))]
# memories 1005 to 1001; the palm is told after the question


def asked(*questions: str, classes: tuple[str, ...] = ("counting",)) -> Tables:
    tables = world(ITEMS, [(0, text, day(9)) for text in questions])
    tables = tables.updated({"classes": frame("classes", {
        "question": list(range(len(classes))), "class": list(classes)})})
    return tables.updated({"hits": BM25().run(tables.only(BM25.reads), Store())["hits"]})


def writes(*rounds: list[str] | str) -> ScriptedChat:
    """A model that replies in each round with these phrases, and with none afterwards."""
    def rule(prompt: Prompt) -> str:
        searched = inside(prompt.messages[-1].content, "SEARCHED").splitlines()
        at = next((i for i, made in enumerate(rounds) if isinstance(made, str) or f"- {made[0]}" not in searched),
                  len(rounds))
        made = rounds[at] if at < len(rounds) else []
        return made if isinstance(made, str) else json.dumps({"queries": made})
    return ScriptedChat(rule)


def run(stage: Iterate, tables: Tables) -> Tables:
    with TemporaryDirectory() as folder:  # no reply of another model is in the store
        return stage.run(tables.only(stage.reads), Store(Path(folder)))


def memories(made: Tables) -> list[int]:
    return made["hits"]["memory"].to_list()


def test_it_asks_looks_at_what_was_found_and_asks_for_what_is_missing() -> None:
    chat = writes(["cactus"], ["orchid"])
    made = run(Iterate(chat=chat, searches=[BM25()], rounds=3), asked("How many plants, such as a fern?"))
    assert sorted(memories(made)) == [1003, 1004]
    assert set(made["hits"]["lane"]) == {"iterate:turn"}
    assert set(made["hits"]["query"]) == {10}
    first, second, third = (prompt.messages[-1].content for prompt in chat.asked)
    assert "- [2023-05-02] I bought a fern." in first
    assert "cactus" not in first
    assert "- cactus\n" in second
    assert "- [2023-05-03] A cactus came home." in second
    assert "- [2023-05-04] The orchid is new." in third


def test_rounds_are_bounded_and_end_when_nothing_is_missing() -> None:
    tables = asked("How many plants?")
    one = writes(["cactus"], ["orchid"])
    assert memories(run(Iterate(chat=one, searches=[BM25()], rounds=1), tables)) == [1004]
    assert len(one.asked) == 1
    done = ScriptedChat(lambda _: '{"queries": []}')
    assert memories(run(Iterate(chat=done, searches=[BM25()], rounds=5), tables)) == []
    assert len(done.asked) == 1
    same = ScriptedChat(lambda _: '{"queries": ["cactus", "Cactus", "how many PLANTS?"]}')
    run(Iterate(chat=same, searches=[BM25()], rounds=5), tables)
    assert len(same.asked) == 2  # the second reply asks for nothing new


def test_only_questions_of_the_classes_are_asked_about() -> None:
    tables = asked("How many plants?", "Did it rain?", "Which plants?",
                   classes=("counting", "factual", "multi_session"))
    chat = writes(["cactus"])
    made = run(Iterate(chat=chat, searches=[BM25()]), tables)
    assert set(made["hits"]["query"]) == {10, 12}
    every = writes(["cactus"])
    run(Iterate(chat=every, searches=[BM25()], classes=(), rounds=1), tables)
    assert len(every.asked) == 3
    with pytest.raises(MemlabError, match="countin"):
        Iterate(chat=chat, searches=[BM25()], classes=("countin",))


def test_what_is_said_later_is_never_found() -> None:
    made = run(Iterate(chat=writes(["palm stands"]), searches=[BM25()]), asked("How many plants?"))
    assert 1001 not in memories(made)


def test_an_unreadable_reply_ends_the_question_and_is_counted() -> None:
    with pytest.warns(UserWarning, match="1 of 1 requests for missing items could not be read"):
        made = run(Iterate(chat=writes("Nothing."), searches=[BM25()]), asked("How many plants?"))
    assert memories(made) == []
    assert made["notes"]["number"].to_list() == [1]
