from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.stages.query.decompose import MOST, parts_of


@pytest.mark.parametrize(("question", "parts"), [
    ("Which did I plant first, the roses or the lilies?", ["the roses", "the lilies"]),
    ("Which book did I read first, 'War and Peace' or 'Emma'?", ["'War and Peace'", "'Emma'"]),
    ("How many days passed between the day I sold my car and the day I bought a bike and a helmet?",
     ["I sold my car", "I bought a bike and a helmet"]),
    ("How many months passed between Ann adopting Rex and Bo?", ["Ann adopting Rex", "Ann adopting Bo"]),
    ("How many days had passed since I lost my phone when I found my keys?", ["I lost my phone", "I found my keys"]),
    ("How many weeks before I sold the house did I paint the kitchen?", ["I sold the house", "I paint the kitchen"]),
    ("How many flats did I see before renting the loft in Rome?", ["How many flats did I see",
                                                                  "renting the loft in Rome"]),
    ("How much more did the desk cost me than the lamp from Lisbon?", ["How much more did the desk cost me",
                                                                      "the lamp from Lisbon"]),
    ("How many museums or galleries did I visit?", ["How many museums did I visit", "How many galleries did I visit"]),
    ("How much did I spend on tyres, brakes, and a new chain?",
     ["How much did I spend on tyres", "How much did I spend on brakes", "How much did I spend on a new chain"]),
    ("How many nights did I stay in Rome and in Oslo?", ["How many nights did I stay in Rome",
                                                        "How many nights did I stay in Oslo"]),
    ("Which films have both Ann and Bob seen?", ["Which films have Ann seen", "Which films have Bob seen"]),
])
def test_parts_are_pieces_of_the_question(question: str, parts: list[str]) -> None:
    assert parts_of(question) == parts


@pytest.mark.parametrize("question", [
    "Where did I buy bread and milk?",                                    # one purchase, most likely
    "Who is Ann?", "", "and", "between and", "or?",
    "How many 'War and Peace' copies do I own?",                          # inside a title
    "What did Ann and Bob cook together?",                                # one event
    "What did Ann do before today?",
    "How many projects have I led or am currently leading?",              # two verbs, one kind of item
    "Can you recommend shows and films?",                                 # advice
    "You mentioned a book about love, loss, and hope. What was its title?",
    "What has Ann done other than hiking in nature?",
])
def test_what_has_no_parts_of_its_own_stays_whole(question: str) -> None:
    assert parts_of(question) == []


def test_there_are_never_more_than_four() -> None:
    assert len(parts_of("How much did I spend on tea, rice, beans, corn, bread, and milk?")) == MOST


words = st.sampled_from(re.findall(r"\S+", """how many much more did I spend on between and or , the day before after
    which first Ann Bob 'A tale' tea rice than compared to since when title0 what total of ?"""))


@given(st.lists(words, max_size=14).map(" ".join))
def test_any_words_give_distinct_parts_or_none(question: str) -> None:
    found = parts_of(question)
    assert len(found) != 1
    assert len(set(found)) == len(found) <= MOST
    assert all(part.strip() for part in found)
