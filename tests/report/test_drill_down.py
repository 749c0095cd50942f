from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from memlab.harness.results import ArmRun, finished_arms
from memlab.report.drill_down import SHOWN, drill_down
from tests.sealing import seal

METRICS = ["selected/session/recall_all", "session/recall_any@5"]


def weight(data: dict) -> int:
    """Bytes in the page."""
    return len(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


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


def test_a_small_budget_keeps_the_questions_on_which_arms_differ(arms: tuple[ArmRun, ...]) -> None:
    whole = drill_down(arms, METRICS)
    differing = {e["q"] for e in whole["questions"] if e["differs"]}
    size = weight(whole)
    part = drill_down(arms, METRICS, budget=size // 3)
    kept = {e["q"] for e in part["questions"]}
    assert 0 < len(kept) < 60
    assert part["left_out"] == 60 - len(kept)
    assert kept <= differing or differing <= kept
    assert weight(part) < size // 3 + 1_000  # what is not a question: names of arms, metrics and signals
    assert max(r[6] for e in part["questions"] for ranking in e["rankings"] for r in ranking) < len(part["texts"])


def test_rows_come_best_first_however_the_files_are_sorted(runs: Path) -> None:
    before = drill_down(finished_arms(runs).arms, METRICS)
    for path in runs.glob("*/*.parquet"):
        pl.read_parquet(path).sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path)
    for folder in runs.glob("*-*"):
        seal(folder)
    after = drill_down(finished_arms(runs).arms, METRICS)
    assert after["questions"][5]["which"] == before["questions"][5]["which"]
    ranks = [[after["texts"][row[6]] for row in e["rankings"][0]] for e in after["questions"]]
    assert ranks == [[before["texts"][row[6]] for row in e["rankings"][0]] for e in before["questions"]]
