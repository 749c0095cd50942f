from __future__ import annotations

import pytest

from memlab.stages.systems.oltramem import resolve_pronouns


def told(*turns, reach=3):
    """Whom the last of the turns speaks of; a turn is a text, or (speaker, text)."""
    said = resolve_pronouns([t if isinstance(t, tuple) else (None, t) for t in turns], reach)[-1]
    return {word: whom for word, whom in said.items() if word not in ("I", "you")}


@pytest.mark.parametrize(("turns", "expected"), [
    (("Tom called.", "What did he say?"), {"he": "Tom"}),
    (("Anna met Tom. She likes him.",), {"she": "Anna", "he": "Tom"}),
    (("I met Anna, then Beth.", "How was she?"), {"she": "Beth"}),  # the last one named
    (("Rachel Lee spoke.", "I liked her talk."), {"she": "Rachel Lee"}),
    (("My mom is here.", "Is she well?"), {"she": "mom"}),
    ((("Ann", "My brother wrote it."), ("Bob", "He writes well!")), {"he": "Ann's brother"}),
    ((("Ann", "Hi"), ("Bob", "How is your dad? Is he well?")), {"he": "Ann's dad"}),
    (("Anna's boss Tom left.", "Why did he?"), {"he": "Tom"}),
    (("Mr. Ray left.", "Why did he?"), {"he": "Mr. Ray"}),
    (("I took my kids out. They had fun.",), {"they": "kids"}),
    (("Anna and Tom came. They stayed.",), {"they": "Anna and Tom"}),
])
def test_the_last_named_person_who_fits(turns, expected):
    assert told(*turns) == expected


@pytest.mark.parametrize("turns", [
    ("She left.",),  # nobody named
    ("Tom called.", "What did she say?"),  # nobody who fits
    ("Tom called.", "a", "b", "c", "He left."),  # forgotten
    ("Tom said he is ill.", "a", "b", "c", "He left."),  # the same, though the first turn is read
    ("Tom called.", "Someone knocked.", "Who was he?"),  # somebody else since
    ("I like Tom.", "I met a boy.", "He waved."),
    ("I like Henry Moore.", "I saw Anish Kapoor there. His work!"),
    ("Ask Tom if he or she comes.",),
    ("I shop at Trader Joe's. He sells tea.",),
    ("I took my kids to see some horses. They ran.",),  # the horses, perhaps
    ("I took my kids out.", "They had fun."),  # another turn: too far for "they"
    ("Tom left. He is gone. Paul came. He is here.",),  # two people
    (("Ann", "Bob, hi"), ("Bob", "Hi Ann"), ("Ann", "She said he left.")),  # neither of two who talk
])
def test_what_is_not_sure_stays_open(turns):
    assert told(*turns) == {}


def test_speakers():
    three = [("Ann", "Hi"), ("Bob", "Hi"), ("Eva", "Hi"), ("Ann", "Bob left. He is tired.")]
    assert resolve_pronouns(three)[3] == {"I": "Ann", "he": "Bob"}  # of three, one may speak of another
    assert resolve_pronouns(three[:2])[0] == {"I": "Ann", "you": "Bob"}
    assert resolve_pronouns([(None, "I am")]) == [{}]
