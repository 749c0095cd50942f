from __future__ import annotations

import pytest

from memlab.evaluate.contrast import UNKNOWN
from memlab.evaluate.verbalise import sentence

ROW = {**UNKNOWN, "arm": "gap", "comparator": "gap.twin", "metric": "selected/session/recall_all",
       "direction": "greater", "n": 141, "difference": .0312, "low": -.01, "high": .0724, "p": .14, "p_adjusted": .28,
       "wins": 12, "losses": 5, "verdict": "not shown", "power": .413, "planned": .03}


def test_the_sentence_of_a_difference_that_is_not_shown() -> None:
    assert sentence(ROW, .05) == (
        "gap finds complete evidence in 3.1 points more questions than its token-matched twin "
        "(selected/session/recall_all, 141 questions; 95 % interval −1.0 to +7.2; 12 wins, 5 losses; "
        "p = .28 after Holm): not shown; a true difference of 3.0 points, the size planned for, had a "
        "chance of 41 % to be found.")


@pytest.mark.parametrize(("change", "expected"), [
    ({"metric": "context/tokens_mean", "difference": -1234.5, "low": -1300.0, "high": -1200.0},
     "gap shows 1,234.5 tokens fewer than its token-matched twin"),
    ({"metric": "context/tokens_mean", "difference": 120.0, "direction": "less", "clusters": 20, "differing": 19,
      "agree": 1}, "greater in 18 of 20 conversations"),
    ({"difference": -.02, "clusters": 6, "differing": 5, "agree": 1}, "less in 4 of 6 conversations"),
    ({"metric": "type=a/session/recall_any@5", "difference": -.02, "comparator": "fixed"},
     "gap finds some evidence in 2.0 points fewer questions than fixed"),
    ({"metric": "session/recall@10"}, "gap finds 3.1 points more of the evidence than"),
    ({"metric": "turn/ndcg@10"}, "gap scores 3.1 points higher than"),
    ({"metric": "selected/k", "difference": 2.0}, "gap selects 2.0 units more than"),
    ({"difference": 0.0}, "gap has the same selected/session/recall_all as"),
    ({"verdict": "shown", "p_adjusted": .0001}, "p < .001 after Holm): shown."),
    ({"verdict": "opposite"}, "the opposite of what was claimed is shown."),
    ({"verdict": "no comparator"}, "gap cannot be compared: its token-matched twin has no finished run."),
    ({"verdict": "no arm"}, "gap cannot be compared: it has no finished run."),
    ({"verdict": "changed nothing"}, "gap changed nothing: its ranking, selection and context are those of"),
    ({"power": .004}, "had a chance of less than 1 % to be found."),
    ({"verdict": "undefined"}, "no question has selected/session/recall_all in both"),
    ({"verdict": "exploratory", "p_adjusted": None}, "p = .14, uncorrected): exploratory"),
    ({"verdict": "out of reach", "clusters": 1, "differing": 1, "agree": 1, "smallest_p": 1.0},
     "out of reach: 1 conversation gives no p below 1, where .017 is asked for."),
    ({"verdict": "out of reach", "clusters": 6, "differing": 4, "agree": 3, "smallest_p": .125},
     "out of reach: 6 conversations, of which 4 differ, give no p below .12, where .017 is asked for."),
    ({"verdict": "out of reach", "clusters": 6, "differing": 6, "agree": 5, "smallest_p": .03125},
     "greater in 5 of 6 conversations; p = .28 after Holm): not shown, and out of reach: 6 conversations give no p "
     "below .031, where .017 is asked for."),
])
def test_every_verdict_and_kind_of_metric_has_its_words(change: dict, expected: str) -> None:
    assert expected in sentence({**ROW, **change}, .05 / 3)
