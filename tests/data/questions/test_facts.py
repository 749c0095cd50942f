"""Facts by rules: each kind of statement, what is refused, speakers with names, and what these say of things."""

from __future__ import annotations

import pytest

from memlab.data.questions.facts import facts_of


@pytest.mark.parametrize(("text", "kind", "question", "answer"), [
    ("By the way, my cat is called Tom.", "name", "What is my cat called?", "Tom"),
    ("I adopted a beagle named Rex.", "name", "What is my beagle called?", "Rex"),
    ("My manager is Tomasz now.", "name", "Who is my manager now?", "Tomasz"),
    ("I just turned 32.", "age", "How old am I?", "32"),
    ("My monthly rent is about $1,715.", "amount", "How much is my monthly rent?", "about $1,715"),
    ("I spent $120 on a silver necklace.", "amount", "How much did I spend on a silver necklace?", "$120"),
    ("I got a tent from REI for $200.", "amount", "How much did I pay for the tent from REI?", "$200"),
    ("My commute is 45 minutes each way.", "duration", "How long is my commute?", "45 minutes"),
    ("I've been taking pottery lessons for two months.", "duration", "How long have I been taking pottery lessons?",
     "two months"),
    ("I have two cats.", "possession", "How many cats do I have?", "two"),
    ("My sister's wedding is on June 15th.", "date", "When is my sister's wedding?", "June 15th"),
    ("Last Tuesday, I visited the Natural Museum.", "time", "When did I visit the Natural Museum?", "Last Tuesday"),
    ("I love the clay vase that I bought at a fair.", "place", "Where did I buy the clay vase?", "at a fair"),
    ("I got my shoes from Zara.", "source", "Where did I get my shoes from?", "Zara"),
    ("I went to Rome with my parents.", "person", "Who did I go to Rome with?", "my parents"),
    ("I got a gift card for my team lead.", "object", "What did I get for my team lead?", "a gift card"),
    ("I switched from coffee to tea.", "change", "What did I switch to from coffee?", "tea"),
    ("I'm a freelance graphic designer.", "job", "What do I do for work?", "freelance graphic designer"),
    ("I have a degree in physics.", "degree", "What do I have a degree in?", "physics"),
    ("My favourite soccer team is Ajax.", "favourite", "What is my favourite soccer team?", "Ajax"),
    ("I prefer tea over coffee.", "preference", "What do I prefer to coffee?", "tea"),
    ("My cat Tom is 4 years old and hates the vet.", "age", "How old is my cat?", "4 years old"),
    ("I have a dentist appointment on November 14 at 9:30.", "date", "When is my dentist appointment?",
     "on November 14 at 9:30"),
    ("We plan to spend three weeks in Japan.", "place", "Where do I plan to spend three weeks?", "in Japan"),
    ("I'm allergic to peanuts.", "health", "What am I allergic to?", "peanuts")])
def test_each_kind_of_fact(text: str, kind: str, question: str, answer: str) -> None:
    assert (kind, question, answer) in [(fact.kind, fact.question, fact.answer) for fact in facts_of(text)]


@pytest.mark.parametrize("text", [
    "I bought it in May.", "She moved to Rome in May.", "I'm training for the York 10K on August 3.",
    "I got one at IKEA.", "I met him at a party.", "I had a great time at the beach.", "Did I buy a lamp at IKEA?",
    "If I bought a lamp at IKEA, I would regret it.", "I would have bought a lamp at IKEA.",
    "I didn't buy a lamp at IKEA.", "Write a story: I bought a lamp at IKEA.", "- I bought a lamp at IKEA.",
    "As an AI, I moved to Rome in May.", "I went to the gym.", "I bought a lamp.", "I prefer a mix of both.",
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


@pytest.mark.parametrize(("text", "kind", "question", "answer"), [
    ("Heads up: the launch moved to 12 May because of the audit.", "deadline", "When is the launch?", "12 May"),
    ("Bad news: Launch of Web 2.0 slips to 18 May, it isn't tested.", "deadline", "When is the launch of Web 2.0?",
     "18 May"),
    ("Demo with Ostsee is scheduled for 21 March at 10:00.", "deadline", "When is the demo with Ostsee?",
     "21 March at 10:00"),
    ("The concert will be on Saturday 3 May, 7 pm, in Bath.", "deadline", "When is the concert?",
     "Saturday 3 May, 7 pm"),
    ("Reminder: the tax filing is due on 31 July.", "deadline", "When is the tax filing due?", "31 July"),
    ("Deploys are frozen from 20 to 25 February.", "deadline", "When are deploys frozen?", "20 to 25 February"),
    ("The lease with Acme runs out on 30 June.", "deadline", "When does the lease with Acme run out?", "30 June"),
    ("I need the poster by 2 May.", "deadline", "By when does Ann need the poster?", "2 May"),
    ("I'm away from 4 March to 15 March.", "deadline", "When is Ann away?", "4 March to 15 March"),
    ("@Ana owns billing from now on.", "owner", "Who owns billing?", "Ana"),
    ("I take over the importer from Tom.", "owner", "Who takes over the importer?", "Ann"),
    ("Ines and Lou will run the stall.", "owner", "Who runs the stall?", "Ines and Lou"),
    ("The owner of the wiki is Priya Nair.", "owner", "Who is the owner of the wiki?", "Priya Nair"),
    ("The Pro plan costs 49 euros per month, the Team plan 199.", "price", "How much is the Pro plan?",
     "49 euros per month"),
    ("The price of the Pro plan goes up from 49 to 55 euros.", "price", "How much is the Pro plan?", "55 euros"),
    ("croissant stays at 2.20, butter went up to 7.90 a kilo", "price", "How much is the butter?", "7.90 a kilo"),
    ("The coffee costs 4.50 now.", "price", "How much is the coffee?", "4.50"),
    ("Flights to Lisbon cost 240 euros.", "price", "How much are the flights to Lisbon?", "240 euros"),
    ("The rate limit for the API is now 60 requests per minute.", "figure", "What is the rate limit for the API?",
     "60 requests per minute"),
    ("The churn dashboard lives in Looker now.", "where", "Where is the churn dashboard?", "in Looker"),
    ("We decided to use Postgres instead of MongoDB for billing.", "decision",
     "What did we decide to use instead of MongoDB for billing?", "Postgres"),
    ("We've decided to stop supporting Safari 14.", "decision", "What did we decide to stop supporting?", "Safari 14"),
    ("We settled on Grafana for monitoring.", "decision", "What did we choose for monitoring?", "Grafana"),
    ("We're going with SQS for the queue, not RabbitMQ.", "decision", "What do we go with for the queue?", "SQS")])
def test_each_form_of_a_thing(text: str, kind: str, question: str, answer: str) -> None:
    assert (kind, question, answer) in [(fact.kind, fact.question, fact.answer) for fact in facts_of(text, "Ann")]


@pytest.mark.parametrize("text", [
    "The meeting is on 5 May.", "The due date is 10 May!", "It costs 99 euros.", "Wedding is on 12 May.",
    "The launch is on 12 May?", "I think the launch is on 3 July.", "If the audit is on 2 June, tell me.",
    "Maybe the demo for Nordwind is on 7 May.", "The launch should be on 12 May.", "The launch is not on 12 May.",
    "> The launch is on 1 May", "Nobody owns the wiki.", "He owns the wiki.", "Let's do our share.", "I'm doing well.",
    "We chose the blue logo.", "We decided to use it for billing.", "That feature costs us 3 days every sprint.",
    "The old version is 1.29 on all clusters.", "Lunch is at one", "The cap is 350 euros."])
def test_what_is_doubted_denied_or_not_named_is_no_fact(text: str) -> None:
    assert facts_of(text, "Ann") == []
