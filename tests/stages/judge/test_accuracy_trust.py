"""A judge is flagged unless its specificity is known and high enough."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from memlab.report.build import build
from memlab.stages.judge.accuracy import judge_warnings
from tests.report.samples import make_runs
from tests.sealing import seal


def calibrated(path: Path, **judges: float) -> Path:
    path.write_text(json.dumps({"judges": {name: {"data": "locomo", "specificity": {"value": value}}
                                           for name, value in judges.items()}}))
    return path


def test_figures_that_are_no_shares_are_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    for content in ('{"judges": {"f1": {"specificity": 0.9}}}',
                    *(f'{{"judges": {{"f1": {{"specificity": {{"value": {value}}}}}}}}}'
                      for value in ('"high"', "NaN", "[]", "-1", "1e999", "9" * 400))):
        path.write_text(content)
        assert "nobody has measured" in judge_warnings(["f1"], path)[0]
    assert judge_warnings([], tmp_path / "absent.json") == []


@pytest.mark.parametrize("content", ["", "[]", '{"judges": 3}', '{"judges": {"f1": null}}', "[" * 100_000, "\xff"])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content, encoding="latin-1")
    assert "the calibration of judges cannot be read" in judge_warnings(["f1"], path)[0]


def test_every_form_of_the_report_shows_the_flag(tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "runs" / "reader" / "synthetic", questions=6, arms=("gap",))
    (place,) = folder.glob("gap-*")
    rows = pl.read_parquet(place / "questions.parquet").with_columns(pl.lit(1.0).alias("answer/f1"))
    rows.write_parquet(place / "questions.parquet")
    seal(place)
    calibrated(tmp_path / "runs" / "calibration.json", f1=.5)
    built = build(folder)
    assert built.comparison["notes"][0].startswith("FLAGGED: the judge f1")
    for path in (built.html, built.markdown):
        assert "FLAGGED: the judge f1" in path.read_text(encoding="utf-8")
