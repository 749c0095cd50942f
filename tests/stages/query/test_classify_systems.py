"""Every classifier by rules, on questions of our own."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.question_types import FALLBACK, VOCABULARY, first_of
from memlab.stages.query.classify import Rules
from memlab.stages.systems.gimli import GIMLI_CLASSES, GimliClasses
from memlab.stages.systems.memorystack.stages import DETECTORS, MemoryStackDetectors
from memlab.stages.systems.rag_v1 import V1_TYPES, V1Types
from tests.stages.query.worlds import asked, done

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


@pytest.mark.parametrize("stage", [V1Types, MemoryStackDetectors])
@pytest.mark.parametrize("question", [
    "What did I cook two weeks ago?", "Where was I a couple of days ago?", "What did I plant three days earlier?",
    "What did I paint the other day?", "What did I say this morning?", "What did I dream last night?",
    "Where did I go on Friday?", "Where did I go on Saturday night?", "What did I cook Sunday?",
    "Where do I eat next Friday?", "What did I do the Friday before last?", "What did I fix this past Monday?",
    "What did I do over the weekend?", "Where did I spend last weekend?", "Which films have I seen this year?",
    "Where did I travel last August?", "Which trips did I take from May to July?", "What broke at the end of April?",
    "What did I buy between May 3 and May 9?", "What happened on March 5?", "What happened on the 3rd of May?",
    "What did Ines do on 7 May 2023?", "What did I do on 2023-05-01?", "What did I do in 2022?",
    "Where did I swim last summer?", "What did I knit in the winter?", "Where was I in the autumn of 2021?",
    "What did I sell before the move?", "What did I learn during the course?", "In what order did I read them?",
])
def test_words_of_time_make_a_question_temporal(stage, question: str) -> None:
    assert "temporal" in stage.classify(question)


@pytest.mark.parametrize("stage", [V1Types, MemoryStackDetectors])
@pytest.mark.parametrize("question", [
    "May I borrow the drill?", "Do you think this may help?", "Where did I march with Omar?",
    "What is on my march playlist?", "What did June give me?", "Which gift did I get from June?",
    "What is in May's bag?", "What is the second book on my list?", "Is this second drill mine?",
    "Which Sunday dress do I own?", "Who runs the Friday club?", "Where do I spend my Fridays?",
    "What does the spring in the sofa cost?", "What colour is my bicycle?", "How much is 2022 times two?",
    "Who is Augustus?", "What is the name of my sundial?",
])
def test_words_that_only_look_like_time_do_not(stage, question: str) -> None:
    assert "temporal" not in stage.classify(question)


@pytest.mark.parametrize(("question", "expected"), [
    ("How do I descale the kettle?", "procedural"),
    ("What are the steps to renew my passport?", "procedural"),
    ("Why did Ines leave the choir?", "conceptual"),
    ("What is the difference between the two leases?", "conceptual"),
    ("Would Omar enjoy a week in the mountains?", "conceptual"),
    ("What colour is my bicycle?", "factual"),
    ("", "factual"),
])
def test_gimli_classes(question: str, expected: str) -> None:
    assert GimliClasses.classify(question) == (expected,)


def test_all_speak_one_vocabulary() -> None:
    spoken = {name for rules in (V1_TYPES, DETECTORS, GIMLI_CLASSES) for name, _ in rules} | {"general"}
    assert spoken <= set(VOCABULARY)
    assert {*FALLBACK, *FALLBACK.values()} <= set(VOCABULARY)


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
