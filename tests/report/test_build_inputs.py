"""A report is built again when anything that it is made from has changed, and else is left as it is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memlab.evaluate.contrast import Contrast
from memlab.experiment.harness.arm import Arm
from memlab.experiment.track.record import NoTracking
from memlab.report import build
from memlab.report.build import RECORD, inputs_digest, publish, reported_runs, up_to_date
from memlab.store import store_at
from tests.small import arm

ONE = Contrast("one", "two", "session/recall_all@5")


@pytest.fixture
def finished(tmp_path: Path) -> Arm:
    one = arm(tmp_path)
    one.run(store_at(str(tmp_path / "store")))
    return one


def report_of(one: Arm, *contrasts: Contrast) -> tuple[Path, int]:
    """Publish an arm; return its report and the time at which that was written."""
    (comparison,) = publish([one], NoTracking(), contrasts)
    return comparison, comparison.with_name("report.html").stat().st_mtime_ns


def test_a_report_that_is_up_to_date_is_not_built_again(finished: Arm) -> None:
    comparison, written = report_of(finished)
    before = comparison.read_bytes()
    assert report_of(finished) == (comparison, written)
    assert comparison.read_bytes() == before
    assert up_to_date(comparison.parent, json.loads((comparison.parent / RECORD).read_text())["inputs"])


CHANGES: dict[str, Callable[[Path], object]] = {
    "a manifest": lambda place: next(place.glob("*/manifest.json")).write_text(
        next(place.glob("*/manifest.json")).read_text() + " "),
    "a touched table": lambda place: os.utime(next(place.glob("*/run.trec")), (1, 1)),
    "no page": lambda place: (place / "report.html").unlink(),
    "no Markdown": lambda place: (place / "report.md").unlink(),
    "a damaged comparison": lambda place: (place / "comparison.json").write_text('{"arms": '),
    "no digest": lambda place: (place / RECORD).unlink(),
    "a damaged digest": lambda place: (place / RECORD).write_text("[]"),
    "a further arm": lambda place: shutil.copytree(next(place.glob("one-*")), place / "two-0123"),
    "calibrated judges": lambda place: (place.parents[1] / "calibration.json").write_text("{}"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_it_is_made_from_has_changed(finished: Arm, change: Callable[[Path], object]) -> None:
    comparison, written = report_of(finished)
    change(comparison.parent)
    assert report_of(finished)[1] != written
    assert json.loads(comparison.read_text())["arms"]


def test_other_contrasts_arms_run_folders_or_source_are_another_report(
        finished: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    place = finished.arms_folder()
    digests = [inputs_digest(place, [], ["one"], {}), inputs_digest(place, [ONE], ["one"], {}),
               inputs_digest(place, [replace(ONE, planned=0.5)], ["one"], {}),
               inputs_digest(place, [], ["one", "two"], {}), inputs_digest(place, [], ["one"], {"one": "one-0123"})]
    assert len(set(digests)) == len(digests)
    _, written = report_of(finished)
    assert report_of(finished, ONE)[1] != written
    monkeypatch.setattr(build, "own_digest", lambda: "other")
    assert inputs_digest(place, [], ["one"], {}) not in digests




@pytest.mark.parametrize("content", ["[" * 200_000, '{"arms":' * 200_000, None])
def test_a_comparison_that_is_too_deep_or_a_pipe_is_none(tmp_path: Path, content: str | None) -> None:
    for name in ("comparison.json", RECORD):
        if content is None:
            os.mkfifo(tmp_path / name)
        else:
            (tmp_path / name).write_text(content)
    assert reported_runs(tmp_path) == {}
    assert not up_to_date(tmp_path, "x")
