from __future__ import annotations

import pytest
from pydantic import ValidationError

from memlab.read.agents import Agents, OneReader, Routed
from memlab.read.prompt import PromptTemplate

USUAL, COUNTING, TEMPORAL = (PromptTemplate(instructions=f"{n} {{history}}{{date}}{{question}}") for n in "uct")
ROUTED = Routed(counting=COUNTING, temporal=TEMPORAL)


@pytest.mark.parametrize(("question", "template"), [
    ("How many plants did I buy?", COUNTING), ("When did I move?", TEMPORAL), ("How many days ago was it?", TEMPORAL),
    ("Who is Ann?", USUAL), ("Can you recommend a film?", USUAL), ("", USUAL)])
def test_the_words_of_a_question_choose(question: str, template: PromptTemplate) -> None:
    assert ROUTED.template(question, USUAL) is template
    assert OneReader().template(question, USUAL) is USUAL


def test_both_are_agents_and_specialists_are_templates() -> None:
    assert isinstance(ROUTED, Agents)
    assert isinstance(OneReader(), Agents)
    with pytest.raises(ValidationError):
        Routed(counting=COUNTING)  # type: ignore[call-arg]
