from __future__ import annotations

import polars as pl

from memlab.experiment.harness.results import ArmRun
from memlab.report.drill_down import SHOWN, drill_down

METRICS = ["selected/session/recall_all", "session/recall_any@5"]


def test_rankings_evidence_and_selection_are_those_of_the_run_folder(arms: tuple[ArmRun, ...]) -> None:
    data = drill_down(arms, METRICS)
    assert len(data["questions"]) == 60
    for i, arm in enumerate(arms):
        for entry in data["questions"][:12]:
            rows = arm.shown.filter(pl.col("question") == entry["q"]).sort("rank")
            ranking, chosen = entry["rankings"][entry["which"][i][0]], entry["which"][i][1]
            assert [row[0] for row in ranking] == rows["unit"].to_list()
            assert [bool(row[5]) for row in ranking] == rows["gold"].to_list()
            assert [c == "1" for c in chosen] == rows["selected"].to_list()
            assert len(ranking) == SHOWN
    assert data["signals"] == ["dense:turn", "lexical:session", "coverage"]
    first = arms[0].ranking.filter(question=0).sort("rank")
    assert data["questions"][0]["rankings"][data["questions"][0]["which"][0][0]][0][7:] == [
        round(first["dense:turn"][0], 3), round(first["lexical:session"][0], 3), None]
    unscored = next(entry for entry in data["questions"] if not entry["scored"])
    assert (unscored["values"], unscored["differs"]) == ([[None, None]] * len(arms), False)  # undefined, not zero



def test_arms_that_rank_alike_share_a_ranking_and_texts_are_stored_once(arms: tuple[ArmRun, ...]) -> None:
    data = drill_down(arms, METRICS)
    assert all(len(entry["rankings"]) == 2 for entry in data["questions"])  # calibrated has one signal more
    assert len(data["texts"]) == len(set(data["texts"])) <= 13


def test_of_fewer_questions_those_on_which_arms_differ_are_kept(arms: tuple[ArmRun, ...]) -> None:
    whole, part = drill_down(arms, METRICS), drill_down(arms, METRICS, 9)
    differing = {entry["q"] for entry in whole["questions"] if entry["differs"]}
    assert len(differing) > 9 == len(part["questions"])
    assert {entry["q"] for entry in part["questions"]} < differing
    assert (whole["left_out"], part["left_out"]) == (0, 51)
    assert max(r[6] for e in part["questions"] for ranking in e["rankings"] for r in ranking) < len(part["texts"])
