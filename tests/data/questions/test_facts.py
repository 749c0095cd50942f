"""Facts by rules: each kind of statement, what is refused, speakers with names, and what these say of things."""

from __future__ import annotations

import pytest

from memlab.data.questions.facts import facts_of


@pytest.mark.parametrize(("text", "question", "answer"), [
    ("By the way, my cat is called Tom.", "What is my cat called?", "Tom"),
    ("My manager is Tomasz now.", "Who is my manager now?", "Tomasz"),
    ("I got a tent from REI for $200.", "How much did I pay for the tent from REI?", "$200"),
    ("I've been taking pottery lessons for two months.", "How long have I been taking pottery lessons?", "two months"),
    ("Last Tuesday, I visited the Natural Museum.", "When did I visit the Natural Museum?", "Last Tuesday"),
    ("I love the clay vase that I bought at a fair.", "Where did I buy the clay vase?", "at a fair"),
    ("I went to Rome with my parents.", "Who did I go to Rome with?", "my parents"),
    ("I got a gift card for my team lead.", "What did I get for my team lead?", "a gift card"),
    ("I'm a freelance graphic designer.", "What do I do for work?", "freelance graphic designer"),
    ("I prefer tea over coffee.", "What do I prefer to coffee?", "tea"),
    ("I have a dentist appointment on May 1 at 9:30.", "When is my dentist appointment?", "on May 1 at 9:30"),
    ("I'm allergic to peanuts.", "What am I allergic to?", "peanuts")])
def test_each_kind_of_fact(text: str, question: str, answer: str) -> None:
    assert (question, answer) in [(fact.question, fact.answer) for fact in facts_of(text)]


@pytest.mark.parametrize("text", [
    "I bought it in May.", "She moved to Rome in May.", "I'm training for the York 10K on August 3.",
    "I had a great time at the beach.", "Did I buy a lamp at IKEA?", "If I bought a lamp at IKEA, I would regret it.",
    "I would have bought a lamp at IKEA.", "I didn't buy a lamp at IKEA.", "Write a story: I bought a lamp at IKEA.",
    "- I bought a lamp at IKEA.", "I went to the gym.", "I bought a lamp.", "I prefer a mix of both.",
    "```\nI moved to Rome in May.\n```", "I bought a lamp at IKEA. " + "Lorem ipsum. " * 400])
def test_what_does_not_stand_alone_is_no_fact(text: str) -> None:
    assert facts_of(text) == []


def test_a_relative_date_is_an_answer_and_never_in_a_question_and_no_fact_is_asked_about_backwards() -> None:
    assert [(fact.question, fact.answer) for fact in facts_of("I bought a lamp at IKEA last week.")] == [
        ("Where did I buy a lamp?", "at IKEA"), ("When did I buy a lamp at IKEA?", "last week")]


def test_speakers_with_a_name_are_asked_about_by_name() -> None:
    text = "I took my kids to a park yesterday, and my favourite colour is green. I'm moving to Rome in May."
    assert [fact.question for fact in facts_of(text, "Ann")] == [
        "When did Ann take their kids to a park?", "What is Ann's favourite colour?", "Where is Ann moving?",
        "When is Ann moving to Rome?"]
    assert facts_of("I have a cat called Tom.", r"\1{x}")[0].question == r"What is \1{x}'s cat called?"


def test_assistants_are_read_where_they_restate() -> None:
    text = "I bought a boat at IKEA. You said you got a new bike from REI in May. The launch moved to 12 May."
    assert [(fact.question, fact.answer) for fact in facts_of(text, "Jenkins", assistant=True)] == [
        ("Where did I get a new bike from?", "REI"), ("When did I get a new bike from REI?", "in May")]


@pytest.mark.parametrize(("text", "question", "answer"), [
    ("Heads up: the launch moved to 12 May because of the audit.", "When is the launch?", "12 May"),
    ("Bad news: Launch of Web 2.0 slips to 18 May, it isn't tested.", "When is the launch of Web 2.0?", "18 May"),
    ("The concert will be on Saturday 3 May, 7 pm, in Bath.", "When is the concert?", "Saturday 3 May, 7 pm"),
    ("Deploys are frozen from 20 to 25 February.", "When are deploys frozen?", "20 to 25 February"),
    ("The lease with Acme runs out on 30 June.", "When does the lease with Acme run out?", "30 June"),
    ("I need the poster by 2 May.", "By when does Ann need the poster?", "2 May"),
    ("I'm away from 4 March to 15 March.", "When is Ann away?", "4 March to 15 March"),
    ("I take over the importer from Tom.", "Who takes over the importer?", "Ann"),
    ("The owner of the wiki is Priya Nair.", "Who is the owner of the wiki?", "Priya Nair"),
    ("The Pro plan costs 49 euros per month, the Team plan 199.", "How much is the Pro plan?", "49 euros per month"),
    ("The price of the Pro plan goes up from 49 to 55 euros.", "How much is the Pro plan?", "55 euros"),
    ("croissant costs 2.20, butter went up to 7.90 a kilo", "How much is the butter?", "7.90 a kilo"),
    ("The rate limit of the API is now 60 requests.", "What is the rate limit of the API?", "60 requests"),
    ("We decided to use Postgres for billing.", "What did we decide to use for billing?", "Postgres"),
    ("We've decided to stop supporting Safari 14.", "What did we decide to stop supporting?", "Safari 14"),
    ("We're going with SQS for the queue, not RabbitMQ.", "What do we go with for the queue?", "SQS")])
def test_each_form_of_a_thing(text: str, question: str, answer: str) -> None:
    assert (question, answer) in [(fact.question, fact.answer) for fact in facts_of(text, "Ann")]


@pytest.mark.parametrize("text", [
    "The meeting is on 5 May.", "The due date is 10 May!", "It costs 99 euros.", "Wedding is on 12 May.",
    "The launch is on 12 May?", "I think the launch is on 3 July.", "If the audit is on 2 June, tell me.",
    "The launch should be on 12 May.", "The launch is not on 12 May.", "> The launch is on 1 May", "He owns the wiki.",
    "Nobody owns the wiki.", "Let's do our share.", "I'm doing well.", "We decided to use it for billing.",
    "That feature costs us 3 days every sprint.", "The old version is 1.29 on all clusters.", "The cap is 350 euros."])
def test_what_is_doubted_denied_or_not_named_is_no_fact(text: str) -> None:
    assert facts_of(text, "Ann") == []
