from __future__ import annotations

import json
import re

import pytest

from memlab.experiment.config.instantiate import choice_settings
from memlab.stages.rank.rerank_llm import KINDS
from memlab.stages.systems.memorystack.stages import ArrayRerank, schema
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.fences import inside
from tests.stages.rank.rankings import body, ranking
from tests.stages.rank.test_rerank_llm import dated


def run(stage: ArrayRerank, table, store: Store):
    tables = dated().updated({"ranking": table})
    return stage.run(tables.only(stage.reads), store)["ranking"]


def replying(text: str) -> ScriptedChat:
    return ScriptedChat(lambda _: text)


def test_one_prompt_for_the_whole_pool_and_scores_in_its_order(store: Store) -> None:
    chat = replying("[0.1, 0.9, 0.1, 1.0]")
    after = run(ArrayRerank(chat=chat, pool=4), ranking([.9, .8, .7, .6, .5]), store)
    assert len(chat.asked) == 1
    assert after["unit"].to_list() == [3, 1, 0, 2, 4]  # 0 and 2 tie and keep their order
    assert after["llm"].to_list() == [1, .9, .1, .1, None]
    assert json.loads(chat.asked[0].schema or "") == json.loads(schema(4))


def test_the_preset_asks_as_published(store: Store) -> None:
    node = choice_settings("rank/rerank/memorystack")
    assert node.pop("_target_") == "memlab.stages.systems.memorystack.stages.ArrayRerank"
    chat = replying(json.dumps([.5] * 5))
    stage = ArrayRerank(**{**node, "chat": chat})
    assert (stage.pool, stage.max_chars, stage.dates, stage.typed) == (20, 200, False, False)
    run(stage, ranking([.9, .8, .7, .6, .5]), store)
    system, user = chat.asked[0].messages
    assert inside(user.content, "QUESTION") == "Question: How many plants did I buy?"
    assert re.match(rf"\[1 \w+\] Ann: {body(0, 0, 0)}\n\[2 \w+\] ", inside(user.content, "MEMORIES"))
    assert not any(words in system.content for words in KINDS.values())
    assert "There are 5 memories" in system.content


def test_each_memory_is_cut_to_its_first_characters(store: Store) -> None:
    chat = replying("[1, 0]")
    run(ArrayRerank(chat=chat, pool=2, dates=False, max_chars=6), ranking([.9, .8]), store)
    assert re.match(r"\[1 \w+\] Ann: t\n\[2 \w+\] Ann: ", inside(chat.asked[0].messages[-1].content, "MEMORIES"))


@pytest.mark.parametrize("bad", ["[1, 0, 1]", "[1]", "[2, 0]", '["a", "b"]', "high, low"])
def test_any_other_reply_keeps_the_order_and_is_counted(store: Store, bad: str) -> None:
    table = ranking([.9, .8])
    with pytest.warns(UserWarning, match="1 of 1 replies of the reranker could not be read; 1 of 1 questions keep"):
        after = run(ArrayRerank(chat=replying(bad), pool=2), table, store)
    assert after.select(table.columns).equals(table)
