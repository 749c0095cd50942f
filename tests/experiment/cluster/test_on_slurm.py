"""Sweeps on a real SLURM: the figures of one machine, no text encoded twice, and the commands of slurm/README.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.experiment.cluster.snapshot import sweeps
from memlab.store.segment import read
from memlab.support.foreign import read_json
from memlab.support.paths import PACKAGE
from tests.experiment.cluster.bed import Bed, memlab

pytestmark = pytest.mark.nightly

ROOT = PACKAGE.parent
SLURM = ("hydra/launcher=slurm", "hydra.launcher.cpus_per_task=1", "hydra.launcher.timeout_min=10")
COMPARED = ("metrics", "tokens_mean", "selected_k_mean", "oracle")


def figures(root: Path, place: str) -> dict[str, Any]:
    """Return a comparison without times, folders and the commands that hold them."""
    comparison = read_json(root / "runs" / place / "synthetic" / "comparison.json")
    arms = {name: {key: arm[key] for key in COMPARED} for name, arm in comparison["arms"].items()}
    return {**comparison, "arms": arms, "act": None}


def stored(root: Path, kind: str = "vectors") -> pl.DataFrame:
    """Return the keys of all vectors or pair scores in a store."""
    files = sorted((root / "store" / kind).rglob("*.segment"))
    return pl.concat([pl.DataFrame(segment.keys).with_columns(folder=pl.lit(file.parent.name))
                      for file in files if (segment := read(file))])


def test_adaptive_k_gives_the_figures_of_one_machine_and_nothing_is_encoded_twice(
        testbed: Bed, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    some = ("+exp=adaptive_k", "rank/select=by_type,gap,calibrated,oracle")
    alone = memlab("run", *some, root=here)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    asked = (*some, *SLURM, "hydra.launcher.arms_per_job=4")
    done = memlab("run", *asked, root=there)
    assert done.returncode == 0, done.stdout + done.stderr
    assert figures(here, "adaptive_k") == figures(there, "adaptive_k")
    keys = stored(there)
    assert keys.height == keys.unique().height == stored(here).height
    arms = [read_json(Path(arm["folder"]) / "manifest.json") for arm in next(sweeps(there / "runs")).metadata()["arms"]]
    assert all(arm["made"].get("vectors", 0) == 0 for arm in arms)  # the preparation made them all
    status = subprocess.run([sys.executable, "-m", "memlab", "status"], cwd=there, capture_output=True, text=True)
    assert status.returncode == 0
    assert f"{len(arms)} done" in status.stdout
    assert testbed.ask("squeue", "-h") == ""
    again = memlab("run", *asked, root=there)
    assert again.returncode == 0
    assert f"{len(arms)} finished before" in again.stdout
    assert len(list(sweeps(there / "runs"))) == 1  # nothing was left to submit


def commands() -> list[str]:
    """Return the lines of the first block of slurm/README.md."""
    page = (ROOT / "slurm" / "README.md").read_text(encoding="utf-8")
    block = re.search(r"## From a fresh account.*?```bash\n(.*?)```", page, re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def test_a_newcomer_walks_the_page_line_by_line(testbed: Bed, tmp_path: Path) -> None:
    """Every line in one shell, on small data; packages come from this environment in place of an index."""
    installed = sysconfig.get_paths()["purelib"]
    environment = {name: value for name, value in os.environ.items() if name not in ("MEMLAB_HOME", "VIRTUAL_ENV")}
    environment |= {"PYTHONPATH": installed, "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1",
                    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    lines = [line.replace("REPOSITORY", str(ROOT)) for line in commands()]
    small = "data.lives=2 data.sessions=8 data.questions=6 'data.evidence=[2,3]' rank/select=by_type,gap,calibrated"
    lines = [f"{line} {small}" if "+exp=" in line else line for line in lines]
    if not (ROOT / ".git").exists():
        pytest.skip("a newcomer clones, and this is no checkout")
    for number, line in enumerate(lines):
        lines[number] = f"echo '+ {number}'; {line} || echo \"line {number} ended with $?\""
    done = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, timeout=3600)
    output = done.stdout + done.stderr
    status = next(n for n, line in enumerate(commands()) if line.startswith("memlab status"))
    ended = {int(n): int(code) for n, code in re.findall(r"line (\d+) ended with (\d+)", output)}
    assert ended in ({}, {status: 3}), output  # the sweep may still be under way when its status is asked
    assert "report:" in output
    assert (tmp_path / "memlab" / "runs" / "adaptive_k" / "synthetic" / "report.html").is_file()
    assert (tmp_path / "memlab" / "home" / "store" / "vectors").is_dir()
