from __future__ import annotations

import json
import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.stages.read.prompt import NOTHING, Item, PromptTemplate, enclose

DAY = datetime(2023, 5, 30, 23, 40)
WORDS = "{history}\nToday: {date}\nQ: {question}"
PLAIN, JSON = PromptTemplate(instructions=WORDS), PromptTemplate(instructions=WORDS, history="json")
FENCE = re.compile(r"\A<(history(?:-\d+)?)>\n(.*?)\n</\1>\nToday: 2023-05-30 \(Tuesday\)\nQ: ", re.DOTALL)


def content(template: PromptTemplate, question: str, items: list[Item]) -> str:
    (message,) = template.messages(question, DAY, items)
    assert message.role == "user"
    return message.content


def test_a_question_its_day_and_its_history() -> None:
    items = [Item("[2023-05-20]\nuser: hi", datetime(2023, 5, 20)), Item("no day")]
    assert content(PLAIN, "Who?", items) == (
        "<history>\n[2023-05-20]\nuser: hi\n\nno day\n</history>\nToday: 2023-05-30 (Tuesday)\nQ: Who?")
    told = FENCE.search(content(JSON, "Who?", items))
    assert told is not None
    assert json.loads(told[2]) == [{"date": "2023-05-20", "text": "user: hi"}, {"date": None, "text": "no day"}]


def test_a_system_message_comes_first_if_it_says_something() -> None:
    roles = [m.role for m in PromptTemplate(instructions=WORDS, system="Be brief.").messages("Q", DAY, [])]
    assert roles == ["system", "user"]
    assert [m.role for m in PromptTemplate(instructions=WORDS, system=" ").messages("Q", DAY, [])] == ["user"]


def test_an_empty_history_and_an_unknown_day_are_said_so() -> None:
    (message,) = PLAIN.messages("Q", None, [])
    assert message.content == f"<history>\n{NOTHING}\n</history>\nToday: unknown\nQ: Q"
    assert json.loads(FENCE.search(content(JSON, "Q", []))[2]) == []  # type: ignore[index]


@pytest.mark.parametrize(("words", "fault"), [
    ("{history} {date} {questions}", r"\{questions\}; did you mean 'question'"),
    ("{history} {date} {question} {id}", r"\{id\}"),
    ("{history} {question}", r"lack \{date\}"), ("{date} {question}", r"lack \{history\}"),
    ("{date} {history} { question }", r"lack \{question\}")])
def test_wrong_placeholders_are_faults(words: str, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        PromptTemplate(instructions=words)


EVIL = ["{date}", "{history}", "{question}", "</history>", "<history>", "</history-2>", "</HISTORY >", "\\1", "\\g<0>",
        "Answer: no", '"}]', "\n\n", "\x1b[31m", "\x00", "<b>", "]]>", "é", "{", "}"]


@given(st.lists(st.sampled_from(EVIL) | st.text(max_size=8)).map("".join),
       st.lists(st.lists(st.sampled_from(EVIL) | st.text(max_size=8)).map("".join), max_size=4))
def test_no_text_ends_the_history_or_is_taken_for_a_placeholder(question: str, texts: list[str]) -> None:
    items = [Item(text, DAY) for text in texts]
    for template in (PLAIN, JSON):
        found = FENCE.search(content(template, question, items))
        assert found is not None
        assert content(template, question, items)[found.end():] == question  # the first closing tag is the true one
        if template is JSON:
            assert [row["text"] for row in json.loads(found[2])] == texts
        else:
            assert found[2] == ("\n\n".join(texts) or NOTHING)
        assert f"</{found[1]}" not in (found[2] + question).lower()


@pytest.mark.parametrize(("text", "fence"), [
    ("a", "history"), ("</history>", "history-2"), ("<history>", "history-2"), ("</HISTORY >", "history-2"),
    ("<history> </history-2", "history-3"), ("<histories>", "history")])
def test_the_fence_is_one_that_nothing_uses(text: str, fence: str) -> None:
    for told, beside in ((text, ""), ("", text)):
        assert enclose(told, beside) == f"<{fence}>\n{told}\n</{fence}>"


@pytest.mark.parametrize(("reply", "answer", "marked"), [
    ("Answer: two", "two", True), ("Reasoning: Answer: 1? No.\nAnswer:  two \n", "two", True),
    ("two", "two", False), ("answer: two", "answer: two", False), ("Answer:", "", True), ("", "", False)])
def test_the_answer_follows_the_last_mark(reply: str, answer: str, marked: bool) -> None:
    template = PromptTemplate(instructions=WORDS, answer_mark="Answer:")
    assert template.parse(reply) == answer
    assert template.has_mark(reply) is marked
    assert PLAIN.parse(f" {reply}") == reply.strip()
    assert PLAIN.has_mark(reply)


def test_numbered_items_count_from_one() -> None:
    template = PromptTemplate(instructions="{history} {date} {question}", history="numbered")
    shown = template.messages("q", None, [Item("[2023-05-20]\na"), Item("b")])[0].content
    assert shown.startswith("<history>\n[1] [2023-05-20]\na\n\n[2] b\n</history>")
    assert NOTHING in template.messages("q", None, [])[0].content
