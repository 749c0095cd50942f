"""Finished run folders and their contents.

A run folder is finished when its manifest is there, since that is written last. Of several finished folders of one arm
(its configuration or the code has changed) the newest counts; the others are listed, never mixed in.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from memlab.experiment.harness.run_files import ANSWERS, VERDICTS, plain_yaml, read_run, readable
from memlab.support.errors import MemlabError, natural_order
from memlab.support.files import open_plain


@dataclass(frozen=True)
class ArmRun:
    """The finished run folder of one arm; each table is read on first use."""

    name: str
    digest: str
    folder: Path
    manifest: dict[str, Any]
    metrics: dict[str, float]

    @cached_property
    def questions(self) -> pl.DataFrame:
        """Return the metrics of each question, with its text, answer and type."""
        return self._table("questions")

    @cached_property
    def ranking(self) -> pl.DataFrame:
        """Return the ranked units with their signals (at most 200 per question)."""
        return self._table("ranking")

    @cached_property
    def context(self) -> pl.DataFrame:
        """Return the context of each question, which the reader is shown."""
        return self._table("context")

    @cached_property
    def curve(self) -> pl.DataFrame | None:
        """Return the recall-token curves of an adaptive arm's rule and of constant K; None for other arms."""
        return self._table("curve") if (self.folder / "curve.parquet").is_file() else None

    @cached_property
    def shown(self) -> pl.DataFrame:
        """Return the text of the first 20 units of each question."""
        return self._table("shown")

    @cached_property
    def classes(self) -> pl.DataFrame:
        """Return the question types that the classifier assigned."""
        return self._table("classes")

    @cached_property
    def ids(self) -> pl.DataFrame:
        """Return the data's own names of questions, sessions and turns."""
        return self._table("ids")

    @cached_property
    def attribution(self) -> pl.DataFrame | None:
        """Return why answers are wrong; None without an attribution."""
        return self._table("attribution") if (self.folder / "attribution.parquet").is_file() else None

    @cached_property
    def verdicts(self) -> pl.DataFrame | None:
        """Return the judges' verdicts (question, judge, correct, score, reply); None without a judge."""
        path = self.folder / "verdicts.jsonl"
        if not path.is_file():
            return None
        with readable(path):
            rows = pl.read_ndjson(open_plain(path), infer_schema_length=None, schema_overrides=VERDICTS)
            return rows.select(*VERDICTS, pl.all().exclude(VERDICTS))

    @cached_property
    def answers(self) -> pl.DataFrame | None:
        """Return the reader's answers (question, sample, text); None without a reader."""
        path = self.folder / "answers.jsonl"
        if not path.is_file():
            return None
        with readable(path):
            return pl.read_ndjson(open_plain(path), schema_overrides=ANSWERS).select(
                "question", "sample", pl.col("hypothesis").alias("text"))

    @property
    def oracle(self) -> bool:
        """Return whether the arm looked at gold, so that it is no system."""
        return bool(self.manifest["oracle"]) or self.tainted

    @property
    def seconds(self) -> float:
        """Return the processor seconds of the arm's own stages, without what arms share: data, models and indexes."""
        return float(sum(self.manifest["costs"].values()) or self.manifest["total_seconds"])

    @property
    def tainted(self) -> bool:
        """Return whether the arm saw what a system must not see (benchmark ids)."""
        return bool(self.manifest["tainted"])

    @cached_property
    def config(self) -> str:
        """Return the configuration as YAML text; empty if the file is missing."""
        path = self.folder / "config.yaml"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Return the resolved configuration; empty if the file is missing."""
        content = plain_yaml(self.config, self.folder / "config.yaml") if self.config else {}
        return {str(k): v for k, v in content.items()} if isinstance(content, dict) else {"config": content}

    def _table(self, name: str) -> pl.DataFrame:
        path = self.folder / f"{name}.parquet"
        with readable(path):
            return pl.read_parquet(path, glob=False)  # a name may hold the *** of a key


@dataclass(frozen=True)
class FinishedArms:
    """The finished arms of an experiment on one data set, the folders of older runs, and what cannot be read.

    ``other_data`` are runs on other data settings (``data.limit=3``): their figures are of other questions.
    """

    arms: tuple[ArmRun, ...]
    older: tuple[Path, ...]
    broken: tuple[str, ...]
    other_data: tuple[ArmRun, ...] = ()


def read_arm(folder: Path) -> ArmRun:
    """Read a finished run folder; raise MemlabError if it cannot be read, is damaged, or of another format.

    Every file that the manifest lists is compared with its digest.
    """
    manifest, metrics = read_run(folder)
    return ArmRun(manifest["arm"], manifest["digest"], folder, manifest, metrics)


def finished_arms(folder: Path, order: Iterable[str] = (), exact: Mapping[str, str] | None = None,
                  last: Mapping[str, str] | None = None) -> FinishedArms:
    """Return the finished arms in ``runs/<exp>/<data>``: those named in ``order`` first, those that look at gold last.

    A token-matched baseline follows its arm. ``exact`` maps an arm's name to the only run folder that counts, and keeps
    older configurations out; without it, ``last`` does so, the run folders of the last report, but for arms that
    finished since. The data settings that count are those of the run folders in ``exact`` or ``last``, else of the arms
    in ``order``, else of the last command; arms of others go to ``other_data``. Errors of folders that cannot be read
    go to ``broken`` and stop nothing.
    """
    broken: list[str] = []
    order = list(order)
    readable: list[ArmRun] = []
    for path in sorted(folder.glob("*/manifest.json")):
        try:
            readable.append(read_arm(path.parent))
        except MemlabError as error:
            broken.append(str(error))
    last = last or {}
    exact = exact or _runs_of_last_report(folder, readable, last)
    wanted = {_data(arm) for arm in _arms_in_question(readable, order, {*exact.values(), *last.values()})}
    others = [arm for arm in readable if wanted and _data(arm) not in wanted]
    same = [arm for arm in readable if arm not in others]
    newest = {arm.name: arm for arm in sorted(same, key=_write_time)
              if exact.get(arm.name, arm.folder.name) == arm.folder.name}
    older = [arm.folder for arm in same if newest.get(arm.name) is not arm]
    place = {name: i for i, name in enumerate(order)}
    twin = ".twin"  # a token-matched constant K, which follows the arm that it matches

    def sort_key(arm: ArmRun) -> tuple[bool, int, list[tuple[int, str]], str]:
        base = arm.name.removesuffix(twin)
        return arm.oracle, place.get(base, len(place)), natural_order(base), arm.name

    arms = sorted(newest.values(), key=sort_key)
    return FinishedArms(tuple(arms), tuple(sorted(older)), tuple(broken), tuple(others))


def _runs_of_last_report(folder: Path, arms: Sequence[ArmRun], last: Mapping[str, str]) -> dict[str, str]:
    """Return those of the last report's arms -> run folders that are still there, and have no run since that report."""
    if not last:
        return {}
    written = (folder / "comparison.json").stat().st_mtime
    newer = {arm.name for arm in arms if (arm.folder / "manifest.json").stat().st_mtime > written}
    return {name: place for name, place in last.items()
            if name not in newer and (folder / place / "manifest.json").is_file()}


def _arms_in_question(arms: Sequence[ArmRun], order: Sequence[str], folders: Container[str]) -> list[ArmRun]:
    """Return the runs whose data settings count: those in these folders, else by name, else of the last command."""
    if exact := [arm for arm in arms if arm.folder.name in folders]:
        return exact
    latest = {arm.name: arm for arm in sorted(arms, key=_write_time)}
    if named := [latest[name] for name in order if name in latest]:
        return named
    newest = max(arms, key=_write_time, default=None)
    return [arm for arm in latest.values() if newest and arm.manifest["command"] == newest.manifest["command"]]


def _data(arm: ArmRun) -> str:
    return json.dumps(arm.manifest["data"], sort_keys=True, default=str)


def _write_time(arm: ArmRun) -> float:
    """Return when the run ended by its manifest, else when the file was written, in seconds since 1970."""
    try:
        return datetime.fromisoformat(arm.manifest["finished"]).timestamp()
    except ValueError:
        return (arm.folder / "manifest.json").stat().st_mtime


def failure_file(folder: Path) -> Path:
    """Return the path of the file with the traceback of this run folder's arm.

    >>> failure_file(Path("runs/adaptive_k/locomo/gap-1f2e")).name
    'gap-1f2e.failed.txt'
    """
    return folder.with_name(f"{folder.name}.failed.txt")
