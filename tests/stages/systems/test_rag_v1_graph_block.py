from __future__ import annotations

import polars as pl

from memlab.evaluate.evidence import cost, shown_turns
from memlab.pipeline.tables import Tables, frame
from memlab.stages.read.pack import ByRank
from memlab.stages.read.prompt import PromptTemplate
from memlab.stages.read.reader import Reader
from memlab.stages.systems.rag_v1 import ENTITIES, LINKS, GraphBlock
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.stages.read.world import shown, tokens, world
from tests.stages.test_entity_graph import PEOPLE, TIES, table
from tests.stages.write.conversations import DAY


def blocked(tables: Tables, people: list[tuple] = PEOPLE, ties: list[tuple] = TIES, **settings: int) -> Tables:
    tables = tables.updated(ByRank().run(tables, None))  # type: ignore[arg-type]
    tables = tables.updated({"entities": table("entities", people), "links": table("links", ties, True)})
    block = GraphBlock(**settings)
    return tables.updated(block.run(tables.only(block.reads), None))  # type: ignore[arg-type]


THREE = [[("user", "I am here.")], [("user", "It is cold.")], [("user", "Bye.")]]


def test_the_block_is_the_last_item_and_belongs_to_no_unit() -> None:
    tables = blocked(world(THREE, [1, 0], asked=[("Where is Ann Lee?", None), ("And you?", None), ("Bo?", DAY)]))
    assert shown(tables)[:2] == ["[2023-05-21]\nuser: It is cold.", "[2023-05-20]\nuser: I am here."]
    assert shown(tables)[2] == (f"{ENTITIES}\n- ann  lee (person): A cook. Retired.\n- Bo (person): Her brother.\n"
                                f"- Oslo (location): Cold.\n{LINKS}\n- Ann Lee | brother of | Bo (2023-05-20)\n"
                                "- bo | Lives in | OSLO (2023-05-22)")
    assert len(shown(tables, 1)) == 2  # nothing to say
    assert shown(tables, 2)[2].count("\n- ") == 3
    assert tables["context"]["unit"].null_count() == 2
    assert tables["context"]["question"].to_list() == [0, 0, 0, 1, 1, 2, 2, 2]


def test_a_question_without_context_gets_the_block_alone() -> None:
    tables = blocked(world(THREE, [], asked=[("Bo?", DAY)]))
    assert [text.splitlines()[0] for text in shown(tables)] == [ENTITIES]


def test_a_block_keeps_to_its_tokens() -> None:
    asked = [("Where is Ann Lee?", None)]
    whole = shown(blocked(world(THREE, [0], asked=asked)))[1]
    for limit in range(1, tokens(whole) + 2):
        part = shown(blocked(world(THREE, [0], asked=asked), max_tokens=limit))[1:]
        assert all(whole.startswith(text) and tokens(text) <= limit for text in part)
        assert all(text.splitlines()[-1] not in (ENTITIES, LINKS) for text in part)
    assert shown(blocked(world(THREE, [0], asked=asked), max_tokens=tokens(whole)))[1] == whole


def test_without_entities_nothing_changes() -> None:
    tables = world(THREE, [0])
    packed = ByRank().run(tables, None)  # type: ignore[arg-type]
    made = blocked(tables, [], [])
    assert made["context"].equals(packed["context"])
    assert made["texts"].equals(packed["texts"])


def test_a_reader_sees_it_and_evaluation_counts_it_as_no_evidence(tmp_path) -> None:
    tables = blocked(world(THREE, [0], asked=[("Where is Ann Lee?", None)]))
    chat = ScriptedChat(lambda _: "There.")
    prompt = PromptTemplate(instructions="{history} {date} {question}", history="json")
    reader = Reader(chat=chat, prompt=prompt)
    reader.run(tables.only(reader.reads), Store(tmp_path))
    assert "brother of" in chat.asked[0].messages[0].content
    seen = shown_turns(tables["context"], tables)
    assert seen.rows() == [(0, 0, 0)]
    evidence = frame("evidence", {"question": [0], "session": [0], "turn": [0]}).with_columns(
        pl.lit(0, pl.Int32).alias("corpus"))
    paid = cost(tables, tables["ranking"].filter("selected"), evidence)
    first, second = tables["context"]["tokens"]
    assert paid["context/tokens"].to_list() == [first + second]
    assert paid["context/evidence_share"].to_list() == [first / (first + second)]
