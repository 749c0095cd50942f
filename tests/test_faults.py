"""Whatever goes wrong: a clear message or a defined result, and finished work is kept.

A fault at each system call of a run, a report, a store and a live memory is tested in ``tests/faults``. That eight
processes may fill one store at once, and that a flipped byte is named and computed anew, in ``tests/store``.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from memlab.experiment.cluster.worker import run_arm
from memlab.report.build import build
from memlab.stages.search.dense import Dense
from memlab.store import Store
from tests.examples import NIGHTLY
from tests.small import Given, arm, lexical, lives, on_lives
from tests.store.worker import DigestEmbedder

pytestmark = pytest.mark.nightly

KILLS = 10 if NIGHTLY else 2


def start(root: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a sweep with the real encoder in a process: two arms, one of them adaptive; it prints to ``log``."""
    root.mkdir(exist_ok=True)
    with (root / "log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "memlab", "run", *on_lives(root, "-m", "rank/select=fixed,gap",
                                                                                    *more)], stdout=log, stderr=log)


def results(root: Path) -> dict[str, tuple[list[Any], list[Any], Any]]:
    """Rankings, contexts and metrics of each arm, which must not differ."""
    columns = ["question", "unit", "rank", "selected", "tokens"]
    folders = (path.parent for path in sorted(root.glob("runs/single/synthetic/*/manifest.json")))
    return {folder.name: (pl.read_parquet(folder / "ranking.parquet").select(columns).rows(),
                          pl.read_parquet(folder / "context.parquet").rows(),
                          json.loads((folder / "metrics.json").read_text())) for folder in folders}


def test_kills_at_random_moments_and_two_runs_at_once_change_no_result(tmp_path: Path) -> None:
    began = time.perf_counter()
    assert start(tmp_path / "whole").wait() == 0
    seconds, expected = time.perf_counter() - began, results(tmp_path / "whole")
    assert len(expected) == 3  # fixed, gap and gap's twin
    moments, root = random.Random(20240229), tmp_path / "killed"
    for _ in range(KILLS):
        run = start(root)
        time.sleep(moments.uniform(seconds / 4, seconds))
        run.kill()
        run.wait()
    both = [start(root) for _ in range(2)]
    assert [run.wait() for run in both] == [0, 0], (root / "log").read_text()
    assert results(root) == expected
    place = root / "runs" / "single" / "synthetic"
    assert len([path for path in place.iterdir() if path.is_dir() and not path.name.startswith(".")]) == 3
    assert list(json.loads((place / "comparison.json").read_text())["arms"]) == ["fixed", "gap", "gap.twin"]
    assert (place / "report.html").read_text().rstrip().endswith("</html>")


def test_an_interrupt_says_how_to_go_on(tmp_path: Path) -> None:
    run, log = start(tmp_path, "data.sessions=150"), tmp_path / "log"  # some ten seconds of encoding
    until = time.monotonic() + 300
    while "2 arms" not in log.read_text() and time.monotonic() < until:
        time.sleep(.05)
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    assert run.wait() == 130, log.read_text()
    assert "interrupted; finished work is kept: run the same command again to continue" in log.read_text()
    assert "Traceback" not in log.read_text()


def test_a_nan_from_a_model_fails_its_arm_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, data = Store(tmp_path / "store"), lives()
    bad = data.load()["texts"]["text"][40]
    sick = arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder("sick", bad=bad))), name="sick")
    well = arm(tmp_path, name="well")
    for one in (sick, well):
        run_arm(one, store, Console(soft_wrap=True))
    told = capsys.readouterr().out
    assert "sick failed: sick gave NaN for " in told
    assert repr(bad)[:20] in told
    assert "well: " in told
    assert not sick.is_finished()
    built = build(well.arms_folder(), contrasts=[], expected=["sick", "well"])
    assert built.comparison["missing"] == ["sick"]
    assert store.made["vectors"] > 0  # what was made before it is kept
    cured = arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder("sick"))), name="sick")
    run_arm(cured, store, Console())
    assert cured.is_finished()
    assert not list(cured.arms_folder().glob("*.failed.txt"))


def test_no_gold_at_all_still_gives_a_report(tmp_path: Path) -> None:
    tables = lives().load()
    gold = tables["gold"].with_columns(pl.lit(False).alias("scored"))
    one = arm(tmp_path, data=Given(tables.updated({"evidence": tables["evidence"].clear(), "gold": gold})))
    folder = one.run(Store(tmp_path / "store"))
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["context/tokens_mean"] > 0
    assert not [name for name in metrics if name.startswith(("session/", "turn/", "selected/session"))]
    assert build(one.arms_folder(), contrasts=[]).html.is_file()
