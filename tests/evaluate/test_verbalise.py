from __future__ import annotations

import polars as pl
import pytest

from memlab.evaluate.contrast import UNKNOWN
from memlab.evaluate.verbalise import grouping_in_words, sentence

ROW = {**UNKNOWN, "arm": "gap", "comparator": "gap.twin", "metric": "selected/session/recall_all",
       "direction": "greater", "n": 141, "difference": .0312, "low": -.01, "high": .0724, "p": .14, "p_adjusted": .28,
       "wins": 12, "losses": 5, "verdict": "open", "power": .413, "planned": .03}


def test_the_sentence_of_a_difference_that_is_open() -> None:
    assert sentence(ROW) == (
        "gap finds all evidence 3.1 points more often than its token-matched twin "
        "(selected/session/recall_all, 141 questions; 95 % interval −1.0 to +7.2; 12 wins, 5 losses; "
        "p = .28, corrected): open; a true difference of 3.0 points, the size planned for, "
        "had a chance of 41 % to be found.")


@pytest.mark.parametrize(("change", "expected"), [
    ({"metric": "context/tokens_mean", "difference": -1234.5, "low": -1300.0, "high": -1200.0},
     "gap shows 1,234.5 tokens fewer than its token-matched twin"),
    ({"metric": "context/tokens_mean", "difference": 120.0, "direction": "less", "groups": 20, "differing": 19,
      "agree": 1}, "greater in 18 of 20 groups"),
    ({"difference": -.02, "groups": 6, "differing": 5, "agree": 1}, "less in 4 of 6 groups"),
    ({"metric": "type=a/session/recall_any@5", "difference": -.02, "comparator": "fixed"},
     "gap finds some evidence 2.0 points less often than fixed"),
    ({"metric": "session/recall@10"}, "gap finds 3.1 points more of the evidence than"),
    ({"metric": "turn/ndcg@10"}, "gap scores 3.1 points higher than"),
    ({"metric": "selected/k", "difference": 2.0}, "gap selects 2.0 units more than"),
    ({"difference": 0.0}, "gap has the same selected/session/recall_all as"),
    ({"verdict": "shown", "p_adjusted": .0001}, "p < .001, corrected): shown."),
    ({"verdict": "opposite"}, "the opposite of what was claimed is shown."),
    ({"verdict": "no comparator"}, "gap cannot be compared: its token-matched twin has no finished run."),
    ({"verdict": "no arm"}, "gap cannot be compared: it has no finished run."),
    ({"verdict": "changed nothing"}, "gap changed nothing: its ranking, selection and context are those of"),
    ({"power": .004}, "had a chance of less than 1 % to be found."),
    ({"verdict": "undefined", "difference": None}, "no question has selected/session/recall_all in both"),
    ({"verdict": "exploratory", "p_adjusted": None}, "p = .14, uncorrected): exploratory"),
    ({"verdict": "open", "p": None, "p_adjusted": None, "groups": 1},
     "gap finds all evidence 3.1 points more often than its token-matched twin, but nothing can be tested: "
     "all 141 questions belong to one group"),
    ({"verdict": "likely"}, "likely: the interval excludes 0"),
    ({"verdict": "open", "power": None}, "p = .28, corrected): open."),
])
def test_every_verdict_and_kind_of_metric_has_its_words(change: dict, expected: str) -> None:
    assert expected in sentence({**ROW, **change})


def frame(corpora: list[int], groups: list[int]) -> pl.DataFrame:
    return pl.DataFrame({"corpus": corpora, "group": groups})


@pytest.mark.parametrize(("questions", "expected"), [
    (frame([0, 0, 1, 1], [0, 0, 1, 1]), "over 2 conversations, and a result holds for further conversations"),
    (frame([0, 1, 2, 3], [0, 0, 1, 2]), "over 3 groups of them, and a result holds for further questions"),
    (frame([0, 1, 2], [0, 1, 2]), "over 3 questions that share no evidence"),
    (frame([0, 0, 0], [0, 0, 1]), "over 2 groups of questions that share evidence, and a result holds for further "
                                  "questions about this memory, not for other people's memories"),
    (frame([0, 0, 0], [0, 0, 0]), "nothing can be tested"),
])
def test_the_note_says_what_is_tested_over_and_for_what_it_holds(questions: pl.DataFrame, expected: str) -> None:
    assert expected in grouping_in_words(questions)
