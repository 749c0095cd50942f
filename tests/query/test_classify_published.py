"""Every classifier by rules, on questions of our own."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.query.classify import Rules
from memlab.query.classify_published import (
    DETECTORS,
    GIMLI_CLASSES,
    V1_TYPES,
    GimliClasses,
    MemoryStackDetectors,
    V1Types,
)
from memlab.question_types import FALLBACK, VOCABULARY, first_of
from tests.query.worlds import asked, done

STAGES = (Rules(), V1Types(), MemoryStackDetectors(), GimliClasses())


@pytest.mark.parametrize(("question", "expected"), [
    ("What did you suggest for the leaking tap?", "assistant"),
    ("Remind me which museum you recommended in Lyon.", "assistant"),
    ("Can you suggest a quiet café to work in?", "preference"),
    ("Any tips for growing basil on a windowsill?", "preference"),
    ("Should I take the blue tent or the green one?", "preference"),
    ("When did Ines start her apprenticeship?", "temporal"),
    ("How many weeks lie between the two races?", "temporal"),
    ("Which came first, the flood or the fire?", "temporal"),
    ("What is my current phone plan?", "update"),
    ("Is Omar still living above the bakery?", "update"),
    ("How many chairs have I repaired?", "multi_session"),
    ("Which hobbies do Ines and Omar both have?", "multi_session"),
    ("What colour is my bicycle?", "factual"),
    ("Where does Omar work?", "factual"),
    ("Tell me about the bakery.", "general"),
    ("", "general"),
])
def test_v1_types(question: str, expected: str) -> None:
    assert V1Types.classify(question) == (expected,)


@pytest.mark.parametrize(("question", "expected"), [
    ("What did you suggest for the leaking tap?", ("assistant",)),
    ("What's my favourite tea?", ("preference",)),
    ("Could you recommend a tent for me?", ("preference",)),
    ("What is my current phone plan?", ("update",)),
    ("When did Ines move?", ("temporal",)),
    ("How many chairs have I repaired in total?", ("multi_session",)),
    ("How many chairs have I repaired since May?", ("temporal", "multi_session")),
    ("Which tea do I like now, and how often did you recommend it before?",
     ("assistant", "preference", "update", "temporal", "multi_session")),
    ("What colour is my bicycle?", ("factual",)),
    ("", ("factual",)),
])
def test_memorystack_tells_every_detector_that_fires(question: str, expected: tuple[str, ...]) -> None:
    assert MemoryStackDetectors.classify(question) == expected


@pytest.mark.parametrize(("question", "expected"), [
    ("How do I descale the kettle?", "procedural"),
    ("What are the steps to renew my passport?", "procedural"),
    ("Why did Ines leave the choir?", "conceptual"),
    ("What is the difference between the two leases?", "conceptual"),
    ("Would Omar enjoy a week in the mountains?", "conceptual"),
    ("How many chairs have I repaired?", "factual"),
    ("When did Ines explain the rules?", "factual"),
    ("What colour is my bicycle?", "factual"),
    ("", "factual"),
])
def test_gimli_classes(question: str, expected: str) -> None:
    assert GimliClasses.classify(question) == (expected,)


def test_all_speak_one_vocabulary() -> None:
    spoken = {name for rules in (V1_TYPES, DETECTORS, GIMLI_CLASSES) for name, _ in rules} | {"general"}
    assert spoken <= set(VOCABULARY)
    assert {*FALLBACK, *FALLBACK.values()} <= set(VOCABULARY)
    assert len(V1_TYPES) + 1 == 7
    assert len(DETECTORS) == 5
    assert len(GIMLI_CLASSES) == 3


@given(st.text(max_size=80))
def test_any_words_have_a_class_whatever_their_case(words: str) -> None:
    for stage in STAGES:
        classes = stage.classify(words)
        assert len(set(classes)) == len(classes) > 0
        assert isinstance(stage, MemoryStackDetectors) or len(classes) == 1
        assert set(classes) <= set(VOCABULARY)
    plain = "".join(c for c in words if c.isascii())
    assert MemoryStackDetectors.classify(plain.lower()) == MemoryStackDetectors.classify(plain.upper())


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: type(s).__name__)
def test_every_question_has_a_row_in_the_order_of_questions(stage) -> None:
    tables = asked("Who is Ann?", "How many cats did I get since May?", "Who is Ann?")
    told = done(stage, tables)["classes"]
    assert told["question"].unique(maintain_order=True).to_list() == [0, 1, 2]
    assert told.filter(question=0)["class"].to_list() == told.filter(question=2)["class"].to_list()
    if isinstance(stage, MemoryStackDetectors):
        assert told.filter(question=1)["class"].to_list() == ["temporal", "multi_session"]


def test_the_first_row_is_the_class() -> None:
    rows = pl.DataFrame({"question": [2, 1, 2, 1], "class": ["update", "factual", "temporal", "counting"]})
    assert first_of(rows) == {2: "update", 1: "factual"}
    assert first_of(rows.clear()) == {}
