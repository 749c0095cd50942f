"""Readers of servers' replies and of stored completions: a value that tables can hold, or none."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.jsonl import SessionLine, TurnLine
from memlab.data.questions.propose import propose_by_model
from memlab.models.protocols import Completion
from memlab.stages.judge.cases import read as read_hypotheses
from memlab.stages.judge.llm import contains_yes, first_word
from memlab.stages.query.decompose import LLMDecompose
from memlab.stages.query.time_window import LLMWindows
from memlab.stages.rank.rerank_llm import many_scores, one_score
from memlab.stages.systems.memorystack.stages import MemoryStackJudge, array_scores
from memlab.stages.write.chunk import TurnChunker
from memlab.stages.write.extract_llm import LLMExtract
from memlab.store import completions
from tests.chats import ScriptedChat
from tests.fuzz.mutation import TEXTS, as_json, as_lines, fuzz, mutated, outcome
from tests.stages.query.worlds import asked, done
from tests.stages.write.conversations import talk

pytestmark = pytest.mark.slow

EXTRACTED = {"facts": [{"fact": "The user moved.", "turns": [1], "source": "user", "category": "event"}],
             "entities": [{"name": "Rome", "kind": "place", "summary": "a city"}],
             "relationships": [{"source": "user", "relation": "lives in", "target": "Rome", "when": "May"}]}
TALK = talk([("user", "I moved to Vancouver"), ("assistant", "Try the sea bus."), ("user", "It rains")])
ASKED = asked("What did I buy last Friday?", "Who is Ann?")
SESSION = SessionLine(corpus="ann", session="s1", said_on=datetime(2023, 5, 20), turns=[
    TurnLine(role="user", text="I adopted a cat."), TurnLine(role="assistant", text="Lovely!")])


def said(*valid: Any) -> st.SearchStrategy[str]:
    """Draw the text of a reply: JSON that is almost right, with words around it, or any text."""
    bodies = as_json(mutated(*valid)).map(lambda content: content.decode("utf-8", "replace"))
    around = st.sampled_from(("{}", "Sure: {} - more?", "```json\n{}\n```", "{}{}", "[{}]", "\ud800{}"))
    return st.builds(lambda form, body: form.replace("{}", body), around, bodies) | st.sampled_from(TEXTS) | st.text()


class Replies:
    """A store whose chat model gives the same reply to every prompt."""

    def __init__(self, text: str) -> None:
        self.reply = Completion(text, 1, 1, 0.0)

    def completions(self, chat: object, prompts: list[object], notes: object) -> list[Completion]:
        return [self.reply for _ in prompts]


CHAT = ScriptedChat(lambda _: "")


LINE = {"key": "k", "text": "yes", "prompt_tokens": 3, "completion_tokens": 2, "seconds": 0.5, "finish": "stop",
        "repaired": False, "logprob": -0.5}


@fuzz
@given(as_json(mutated(LINE)))
def test_lines_of_the_store(row: bytes) -> None:
    content = row[1:]
    digest = hashlib.blake2b(content, digest_size=8).hexdigest().encode()
    found = outcome(lambda: completions.decode(b'{"check": "' + digest + b'", ' + content + b"\n"))
    if found is not None:
        usable = pl.DataFrame({"text": [found[1].text], "tokens": [found[1].prompt_tokens]},
                              schema={"text": pl.String, "tokens": pl.Int32})
        assert usable.height == 1
        assert completions.decode(completions.encode(*found)) == found


@fuzz
@given(said({"score": 7}), said({"scores": [{"index": 1, "score": 10}, {"index": 2, "score": 3.5}]}), said([0.5, 1]))
def test_scores(one: str, many: str, array: str) -> None:
    for value in (outcome(lambda: one_score(Completion(one, 1, 1, 0.0))),):
        assert value is None or 0 <= value <= 10
    for scores, most in ((outcome(lambda: many_scores(Completion(many, 1, 1, 0.0), 2)), 10),
                         (outcome(lambda: array_scores(Completion(array, 1, 1, 0.0), 2)), 1)):
        assert scores is None or len(scores) == 2
        assert all(0 <= score <= most for score in scores or ())


@fuzz
@given(said({"verdict": "yes"}, {"correct": True, "reason": "it agrees"}))
def test_verdicts(text: str) -> None:
    assert outcome(lambda: contains_yes(text)) in (True, False)
    assert outcome(lambda: first_word(text)) in (True, False, None)
    assert outcome(lambda: MemoryStackJudge(chat=CHAT).read(text)) in (True, False, None)


@pytest.mark.filterwarnings("ignore::UserWarning")
@fuzz
@given(said(EXTRACTED), st.sampled_from((None, '"', "]", "}")))
def test_extracted_facts(text: str, end: str | None) -> None:
    whole = text if end is None else text[:text.rfind(end)]
    stage = LLMExtract(chat=CHAT, max_tokens=64)
    chunked = TALK.updated(TurnChunker().run(TALK, Replies("")))  # type: ignore[arg-type]
    made = outcome(lambda: stage.run(chunked.only(stage.reads), Replies(whole)))  # type: ignore[arg-type]
    assert made["memories"].height >= 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@fuzz
@given(said({"start": "2023-06-30", "end": None}), said({"queries": ["the cat", "the dog"]}))
def test_windows_and_parts_of_questions(window: str, parts: str) -> None:
    windows = outcome(lambda: done(LLMWindows(chat=CHAT), ASKED, Replies(window)))  # type: ignore[arg-type]
    queries = outcome(lambda: done(LLMDecompose(chat=CHAT), ASKED, Replies(parts)))  # type: ignore[arg-type]
    assert windows["queries"].height == 2 <= queries["queries"].height


@fuzz
@given(said({"questions": [{"question": "Which pet?", "turn": 0}, {"question": "What then?", "turn": 1}]}))
def test_proposed_questions(text: str) -> None:
    questions, _ = outcome(lambda: propose_by_model([SESSION], CHAT, Replies(text)))  # type: ignore[arg-type]
    assert all(type(one.turn) is int and one.text.encode() for one in questions)


@fuzz
@given(as_lines(mutated([{"question_id": "q1", "hypothesis": "a cat"}, {"question_id": "q2", "hypothesis": "Ann"}]))
       | as_json(mutated([{"question_id": "q1", "hypothesis": "a cat"}])))
def test_hypotheses(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "h.jsonl").write_bytes(content)
    outcome(lambda: read_hypotheses(tmp_path / "h.jsonl", {"q1": 0, "q2": 1}))
