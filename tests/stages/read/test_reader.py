from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.protocols import Prompt
from memlab.pipeline.tables import Tables
from memlab.stages.read.pack import ByDate, ByRank, FullContext
from memlab.stages.read.prompt import PromptTemplate, RoutedPrompts
from memlab.stages.read.reader import INCOMPLETE, PER_MESSAGE, PER_PROMPT, Reader, SelfConsistency
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.chats import ScriptedChat
from tests.stages.read.world import tokens, world
from tests.stages.write.conversations import DAY

WORDS = "{history}\nToday: {date}\nQ: {question}"
PLAIN = PromptTemplate(instructions=WORDS)
REASONED = PromptTemplate(instructions=WORDS, answer_mark="Answer:")
TALK = [[("user", "figs")], [("user", "dates")], [("user", "plums")]]
ASKED = [("What fruit?", DAY + timedelta(days=5)), ("How many fruits?", DAY + timedelta(days=6))]
OVERHEAD = PER_PROMPT + PER_MESSAGE


def asking(rule: Callable[[Prompt], str] = lambda prompt: "figs", **more) -> ScriptedChat:
    return ScriptedChat(rule, **more)


def packed(pack, ranking=(2, 0, 1), asked=ASKED, sessions=TALK) -> Tables:
    tables = world(sessions, ranking, asked=asked)
    return tables.updated(pack.run(tables.only(pack.reads), Store()))


def answered(reader: Reader, tables: Tables, store: Store, sample: int = 0) -> Tables:
    return reader.ask(tables.only(reader.reads), store, sample)


def prompts(reader: Reader, tables: Tables, repetition: int = 0) -> list[Prompt]:
    return [prompt for one in reader.build_prompts(tables, repetition) for prompt in one.prompts]


def unmarked(out: Tables) -> list[tuple[int, int]]:
    return out["notes"].filter(what="replies lack the mark before the answer").select("number", "of").rows()


def said(out: Tables) -> list[tuple[int, int, str]]:
    texts = dict(out["texts"].iter_rows())
    return [(q, s, texts[t]) for q, s, t in out["answers"].select("question", "sample", "text_id").iter_rows()]


def test_every_question_is_put_with_its_day_and_context_in_one_call(tmp_path: Path) -> None:
    chat, store = asking(), Store(tmp_path)
    reader, tables = Reader(chat=chat, prompt=PLAIN), packed(ByDate())
    out = reader.run(tables.only(reader.reads), store)
    history = f"<history>\n{FIGS}\n\n{DATES}\n\n{PLUMS}\n</history>"
    assert sorted(p.messages[0].content for p in chat.asked) == sorted(
        f"{history}\nToday: {day}\nQ: {text}" for day, text in (
            ("2023-05-25 (Thursday)", "What fruit?"), ("2023-05-26 (Friday)", "How many fruits?")))
    assert prompts(reader, tables) == sorted(chat.asked, key=lambda p: p.messages[0].content)
    assert said(out) == [(0, 0, "figs"), (0, 1, "figs"), (1, 0, "figs"), (1, 1, "figs")]
    assert out["answers"]["dropped"].to_list() == [0] * 4
    assert store.made["completions"] == 2
    assert reader.run(tables.only(reader.reads), store).keys() == {"answers", "texts", "notes"}
    assert len(chat.asked) == store.made["completions"] == 2  # nothing is asked twice


def test_tokens_are_told_once(tmp_path: Path) -> None:
    reader = Reader(chat=asking(), prompt=PLAIN, vote=SelfConsistency(samples=3))
    tables = packed(ByRank())
    answers = answered(reader, tables, Store(tmp_path))["answers"]
    cost = [tokens(p.messages[0].content) for p in prompts(reader, tables)]
    first = answers.filter(sample=0)
    assert first["prompt_tokens"].to_list() == [sum(cost[:3]), sum(cost[3:])]
    assert first["completion_tokens"].to_list() == [3, 3]
    assert first["seconds"].to_list() == [0.0, 0.0]
    assert answers["prompt_tokens"].sum() == sum(cost)
    assert answers.filter(pl.col("sample") > 0)["prompt_tokens"].null_count() == 6


def test_the_majority_is_the_answer_and_all_replies_are_kept(tmp_path: Path) -> None:
    replies = ["Hm. Answer: 2", "Answer: 3.", "So. Answer: 3", "four", "Answer: 5"]
    chat = asking(lambda p: replies[p.sample % 5])
    reader = Reader(chat=chat, prompt=REASONED, vote=SelfConsistency(samples=5))
    out = answered(reader, packed(ByRank()), Store(tmp_path))
    assert said(out)[:6] == [(0, 0, "3."), *[(0, i + 1, reply) for i, reply in enumerate(replies)]]
    assert {p.temperature for p in chat.asked} == {0.7}
    assert sorted(p.sample for p in chat.asked) == sorted([*range(5)] * 2)
    assert unmarked(out) == [(2, 10)]


def test_asking_again_shares_no_sample(tmp_path: Path) -> None:
    chat, store = asking(lambda p: str(p.sample)), Store(tmp_path)
    tables = packed(ByRank(), asked=ASKED[:1])
    reader = Reader(chat=chat, prompt=PLAIN)
    assert said(answered(reader, tables, store))[0] == (0, 0, "0")
    assert said(answered(reader, tables, store, sample=1))[0] == (0, 0, "1")
    three = Reader(chat=chat, prompt=PLAIN, vote=SelfConsistency(samples=3))
    assert [p.sample for p in prompts(three, tables, 2)] == [6, 7, 8]


def test_specialists_are_asked_in_the_same_call(tmp_path: Path) -> None:
    count = PromptTemplate(instructions="COUNT " + WORDS, answer_mark="Total:", max_tokens=7)
    chat = asking(lambda p: "Total: 3" if p.messages[0].content.startswith("COUNT") else "Total: x")
    reader = Reader(chat=chat, prompt=PLAIN, agents=RoutedPrompts(counting=count, temporal=PLAIN))
    tables = packed(ByRank())
    out = answered(reader, tables, Store(tmp_path))
    assert [text for _, s, text in said(out) if s == 0] == ["Total: x", "3"]
    assert [p.max_tokens for p in prompts(reader, tables)] == [None, 7]
    assert unmarked(out) == []


def window(texts: list[str]) -> int:
    """A window that holds exactly these items beside a reply of 10 tokens."""
    return 10 + OVERHEAD + tokens(PLAIN.messages(ASKED[0][0], ASKED[0][1], [])[0].content) - tokens("(nothing)") + sum(
        map(tokens, texts))


FIGS, DATES, PLUMS = (f"[2023-05-2{i}]\nuser: {text}" for i, text in enumerate(["figs", "dates", "plums"]))


@pytest.mark.parametrize(("pack", "first"), [
    (ByRank(), [PLUMS, FIGS]), (ByDate(), [FIGS, PLUMS]), (FullContext(), [DATES, PLUMS])])
def test_the_least_important_gives_way_to_a_small_window(pack, first: list[str], tmp_path: Path) -> None:
    tables = packed(pack, asked=ASKED[:1])
    for spare, kept, dropped in ((0, 2, 1), (-1, 1, 2), (tokens(FIGS), 3, 0)):
        chat = asking(window=window(first) + spare, max_tokens=10)
        reader = Reader(chat=chat, prompt=PLAIN)
        out = answered(reader, tables, Store(tmp_path))
        (prompt,) = chat.asked
        assert prompt.messages[0].content.count("user: ") == kept
        if kept == 2:
            assert "\n\n".join(first) in prompt.messages[0].content
        assert out["answers"]["dropped"].to_list() == [dropped] * 2


def test_a_window_without_room_for_the_template_stops_before_a_call(tmp_path: Path) -> None:
    chat = asking(window=100, max_tokens=50)
    with pytest.raises(MemlabError, match="a window of 100 leaves 50"):
        answered(Reader(chat=chat, prompt=PLAIN), packed(ByRank()), Store(tmp_path))
    assert not chat.asked


@given(st.lists(st.integers(1, 60), max_size=6), st.integers(0, 250), st.sampled_from(["plain", "json"]))
def test_a_prompt_always_fits_and_one_item_more_would_not(lengths: list[int], spare: int, history: str) -> None:
    template = PromptTemplate(instructions=WORDS, history=history)  # type: ignore[arg-type]
    chat = asking(window=window([]) + 10 + spare, max_tokens=10)
    tables = packed(ByRank(), range(len(lengths)), ASKED[:1], [[("user", "w " * n)] for n in lengths])
    reader = Reader(chat=chat, prompt=template)
    (asked,) = reader.build_prompts(tables)
    (wide,) = Reader(chat=asking(window=10**6, max_tokens=10), prompt=template).build_prompts(tables)
    assert wide.dropped == 0

    def cost(prompt: Prompt) -> int:
        return sum(tokens(m.content) for m in prompt.messages) + OVERHEAD + 10

    assert cost(asked.prompts[0]) <= chat.window
    assert (cost(wide.prompts[0]) <= chat.window) == (asked.dropped == 0)


def test_log_probabilities_lie_beside_the_answers(tmp_path: Path) -> None:
    """Sample 0 has that of the reply which the vote chose; without the setting there is no column."""
    tables = packed(ByRank())
    replies = {0: "figs", 1: "ripe figs and plums", 2: "ripe figs and plums"}
    chat = asking(lambda one: replies[one.sample], logprobs=True)
    out = answered(Reader(chat=chat, prompt=PLAIN, vote=SelfConsistency(samples=3)), tables, Store(tmp_path))
    rows = out["answers"].filter(question=0).sort("sample").select("sample", "logprob").rows()
    assert rows == [(0, -2.0), (1, -0.5), (2, -2.0), (3, -2.0)]
    plain = answered(Reader(chat=asking(), prompt=PLAIN), tables, Store())
    assert "logprob" not in plain["answers"].columns


def test_an_answer_is_what_follows_the_thinking(tmp_path: Path) -> None:
    tables = packed(ByRank(), asked=ASKED[:1])
    thought = "<think>Answer: dates? no.</think>\nSo. Answer: figs"
    out = answered(Reader(chat=asking(lambda _: thought), prompt=REASONED), tables, Store(tmp_path))
    assert said(out) == [(0, 0, "figs"), (0, 1, thought)]
    assert out["notes"].is_empty()


@pytest.mark.parametrize(("text", "finish"), [
    ("", "length"), ("", "stop"), ("<think>What fruit", "length"), ("<think>figs</think>", "stop"), ("fi", "length"),
    ("", "content_filter")])
def test_an_answer_that_is_empty_or_cut_is_named_and_counted(text: str, finish: str, tmp_path: Path) -> None:
    tables = packed(ByRank())
    chat = asking(lambda one: text if "What fruit" in one.messages[-1].content else "3",
                  finish=lambda one: finish if "What fruit" in one.messages[-1].content else "stop")
    with pytest.warns(UserWarning, match="1 of 2 answers are empty or incomplete.*chat.max_tokens"):
        out = answered(Reader(chat=chat, prompt=PLAIN), tables, Store(tmp_path))
    assert (INCOMPLETE, 1, 2) in out["notes"].rows()


def test_an_incomplete_reply_has_no_vote(tmp_path: Path) -> None:
    replies = {0: ("dates", "length"), 1: ("dates", "length"), 2: ("figs", "stop")}
    chat = asking(lambda one: replies[one.sample][0], finish=lambda one: replies[one.sample][1])
    out = answered(Reader(chat=chat, prompt=PLAIN, vote=SelfConsistency(samples=3)), packed(ByRank(), asked=ASKED[:1]),
                   Store(tmp_path))
    assert said(out)[0] == (0, 0, "figs")
    assert not any(what == INCOMPLETE for what, _, _ in out["notes"].rows())
