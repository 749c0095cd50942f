from __future__ import annotations

import pytest

from memlab.pipeline.tables import Tables
from memlab.stages.write.chunk import Levels, SessionChunker, TurnChunker
from memlab.stages.write.extract import Chunked
from memlab.stages.write.extract_rules import RulesExtract, category, entities, links, names, sentences, spans
from memlab.support.errors import MemlabError
from tests.stages.write.conversations import in_two_corpora, talk, written

CHAT = talk([("user", "Hi! I moved to Oslo. I love tea, and it rains. Nice?"),
             ("assistant", "I love tea as well. A pot costs $12."),
             ("user", "ok")],
            [("user", "Hm.")])


def after(stage: RulesExtract, tables: Tables = CHAT, chunk: object = None) -> Tables:
    chunked = tables.updated((chunk or TurnChunker()).run(tables, None))  # type: ignore[attr-defined]
    made = stage.run(chunked.only(stage.reads), None)
    assert set(made) == {*stage.writes, "notes"}
    out = chunked.updated(made)
    assert out["memories"]["memory"].to_list() == list(range(out["memories"].height))
    known = set(out["texts"]["text_id"])
    assert known >= {*out["memories"]["key_id"], *out["memories"]["value_id"]}
    return out


def test_facts_are_memories_beside_the_raw_ones() -> None:
    out = after(RulesExtract())
    raw, facts = (out["memories"].filter(kind=kind) for kind in ("turn", "fact"))
    assert raw.equals(TurnChunker().run(CHAT, None)["memories"])  # type: ignore[arg-type]
    assert written(out)[4:] == ["[2023-05-20] user: I moved to Oslo.", "[2023-05-20] user: I love tea, and it rains.",
                                "[2023-05-20] assistant: A pot costs $12."]
    line = "user: Hi! I moved to Oslo. I love tea, and it rains. Nice?"
    assert written(out, "value")[4:] == [line, line, "assistant: I love tea as well. A pot costs $12."]
    assert facts.select("session", "turns", "source", "category").rows() == [
        (0, [0], "user", "event"), (0, [0], "user", "preference"), (0, [1], "assistant", "amount")]
    assert facts["said_on"].to_list() == [raw["said_on"][0]] * 3


def test_a_session_without_facts_keeps_its_memories_where_facts_replace() -> None:
    out = after(RulesExtract(into="replace"))
    assert written(out, "value") == ["user: I moved to Oslo.", "user: I love tea, and it rains.",
                                     "assistant: A pot costs $12.", "user: Hm."]
    assert written(out)[2:] == ["[2023-05-20] assistant: A pot costs $12.", "Hm."]
    assert set(out["memories"]["kind"]) == {"fact"}  # one kind: memories can be ranked as they are
    assert out["memories"]["category"].to_list() == ["event", "preference", "amount", None]


def test_facts_are_appended_to_the_keys_of_all_memories_that_hold_their_turns() -> None:
    out = after(RulesExtract(into="merge"), chunk=Levels(chunkers=[TurnChunker(), SessionChunker()]))
    keys = written(out)
    assert keys[0] == ("Hi! I moved to Oslo. I love tea, and it rains. Nice?\n[2023-05-20] user: I moved to Oslo.\n"
                       "[2023-05-20] user: I love tea, and it rains.")
    assert keys[2:4] == ["ok", "Hm."]
    assert keys[4].endswith("ok\n[2023-05-20] user: I moved to Oslo.\n[2023-05-20] user: I love tea, and it rains.\n"
                            "[2023-05-20] assistant: A pot costs $12.")
    before = Levels(chunkers=[TurnChunker(), SessionChunker()]).run(CHAT, None)["memories"]  # type: ignore[arg-type]
    assert out["memories"].drop("key_id").equals(before.drop("key_id"))


def test_a_session_in_two_haystacks_gives_each_its_own_day() -> None:
    out = after(RulesExtract(into="replace"), in_two_corpora(CHAT))
    keys = written(out)
    assert keys[0] == "[2023-05-20] user: I moved to Oslo."
    assert keys[4] == "user: I moved to Oslo."
    assert out["memories"]["corpus"].to_list() == [0] * 4 + [1] * 4
    assert out["links"].select("corpus", "source", "relation", "target").rows()[0] == (0, "user", "moved to", "Oslo")
    assert out["links"]["corpus"].to_list() == [0, 0, 1, 1]


def test_the_same_sentence_twice_is_one_fact_of_both_turns() -> None:
    out = after(RulesExtract(), talk([("user", "I love tea."), ("user", "Really. I love tea.")]))
    assert out["memories"].filter(kind="fact")["turns"].to_list() == [[0, 1]]


def test_speakers_with_names_stand_before_their_facts() -> None:
    out = after(RulesExtract(dated=False), talk([("user", "I love tea, Bo.", "Ann"), ("user", "My name is Bo!", "Bo")]))
    assert written(out)[2:] == ["Ann: I love tea, Bo.", "Bo: My name is Bo!"]
    assert out["entities"].select("name", "kind", "summary").rows() == [
        ("Ann", "person", ""), ("Bo", "person", "Ann: I love tea, Bo. Bo: My name is Bo!")]
    assert out["links"].select("source", "relation", "target").rows() == [("Ann", "likes", "tea")]


def test_chunks_of_facts_replace_the_memories() -> None:
    out = after(RulesExtract(into="replace", chunked=Chunked(size=60, overlap=0)))
    day = "[2023-05-20] "
    assert written(out) == [f"# Memories from 2023-05-20\n{day}user: I moved to Oslo.",
                            f"# Memories from 2023-05-20\n{day}user: I love tea, and it rains.",
                            f"# Memories from 2023-05-20\n{day}assistant: A pot costs $12.", "Hm."]
    assert written(out, "value") == [*written(out)[:3], "user: Hm."]
    assert out["memories"].select("turns", "source").rows()[:3] == [([0], "user"), ([0], "user"), ([1], "assistant")]
    one = after(RulesExtract(into="replace", chunked=Chunked()))["memories"]
    assert one.select("turns", "source").row(0) == ([0, 1], "conversation")  # of both


def test_chunks_need_facts_that_stand_alone() -> None:
    with pytest.raises(MemlabError, match="only where they replace"):
        RulesExtract(chunked=Chunked())


@pytest.mark.parametrize("sessions", [[[("user", "Hello")]], [[("user", " ")]], [[("assistant", "?!")]],
                                      [[("user", "Ich bin im Mai nach Wien gezogen.")],
                                       [("user", "\u6211\u53bb\u4e86\u5de5\u5730\u3002")]]])
@pytest.mark.parametrize("into", ["keys", "replace", "merge"])
def test_a_word_a_blank_or_another_language_loses_no_session(sessions: list, into: str) -> None:
    out = after(RulesExtract(into=into), talk(*sessions))  # type: ignore[arg-type]
    raw = TurnChunker().run(talk(*sessions), None)["memories"]  # type: ignore[arg-type]
    assert set(out["memories"]["session"]) == set(raw["session"])


@pytest.mark.parametrize(("sentence", "slot"), [
    ("I really do enjoy hiking.", "preference"), ("My favorite tea is green.", "preference"),
    ("I'd like a table for two.", None), ("Love the red!", "preference"), ("It ran 5 km.", "amount"),
    ("We paid \u20ac30.", "amount"), ("See you on Friday.", "date"), ("I may go.", None), ("It was in May.", "date"),
    ("three red dogs ran by", "count"), ("We visited twice.", "count"), ("I've just adopted it.", "event"),
    ("I'm planning a trip.", "event"), ("My boss is kind.", "other"), ("I live here.", "other"), ("Great.", None),
    ("Do you live here?", None),
])
def test_slots(sentence: str, slot: str | None) -> None:
    assert category(sentence) == slot


def test_sentences_keep_names_with_points_and_lose_the_marks_of_lists() -> None:
    text = "See Mr. B. Long. He's in!  Ok\n\n1. **Tea**: hot.\n- milk\n...\n\u771f\u7684\u3002\u597d\u3002"
    assert sentences(text) == [
        "See Mr. B. Long.", "He's in!", "Ok", "Tea: hot.", "milk", "\u771f\u7684\u3002", "\u597d\u3002"]


def test_names() -> None:
    said = [("user", "Yesterday Emma and I saw the Tower of London in London."), ("user", "Emma works at Acme Corp."),
            ("user", "My sister Emma loves Fridays in Rome, but I don't."), ("user", "Bye Emma!")]
    assert [n for n, *_ in spans(said[0][1])] == ["Yesterday Emma", "Tower of London", "London"]
    assert [n for n, *_ in spans("Sunny in Oslo, says Bo's dog.")] == ["Oslo", "Bo"]
    assert [n for n, *_ in spans("Emma left.", frozenset(["Emma"]))] == ["Emma"]
    found = {e.name: e.kind for e in entities(said, ["Bo"], names(said, ["Bo"]))}
    assert found == {"Bo": "person", "Emma": "person", "Tower of London": "object", "London": "location",
                     "Acme Corp": "organization", "Rome": "location"}


@pytest.mark.parametrize(("sentence", "told"), [
    ("I live in New York with Emma.", [("Ann", "lives in", "New York")]),
    ("I work for Acme, and I'm married to Bo.", [("Ann", "works at", "Acme"), ("Ann", "married to", "Bo")]),
    ("My brother works at the zoo.", [("Ann's brother", "works at", "zoo")]),
    ("Emma loves old films.", [("Emma", "likes", "old films")]), ("Nature loves you.", []),
    ("I have two dogs.", [("Ann", "owns", "two dogs")]), ("I have a feeling.", []),
    ("I don't like tea.", []), ("Do I like tea?", []), ("I love the idea.", []),
    ("I hate rain.", [("Ann", "dislikes", "rain")]),
    ("I moved here from Sweden.", [("Ann", "moved from", "Sweden")]),
    ("My friend, Bo Diddley, sings.", [("Ann", "has friend", "Bo Diddley")]),
])
def test_relationships(sentence: str, told: list[tuple[str, str, str]]) -> None:
    assert [(r.source, r.relation, r.target) for r in links(sentence, "Ann", frozenset(["Emma"]))] == told
