from __future__ import annotations

import pytest
from pydantic import ValidationError

from memlab.read.prompt import OneReader, PromptRouter, PromptTemplate, RoutedPrompts

USUAL, COUNTING, TEMPORAL = (PromptTemplate(instructions=f"{n} {{history}}{{date}}{{question}}") for n in "uct")
ROUTED = RoutedPrompts(counting=COUNTING, temporal=TEMPORAL)


@pytest.mark.parametrize(("kind", "template"), [
    ("counting", COUNTING), ("multi_session", COUNTING), ("temporal", TEMPORAL), ("factual", USUAL), ("update", USUAL),
    ("general", USUAL), ("", USUAL)])
def test_the_class_of_a_question_chooses(kind: str, template: PromptTemplate) -> None:
    assert ROUTED.template(kind, USUAL) is template
    assert OneReader().template(kind, USUAL) is USUAL


def test_both_are_agents_and_specialists_are_templates() -> None:
    assert isinstance(ROUTED, PromptRouter)
    assert isinstance(OneReader(), PromptRouter)
    with pytest.raises(ValidationError):
        RoutedPrompts(counting=COUNTING)  # type: ignore[call-arg]
