from __future__ import annotations

import pytest
from pydantic import ValidationError

from memlab.experiment.config.instantiate import choice_settings, construct
from memlab.stages.read.reader import SelfConsistency, Single
from memlab.support.errors import MemlabError


@pytest.mark.parametrize(("answers", "winner"), [
    (["2", "3", "3"], 1), (["The cat.", "a CAT", "dog"], 0), (["a", "b", "b", "a"], 0), (["x", "y", "z"], 0),
    (["", "", "two"], 2), (["", " "], 0), (["3.5", "35", "35"], 1), (["1,000", "1000", "2"], 0), (["2", "1"], 0)])
def test_the_majority_wins_and_the_earliest_breaks_ties(answers: list[str], winner: int) -> None:
    assert SelfConsistency(samples=max(len(answers), 2)).decide(answers) == winner


@pytest.mark.parametrize("wrong", [{"samples": 1}, {"temperature": 0}, {"temperature": True}, {"temperatures": [0.7]},
                                   {"temperatures": [0.0, 1.0]}, {"classes": ["countin"]}])
def test_settings_that_make_no_vote_are_refused(wrong: dict) -> None:
    with pytest.raises((ValidationError, MemlabError)):
        SelfConsistency(**wrong)


def test_oltramem_votes_over_three_temperatures_for_counting_questions_alone() -> None:
    vote = construct(choice_settings("read/vote/counting"), "read.vote", [])
    for kind in ("counting", "multi_session"):
        assert len(set(vote.schedule(kind))) == 3
    for kind in ("temporal", "factual", ""):
        assert vote.schedule(kind) == (None,)
    assert SelfConsistency().schedule("factual") == (0.7,) * 5
    assert Single().schedule("counting") == (None,)
