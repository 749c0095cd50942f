from __future__ import annotations

import pytest

from memlab.stages.read.prompt import OneReader, PromptTemplate, RoutedPrompts

USUAL, COUNTING, TEMPORAL = (PromptTemplate(instructions=f"{n} {{history}}{{date}}{{question}}") for n in "uct")
ROUTED = RoutedPrompts(counting=COUNTING, temporal=TEMPORAL)


@pytest.mark.parametrize(("kind", "template"), [
    ("counting", COUNTING), ("multi_session", COUNTING), ("temporal", TEMPORAL), ("factual", USUAL), ("update", USUAL),
    ("general", USUAL), ("", USUAL)])
def test_the_class_of_a_question_chooses(kind: str, template: PromptTemplate) -> None:
    assert ROUTED.template(kind, USUAL) is template
    assert OneReader().template(kind, USUAL) is USUAL
