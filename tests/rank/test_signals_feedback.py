from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.rank.signals import AccessCount, Feedback
from memlab.stage import spec_digest
from tests.rank.rankings import body
from tests.rank.signals.worlds import ASKED, dated, order, values


def given(path: Path, *rows: tuple[str, int, int, date]) -> Path:
    lines = [json.dumps({"text": text, "useful": good, "useless": bad, "on": f"{on:%Y-%m-%d}"})
             for text, good, bad, on in rows]
    path.write_text("\n".join(lines))
    return path


def test_counts_are_added_and_smoothed(tmp_path: Path) -> None:
    then = date(2023, 5, 30)
    path = given(tmp_path / "f.jsonl", (body(0, 1, 1), 2, 0, then), (body(0, 1, 1), 1, 1, ASKED.date()),
                 (body(0, 0, 1), 0, 2, then), ("never said", 5, 0, then))
    told = values(Feedback(path=path), dated())
    assert told == pytest.approx([.5, 1 / 4, .5, 4 / 6, .5, .5])
    assert order(dated(), signals=[Feedback(path=path)], weights={"feedback": 1}) == [3, 0, 2, 4, 5, 1]


def test_later_feedback_is_not_known(tmp_path: Path) -> None:
    path = given(tmp_path / "f.jsonl", (body(0, 1, 1), 2, 0, date(2023, 6, 2)))
    assert values(Feedback(path=path), dated()) == [.5] * 6


def test_what_it_says_counts_not_where_it_lies(tmp_path: Path) -> None:
    rows = [(body(0, 1, 1), 2, 0, date(2023, 5, 1))]
    one, two = (Feedback(path=given(tmp_path / name, *rows)) for name in ("a.jsonl", "b.jsonl"))
    assert spec_digest(one) == spec_digest(two)
    before = spec_digest(one)
    given(tmp_path / "a.jsonl", *rows, *rows)
    assert spec_digest(one) != before


@pytest.mark.parametrize("text", ["not json", '{"text": "a", "useful": 1, "on": "2023-05-01"}',
                                  '{"text": "a", "useful": 1, "useless": 0, "on": "May"}'])
def test_a_file_that_cannot_be_read_is_told_at_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.jsonl").write_text(text)
    with pytest.raises(MemlabError, match="feedback"):
        Feedback(path=tmp_path / "f.jsonl")
    with pytest.raises(MemlabError, match="feedback"):
        Feedback(path=tmp_path / "absent.jsonl")


def test_an_experiment_without_a_file_has_no_votes_and_nothing_was_returned_before() -> None:
    assert values(Feedback(), dated()) == [.5] * 6
    assert values(AccessCount(), dated()) == [0] * 6
    weights = {"first": .9, "feedback": .1, "accesses": .05}
    told = order(dated(), signals=[Feedback(), AccessCount()], normaliser="minmax", weights=weights)
    assert told == dated()["ranking"]["unit"].to_list()
