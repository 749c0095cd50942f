"""What a team states about things: each form, what is refused."""

from __future__ import annotations

import pytest

from memlab.data.questions.facts import facts_of


@pytest.mark.parametrize(("text", "kind", "question", "answer"), [
    ("Heads up: the launch moved to 12 May because of the audit.", "deadline", "When is the launch?", "12 May"),
    ("Demo with Ostsee Energie is scheduled for 21 March at 10:00.", "deadline",
     "When is the demo with Ostsee Energie?", "21 March at 10:00"),
    ("The deadline for abstracts is 10 May, and the deadline for posters is 24 May.", "deadline",
     "When is the deadline for posters?", "24 May"),
    ("Reminder: the tax filing is due on 31 July.", "deadline", "When is the tax filing due?", "31 July"),
    ("Deploys are frozen from 20 February until 25 February.", "deadline", "When are deploys frozen?",
     "20 February until 25 February"),
    ("I'm on vacation from 4 March to 15 March.", "deadline", "When is Ann on vacation?", "4 March to 15 March"),
    ("@Ana owns billing from now on.", "owner", "Who owns billing?", "Ana"),
    ("The owner of the payments service is Priya Nair.", "owner", "Who is the owner of the payments service?",
     "Priya Nair"),
    ("The Pro plan costs 49 euros per month, the Team plan costs 199 euros.", "price",
     "How much does the Pro plan cost?", "49 euros per month"),
    ("Flights to Lisbon cost 240 euros.", "price", "How much do the flights to Lisbon cost?", "240 euros"),
    ("The budget for the launch is 18,000 euros.", "price", "How much is the budget for the launch?", "18,000 euros"),
    ("We decided to use Postgres instead of MongoDB for billing.", "decision",
     "What did we decide to use instead of MongoDB for billing?", "Postgres"),
    ("We chose Grafana over Datadog for monitoring.", "decision", "What did we choose over Datadog for monitoring?",
     "Grafana"),
    ("Decision: we go with SQS for the queue.", "decision", "What do we go with for the queue?", "SQS")])
def test_each_form(text: str, kind: str, question: str, answer: str) -> None:
    assert (kind, question, answer) in [(fact.kind, fact.question, fact.answer) for fact in facts_of(text, "Ann")]


@pytest.mark.parametrize("text", [
    "The meeting is on 5 May.", "The deadline is 10 May!", "It costs 99 euros.", "It is on 12 May.",
    "Is the launch on 12 May?", "The launch is on 12 May?", "I think the launch is on 3 July.",
    "If the audit is on 2 June, tell me.", "Maybe the demo for Nordwind is on 7 May.",
    "The launch should be on 12 May.", "The launch is not on 12 May.", "> The launch is on 1 May",
    "Nobody owns the wiki.", "He owns the wiki.", "We chose the blue logo.", "We decided to use it for billing.",
    "We decided not to renew the contract with Zoom.", "That feature costs us 3 days every sprint.",
    "The old version is 1.29 on all clusters.", "Lunch is at one"])
def test_what_is_doubted_denied_or_not_named_is_no_fact(text: str) -> None:
    assert facts_of(text, "Ann") == []


def test_assistants_and_people_without_a_name_are_not_read_for_them() -> None:
    text = "The launch moved to 12 May."
    assert facts_of(text) == facts_of(text, "Jenkins", assistant=True) == []
