from __future__ import annotations

import pytest

from memlab.support.text.normalise import accepted_answers, answer_tokens, locomo_stems, normalise_locomo


@pytest.mark.parametrize(("text", "form"), [
    ("The Cat and a Dog!", "cat dog"),
    ("1,000 miles", "1000 miles"),
    ("red,blue", "redblue"),  # a comma vanishes, it is no space
    ("3.5 weeks", "35 weeks"),
    ("Anna's theatre, an andiron", "annas theatre andiron"),  # whole words only
    ("self-care", "selfcare"),
    ("It’s", "it’s"),  # only ASCII punctuation goes
    ("  \n\t ", ""),
    ("the a an and", ""),
])
def test_normalised_as_the_official_script(text: str, form: str) -> None:
    assert normalise_locomo(text) == form


def test_stems_are_porters() -> None:
    """Examples from the paper of 1980, step by step."""
    pairs = {"caresses": "caress", "ponies": "poni", "ties": "ti", "cats": "cat", "feed": "feed", "agreed": "agre",
             "plastered": "plaster", "motoring": "motor", "sing": "sing", "conflated": "conflat", "sized": "size",
             "hopping": "hop", "falling": "fall", "happy": "happi", "sky": "sky", "relational": "relat",
             "digitizer": "digit", "radically": "radic", "hopefulness": "hope", "formality": "formal",
             "triplicate": "triplic", "electrical": "electr", "goodness": "good", "allowance": "allow",
             "adjustment": "adjust", "adoption": "adopt", "probate": "probat", "rate": "rate", "cease": "ceas",
             "controlling": "control", "rolling": "roll"}
    assert locomo_stems(" ".join(pairs)) == list(pairs.values())


def test_tokens_and_accepted() -> None:
    assert answer_tokens("A dog's 1,000.5 m and THE end") == ("dog's", "1000.5", "m", "and", "end")
    assert answer_tokens("the -$5; (C#) ~ a^b", articles=True) == ("the", "-5", "$", "c#", "~", "a", "b")
    assert accepted_answers("Yes. It is also acceptable to wait.") == ["Yes. It is also acceptable to wait."]
