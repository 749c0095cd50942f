from __future__ import annotations

import pytest

from memlab.pipeline.question_types import VOCABULARY
from memlab.stages.query.classify import CLASSES, Rules


@pytest.mark.parametrize(("question", "expected"), [
    ("How many model kits have I worked on or bought?", "counting"),
    ("How much money did I spend on workshops in total?", "counting"),
    ("What is the total distance of my hikes?", "counting"),
    ("How many days passed between the two concerts?", "temporal"),
    ("How many weeks ago did I meet my aunt?", "temporal"),
    ("When did Melanie paint a sunrise?", "temporal"),
    ("Which event happened first, the trip or the wedding?", "temporal"),
    ("Can you recommend some hotels for my trip?", "preference"),
    ("Any tips for keeping my kitchen clean?", "preference"),
    ("What was the name of the restaurant you recommended in Rome?", "assistant"),
    ("I'm looking back at our previous conversation about jazz. Who played the bass?", "assistant"),
    ("Where do I currently keep my old sneakers?", "update"),
    ("What degree did I graduate with?", "factual"),
    ("", "factual"),
])
def test_classes_follow_the_wording(question: str, expected: str) -> None:
    assert Rules.classify(question) == (expected,)
    assert Rules.classify(question.upper()) == (expected,)
    assert expected in CLASSES
    assert expected in VOCABULARY
