from __future__ import annotations

import json
import re

import polars as pl
import pytest

from memlab.models.chat.openai import OpenAIChat
from memlab.models.protocols import Prompt
from memlab.pipeline.tables import Tables
from memlab.pipeline.transcript import NOTE
from memlab.stages.write.chunk import TurnChunker
from memlab.stages.write.extract_llm import INSTRUCTION, SCHEMA, LLMExtract
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.chats import ScriptedChat
from tests.fences import inside
from tests.models.chatserver import serving
from tests.stages.write.conversations import in_two_corpora, talk, written

CHAT = talk([("user", "I moved to Vancouver"), ("assistant", "Try the sea bus."), ("user", "It rains")])


def fact(text: str, *turns: int, source: str = "user", category: str = "event") -> dict:
    return {"fact": text, "turns": [*turns], "source": source, "category": category}


def said(*facts: dict, entities: list[dict] | None = None, relationships: list[dict] | None = None) -> str:
    return json.dumps({"facts": [*facts], "entities": entities or [], "relationships": relationships or []})


def numbered(prompt: Prompt) -> list[tuple[int, str]]:
    """The turns of a prompt, by their numbers."""
    return [(int(n), line) for n, line in re.findall(r"^(\d+)\. \w+: (.*)", prompt.messages[-1].content, re.MULTILINE)]


def echoed(prompt: Prompt) -> str:
    return said(*(fact(f"The user said {line[:20]}.", n) for n, line in numbered(prompt)))


def after(stage: LLMExtract, store: Store, tables: Tables = CHAT, chunk: object = None) -> Tables:
    chunked = tables.updated((chunk or TurnChunker()).run(tables, store))  # type: ignore[attr-defined]
    made = stage.run(chunked.only(stage.reads), store)
    assert set(made) - {"notes"} == set(stage.writes)
    assert made["memories"]["memory"].to_list() == list(range(made["memories"].height))
    return chunked.updated(made)


def extract(reply: str, store: Store, into: str = "replace", **more) -> Tables:
    return after(LLMExtract(chat=ScriptedChat(lambda _: reply), into=into, **more), store)  # type: ignore[arg-type]


def test_facts_name_their_turns_and_who_said_them(store: Store) -> None:
    out = extract(said(fact("The user moved to Vancouver.", 1), fact("The sea bus was recommended.", 2, source="user"),
                       fact("It rains in Vancouver.", 3, 1, 3, category="other")), store, "keys")
    rows = out["memories"].filter(kind="fact")
    assert rows.select("turns", "source", "category").rows() == [
        ([0], "user", "event"), ([1], "assistant", "event"), ([0, 2], "user", "other")]  # the turn knows its role
    assert written(out)[3] == "[2023-05-20] The user moved to Vancouver."
    assert written(out, "value")[5] == "user: I moved to Vancouver\n\nuser: It rains"


def test_the_prompt_has_the_numbered_turns_a_schema_and_no_date(store: Store) -> None:
    chat = ScriptedChat(echoed)
    after(LLMExtract(chat=chat), store)
    (prompt,) = chat.asked
    assert prompt.messages[0].content == f"{INSTRUCTION}\n{NOTE}"
    assert inside(prompt.messages[-1].content, "CONVERSATION") == (
        "1. user: I moved to Vancouver\n2. assistant: Try the sea bus.\n3. user: It rains\n")
    assert prompt.schema == SCHEMA
    assert "2023" not in "".join(m.content for m in prompt.messages)


def test_requests_at_a_time_are_bounded_for_extraction(store: Store) -> None:
    talks = [talk([("user", f"I moved to town {n}")]) for n in range(12)]
    tables = talks[0].updated({name: pl.concat([
        one[name].with_columns(pl.lit(n, pl.Int32).alias("corpus")) if "corpus" in one[name].columns else one[name]
        for n, one in enumerate(talks)]) for name in ("texts", "sessions", "turns")})
    with serving(rule=lambda _: said(), delay=0.02) as server:
        model = OpenAIChat(model="tiny", url=server.url, concurrency=8, window=4096, max_tokens=64)
        after(LLMExtract(chat=model, at_once=3), store, tables)
        assert (len(server.requests), server.most) == (12, 3)


def test_a_session_is_asked_about_once_in_however_many_haystacks(store: Store) -> None:
    two, chat = in_two_corpora(CHAT), ScriptedChat(echoed)
    out = after(LLMExtract(chat=chat, into="replace"), store, two)
    assert len(chat.asked) == 1
    assert written(out)[0] == "[2023-05-20] The user said I moved to Vancouver."
    assert written(out)[3] == "The user said I moved to Vancouver."
    after(LLMExtract(chat=chat, into="merge", dated=False), store, two)  # another arm asks nothing anew
    assert len(chat.asked) == 1


@pytest.mark.parametrize(("turns", "text", "found"), [
    ((7, 0), "It always rains there.", [2]), ((7, 2), "It always rains.", [1]), ((), "Vancouver it is.", [0]),
    ((99,), "Nobody heard this.", [0, 1, 2])])
def test_turns_out_of_range_fall_back_to_the_words_shared(turns: tuple[int, ...], text: str, found: list[int],
                                                          store: Store) -> None:
    assert extract(said(fact(text, *turns)), store)["memories"]["turns"].to_list() == [found]


@pytest.mark.parametrize("reply", ["", "I'm sorry.", "[]", "{}", '{"facts": "none"}', '{"facts": [{"fact": "cut o',
                                   said(fact("x", 1, category="joke")), said(fact("  \x00 ...", 1)), said()])
@pytest.mark.parametrize("into", ["keys", "replace", "merge"])
@pytest.mark.filterwarnings("ignore:1 of 1 extractions")
def test_without_a_usable_reply_the_raw_memories_stay(reply: str, into: str, store: Store) -> None:
    out = extract(reply, store, into)
    raw = TurnChunker().run(CHAT, store)["memories"]
    assert out["memories"].drop("kind").equals(raw.drop("kind"))


def test_of_a_reply_that_was_cut_off_the_whole_items_count(store: Store) -> None:
    whole = said(fact("The user moved.", 1), fact("It rains.", 3), entities=[{"name": "Oslo", "kind": "location",
                                                                            "summary": "x"}])
    for cut, facts, entities in ((whole.index("It rains") + 3, 1, 0), (whole.index('"summary"'), 2, 0),
                                 (len(whole) - 8, 2, 1)):
        chat = ScriptedChat(lambda _, at=cut: whole[:at], name=str(cut))
        with pytest.warns(UserWarning, match="1 of 1 extractions were cut off"):
            out = after(LLMExtract(chat=chat, into="replace"), store)
        assert (out["memories"].height, out["entities"].height) == (facts, entities)


def test_replies_are_cleaned_and_repeated_facts_are_one(store: Store) -> None:
    out = extract(said(fact("The user\n moved\u202e to \x1bOslo.", 1), fact("the USER moved to Oslo.", 3)), store)
    assert written(out, "value") == ["The user moved to Oslo."]


def test_entities_and_relationships(store: Store) -> None:
    oslo = {"name": "Oslo", "kind": "location", "summary": "Where the user lives."}
    told = [{"source": "user", "relation": "moved to", "target": "Oslo", "when": when}
            for when in ("", "2022-03-01", "last week", "on 2022-13-45")]
    out = extract(said(entities=[oslo, oslo, {**oslo, "name": " "}], relationships=[*told, told[0]]), store, "keys")
    assert out["entities"].rows() == [(0, 0, "Oslo", "location", "Where the user lives.")]
    days = [f"{d:%Y-%m-%d}" for d in out["links"]["said_on"]]
    assert days == ["2023-05-20", "2022-03-01", "2023-05-20", "2023-05-20"]  # else the session's own


def test_a_session_too_long_is_asked_about_in_parts(store: Store) -> None:
    turns = [("user", f"Turn{n} " + "word " * 40) for n in range(30)]
    chat = ScriptedChat(echoed, window=1024)
    with pytest.warns(UserWarning, match="1 of 1 sessions were asked about in parts"):
        out = after(LLMExtract(chat=chat, into="replace", max_tokens=256), store, talk(turns))
    assert len(chat.asked) > 2
    assert [n for p in chat.asked[::-1] for n, _ in numbered(p)] == list(range(1, 31))
    assert out["memories"]["turns"].to_list() == [[n] for n in range(30)]


@pytest.mark.filterwarnings("ignore:1 of 1 sessions")
def test_a_part_that_cannot_be_read_keeps_its_turns(store: Store) -> None:
    turns = [("user", f"Turn{n} " + "word " * 40) for n in range(30)]
    chat = ScriptedChat(lambda p: "no" if numbered(p)[0][0] > 1 else echoed(p), window=1024)
    with pytest.warns(UserWarning, match="could not be read"):
        out = after(LLMExtract(chat=chat, into="replace", max_tokens=256), store, talk(turns))
    assert sorted(t for ts in out["memories"]["turns"] for t in ts) == list(range(30))
    facts = out["memories"].filter(pl.col("category").is_not_null()).height
    assert 0 < facts < 30


def test_a_window_without_room_is_told(store: Store) -> None:
    with pytest.raises(MemlabError, match="max_tokens"):
        after(LLMExtract(chat=ScriptedChat(echoed), max_tokens=2000), store)
