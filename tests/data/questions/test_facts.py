"""Facts by rules: each kind of statement, what is refused, speakers with names."""

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
    ("I'm flying to Denver on Friday.", "time", "When am I flying to Denver?", "on Friday"),
    ("I bought a lamp at IKEA.", "place", "Where did I buy a lamp?", "at IKEA"),
    ("I love the clay vase that I bought at a fair.", "place", "Where did I buy the clay vase?", "at a fair"),
    ("I got my shoes from Zara.", "source", "Where did I get my shoes from?", "Zara"),
    ("I went to Rome with my parents.", "person", "Who did I go to Rome with?", "my parents"),
    ("I switched from coffee to tea.", "change", "What did I switch to from coffee?", "tea"),
    ("I'm a freelance graphic designer.", "job", "What do I do for work?", "freelance graphic designer"),
    ("I work at Siemens.", "job", "Where do I work?", "at Siemens"),
    ("I have a degree in physics.", "degree", "What do I have a degree in?", "physics"),
    ("My favourite soccer team is Ajax.", "favourite", "What is my favourite soccer team?", "Ajax"),
    ("I prefer tea over coffee.", "preference", "What do I prefer to coffee?", "tea"),
    ("My cat Tom is 4 years old and hates the vet.", "age", "How old is my cat?", "4 years old"),
    ("I have a dentist appointment on November 14 at 9:30.", "date", "When is my dentist appointment?",
     "on November 14 at 9:30"),
    ("We plan to spend three weeks in Japan.", "duration", "How long do I plan to spend in Japan?", "three weeks"),
    ("We plan to spend three weeks in Japan.", "place", "Where do I plan to spend three weeks?", "in Japan"),
    ("I'm allergic to peanuts.", "health", "What am I allergic to?", "peanuts")])
def test_each_kind_of_fact(text: str, kind: str, question: str, answer: str) -> None:
    assert (kind, question, answer) in [(fact.kind, fact.question, fact.answer) for fact in facts_of(text)]


@pytest.mark.parametrize("text", [
    "I bought it in May.", "I sold that in June.", "I visited them last week.", "She moved to Rome in May.",
    "I'm training for the York 10K on August 3.", "I have a meeting on Friday.",
    "I got one at IKEA.", "I met him at a party.", "I had a great time at the beach.",
    "Did I buy a lamp at IKEA?",
    "If I bought a lamp at IKEA, I would regret it.", "I would have bought a lamp at IKEA.",
    "I didn't buy a lamp at IKEA.", "Whenever I visited Rome in May, it rained.",
    "Write a story: I bought a lamp at IKEA.", "- I bought a lamp at IKEA.",
    "As an AI, I moved to Rome in May.", "I went to the gym.", "I bought a lamp.",
    "I bought a lamp at IKEA. " + "Lorem ipsum. " * 400])
def test_what_does_not_stand_alone_is_no_fact(text: str) -> None:
    assert facts_of(text) == []


def test_a_relative_date_is_an_answer_and_never_in_a_question() -> None:
    found = facts_of("I bought a lamp at IKEA last week.")
    assert [fact.question for fact in found] == ["Where did I buy a lamp?", "When did I buy a lamp at IKEA?",
                                                 "What did I buy at IKEA?"]
    assert [fact.answer for fact in found] == ["at IKEA", "last week", "a lamp"]


def test_speakers_with_a_name_are_asked_about_by_name() -> None:
    text = "I took my kids to a park yesterday, and my favourite colour is green. I'm moving to Rome in May."
    assert [fact.question for fact in facts_of(text, "Ann")] == [
        "When did Ann take their kids to a park?", "Who did Ann take to a park?", "What is Ann's favourite colour?",
        "Where is Ann moving?", "When is Ann moving to Rome?"]
    assert facts_of("I have a cat called Tom.", r"\1{x}")[0].question == r"What is \1{x}'s cat called?"


def test_assistants_are_read_where_they_restate() -> None:
    text = "I bought a boat at IKEA. You said you got a new bike from REI in May."
    assert [(fact.question, fact.answer) for fact in facts_of(text, assistant=True)] == [
        ("Where did I get a new bike from?", "REI"), ("When did I get a new bike from REI?", "in May"),
        ("What did I get from REI in May?", "a new bike")]
