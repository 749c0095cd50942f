from __future__ import annotations

from pathlib import Path

import pytest

from memlab.stages.judge.accuracy import judge_warnings
from memlab.stages.systems.memorystack.stages import MemoryStackJudge
from memlab.store import Store
from tests.stages.judge.worlds import judged, one, says


@pytest.mark.parametrize(("reply", "right"), [
    ('{"correct": true, "reason": "25 occurs"}', True), ('{"correct": false, "reason": "yes, but no"}', False),
    ('Sure: {"correct": true, "reason": ""}', True), ("yes", None), ("", None),
    ('{"correct": "true", "reason": ""}', None),
])
def test_the_verdict_is_the_field_correct(reply: str, right: bool | None, tmp_path: Path) -> None:
    ((score, correct, words),) = judged(MemoryStackJudge(chat=says(reply)), one("25", "25 posters"), Store(tmp_path))
    assert (score, correct, words) == (None if right is None else float(right), right, reply)


def test_it_is_asked_as_described(tmp_path: Path) -> None:
    chat = says('{"correct": true, "reason": ""}')
    judged(MemoryStackJudge(chat=chat), one("25", "25 copies of a poster"), Store(tmp_path))
    judged(MemoryStackJudge(chat=chat), one(None, "I cannot tell", abstain=True), Store(tmp_path / "b"))
    answerable, unknown = (prompt.messages[0].content for prompt in chat.asked)
    for rule in ("lenient", "reasonably related", "any wording", "poster", ".5 hours is 30 minutes"):
        assert rule in answerable
    assert "information is missing" not in answerable
    assert "information is missing" in unknown
    assert "(none is given)" in unknown
    assert {prompt.temperature for prompt in chat.asked} == {0.0}


def test_reports_say_that_its_accuracies_are_not_those_of_others(tmp_path: Path) -> None:
    for name in ("memorystack", "longmemeval_style"):
        assert "cannot be compared with published ones" in judge_warnings([name], tmp_path / "none")[0]
    assert len(judge_warnings(["official"], tmp_path / "none")) == 1
