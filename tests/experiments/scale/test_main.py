"""The table over sizes of haystacks: its rows, figures and order, and when there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scale.__main__ import main, write_tables

from memlab.report.build import build
from tests.report.samples import make_runs
from tests.sealing import seal

pytestmark = pytest.mark.nightly

SMALL = {"benchmark": "b", "limit": None, "pool": False}


def described(folder: Path, sessions: float, **data: Any) -> None:
    """Give the runs in a folder ``runs/<exp>/<data>`` a data set and costs, and build their report."""
    for manifest in folder.glob("*/manifest.json"):
        seal(manifest.parent, data=SMALL | data, haystack={"sessions": sessions, "turns": 4 * sessions},
             costs={"chunk": 99.0, "query": 1.0, "dense": 2.0, "score": 3.0, "pack": 99.0})
    build(folder, contrasts=[])


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """An experiment at three sizes, made in no order of size; of one there is an arm less."""
    for name, sessions, data, arms in (("d-x4", 120.0, {"grow": 4, "grow_seed": 0}, ("fixed_10", "fixed_5")),
                                       ("d-pooled", 400.5, {"pool": True}, ("fixed_10",)),
                                       ("d", 30.0, {}, ("fixed_10", "fixed_5"))):
        make_runs(tmp_path / "scale" / name, arms=arms)
        described(tmp_path / "scale" / name, sessions, **data)
    return tmp_path / "scale"


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_a_row_for_each_size_and_arm_the_smallest_haystack_first(scale: Path) -> None:
    assert main([str(scale)]) == 0
    file = scale / "d.sizes.md"
    head, _, *body = rows(file.read_text())
    assert head == ["haystack", "arm", "sessions", "turns", "session any@1", "session all@5", "session all@10",
                    "turn nDCG@10", "seconds per question"]
    assert [row[:4] for row in body] == [
        ["its own", "fixed_5", "30.0", "120"], ["its own", "fixed_10", "30.0", "120"],
        ["4 times", "fixed_5", "120", "480"], ["4 times", "fixed_10", "120", "480"],
        ["all as one", "fixed_10", "400", "1,602"]]
    estimate = json.loads((scale / "d" / "comparison.json").read_text())["arms"]["fixed_5"]["metrics"][
        "session/recall_all@10"]
    assert body[0][6] == f"{estimate['value']:.3f} ({estimate['low']:.3f} to {estimate['high']:.3f})"
    assert {row[8] for row in body} == {"0.1000"}  # (1 + 2 + 3) s for 60 questions: neither chunks nor the context



def test_other_data_stay_apart(scale: Path) -> None:
    """Sizes of other questions, of another data set and of a folder that cannot be read are in no common table."""
    described(scale / "d-pooled", 400.5, pool=True, limit=3)
    make_runs(scale / "other-x4", arms=("fixed_10",))
    described(scale / "other-x4", 50.0, grow=4)
    (scale / "d-x9").mkdir()
    (scale / "d-x9" / "comparison.json").write_text('{"arms": {"a": {"folder": "none"}}}')
    (file,) = write_tables(scale)
    assert file.name == "d.sizes.md"
    assert {row[0] for row in rows(file.read_text())[2:]} == {"its own", "4 times"}
    assert "Left out: the size of d-x9 cannot be read (FileNotFoundError)" in file.read_text()
    (scale / "d-x4" / "comparison.json").unlink()
    assert main([str(scale)]) == 1  # one size alone
