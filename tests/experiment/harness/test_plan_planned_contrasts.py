from __future__ import annotations

import io

import pytest
from rich.console import Console

from memlab.data.synthetic.dataset import Synthetic
from memlab.evaluate.contrast import Contrast
from memlab.experiment.harness.plan import print_contrasts

METRIC = "selected/turn/recall_all"


def plan(contrasts: list[Contrast], **data) -> str:
    out = io.StringIO()
    print_contrasts(contrasts, Synthetic(**data), Console(file=out, width=200))
    return out.getvalue()


def test_a_plan_gives_power_per_contrast_before_the_run() -> None:
    text = plan([Contrast("gap", "twin", METRIC), Contrast("gap", "fixed", METRIC, planned=.1),
                 Contrast("gap", "twin", "context/tokens_mean", "less")])
    rows = [line for line in text.splitlines() if line.startswith(" gap")]
    assert ["240 in 20" in row for row in rows] == [True] * 3
    assert ["% for 3 points" in rows[0], "% for 10 points" in rows[1], "an amount" in rows[2]] == [True] * 3
    power = [int(row.split(" % for")[0].split()[-1]) for row in rows[:2]]
    assert power[0] < 20 < 80 < power[1]
    assert "p <= 0.0167" in text


@pytest.mark.parametrize(("questions", "testable"), [(1, False), (12, True)])
def test_one_memory_says_for_what_a_result_holds(questions: int, testable: bool) -> None:
    text = plan([Contrast("gap", "twin", METRIC)], lives=1, questions=questions)
    assert "not for other people's memories" in text
    assert ("cannot be" in text) != testable
