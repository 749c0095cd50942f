"""Functions that read the text of a turn, a question or a reply: a long text takes them no longer than 10 s."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlab.data.beam import _PLAN
from memlab.data.chats import agent_logs
from memlab.data.chats.chatgpt import without_marks
from memlab.data.chats.conversation import Tally
from memlab.data.chats.slack_texts import People, with_lines
from memlab.data.chats.whatsapp import split_line
from memlab.data.chats.whatsapp_words import drop_edit_mark, is_notice, name_attachments
from memlab.data.questions.facts import facts_of
from memlab.pipeline import transcript
from memlab.stages.judge import rules
from memlab.stages.judge.llm import contains_yes, first_word
from memlab.stages.query.classify import Rules
from memlab.stages.query.decompose import parts_of
from memlab.stages.query.expand_rules import inject_synonyms, rewrites, statement
from memlab.stages.search.bm25 import StemmedWords
from memlab.stages.systems.memorystack import relations
from memlab.stages.systems.oltramem import resolve_pronouns
from memlab.stages.write import contradiction, extract_rules
from memlab.stages.write.anchor import split_notes
from memlab.stages.write.context import clean_reply
from memlab.support.redaction import redact
from memlab.support.terminal import printable
from memlab.support.text import display, normalise
from memlab.support.text.display import replace_surrogates
from memlab.support.text.temporal.question_window import window_of
from memlab.support.text.temporal.resolve import find_expressions
from tests.fuzz.mutation import TEXTS, fuzz, outcome

pytestmark = pytest.mark.slow

LETTERS = 50_000
"""Of a text; what grows with the square of the length takes minutes for it."""

DATED = 5000
"""Letters of a text in which dates are looked for: each date takes a millisecond."""

READERS: dict[str, Callable[[str], Any]] = {
    "redact": redact, "shown": printable, "safe_text": display.safe_text, "safe_line": display.safe_line,
    "without_items": transcript.without_items, "fence": lambda text: transcript.fence({"a": text}),
    "normalise_locomo": normalise.normalise_locomo, "answer_tokens": normalise.answer_tokens,
    "normalise_vote": normalise.normalise_vote, "accepted_answers": normalise.accepted_answers,
    "words": lambda text: StemmedWords(r"\b\w\w+\b", (), "english")(pl.Series([text])),
    "window_of": lambda text: window_of(text[:DATED], date(2023, 5, 20)),
    "find_expressions": lambda text: find_expressions(text[:DATED], datetime(2023, 5, 20)),
    "classify": Rules.classify, "parts_of": parts_of, "statement": statement,
    "rewrites": lambda text: rewrites(text, 3), "inject_synonyms": inject_synonyms, "facts_of": facts_of,
    "contains_yes": contains_yes, "first_word": first_word, "abstains": rules.abstains,
    "same": lambda text: rules.same(text, "blue"), "within": lambda text: rules.within(text, "blue"),
    "split_notes": split_notes,
    "clean_reply": lambda text: clean_reply(text, 2, 50),
    "resolve_pronouns": lambda text: resolve_pronouns([("Ann", text), ("Bob", text)]),
    "names": lambda text: extract_rules.names([("Ann", text)], ["Ann"]),
    "entities": lambda text: list(extract_rules.spans(text)),
    "links": lambda text: list(extract_rules.links(text, "Ann", frozenset())),
    "sentences": extract_rules.sentences, "category": extract_rules.category,
    "states": lambda text: list(contradiction.states(text)),
    "claims": lambda text: list(contradiction.claims(text)), "values": lambda text: list(relations.values(text)),
    "marks": lambda text: without_marks(text, Tally()), "context": agent_logs._is_context,
    "reminders": lambda text: agent_logs.read_claude_code({"type": "user", "message": {"content": text}}, Tally(), ""),
    "commands": lambda text: agent_logs._typed_text(text, Tally()),
    "slack": People([], Tally()).plain, "blocks_of_slack": lambda text: with_lines(text, text.split("\n")),
    "kinds_of_slack": lambda text: People([], Tally()).blocks({"type": text, "text": text}),
    "attachments": name_attachments, "edited": drop_edit_mark, "notice": is_notice,
    "dated": split_line, "plan": lambda text: _PLAN.sub("", text),
}
"""Name -> what reads a text."""

PIECES = st.lists(st.one_of(
    st.sampled_from(["a", "A", "9", "-", "_", " ", "\n", ".", ",", ":", "'", '"', "(", "[", "[1]", "<", "`", "*", "•",
                     "?", "=", "Ann ", "Bob and ", "the ", "my ", "and ", "or ", "in ", "to ", "of ", "I ", "is ",
                     "was ", "not ", "now ", "yes", "no ", "May ", "3 ", "2023", "last ", "week ", "ago ", "day ",
                     "before ", "two ", "how many ", "did ", "what ", "key", "token", "eyJ", "sk-", "://", "->->",
                     ".pdf", " omitted", "<attached: ", "<system-reminder>", "</system-reminder>", "\ue200cite",
                     "\ue202", "\ue201", '\ue200entity\ue202["a",', "turn1a1", "<command-args>", "_input", "picker",
                     "\u30101\u2020", "&#", "<a>", "</a>", "he ", "she ", "moved ", "live ", "like ", "friend ",
                     "name ", "Mr. ", "e.g. ", "\t", "\r"]),
    st.sampled_from([text for text in TEXTS if len(text) < 20]), st.text(max_size=2)), min_size=1, max_size=4)


@fuzz
@example("redact", [], ["a"], [])
@example("redact", [], ["-eyJ"], [])
@example("category", [], ["9."], [])
@example("clean_reply", [], ["?"], [])
@example("without_items", [], ["\n"], [])
@example("claims", ["-"], ["\r"], ["week"])
@example("parts_of", ["how many in "], ["and in "], [])
@given(st.sampled_from(sorted(READERS)), PIECES, PIECES, PIECES)
def test_a_text_of_one_piece_again_and_again(name: str, before: list[str], pieces: list[str], end: list[str]) -> None:
    piece = "".join(pieces) or "a"
    text = replace_surrogates("".join(before) + piece * (LETTERS // len(piece)) + "".join(end))  # as all readers do
    outcome(lambda: READERS[name](text))


@pytest.mark.parametrize(("name", "piece"), [
    ("attachments", "<attached: "), ("reminders", "<system-reminder>"), ("marks", "\ue200cite"),
    ("marks", "\u30101\u2020"), ("marks", "\ue202"), ("marks", "turn1a1,"), ("slack", "<a|"), ("blocks_of_slack", " "),
    ("blocks_of_slack", "a\n"), ("kinds_of_slack", "a_"), ("commands", "<command-args>"), ("context", "<a></a> ")])
def test_an_opening_mark_that_is_never_closed(name: str, piece: str) -> None:
    started = time.process_time()
    READERS[name](piece * (400_000 // len(piece)))
    assert time.process_time() - started < 5.0
