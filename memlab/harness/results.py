"""Finished run folders: which there are, and what lies in them.

A folder is finished when its manifest is there, since that is written last. Of several finished folders of one
arm (its configuration or the code has changed) the newest counts; the others are named, never mixed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import MemlabError


@dataclass(frozen=True)
class ArmRun:
    """One arm's finished run folder; tables are read when first asked for."""

    name: str
    digest: str
    folder: Path
    manifest: dict[str, Any]
    metrics: dict[str, float]

    @cached_property
    def questions(self) -> pl.DataFrame:
        """Per-question metrics, with the question's text, answer and type."""
        return self._table("questions")

    @cached_property
    def ranking(self) -> pl.DataFrame:
        """The ranked units with their signals (at most 200 a question)."""
        return self._table("ranking")

    @cached_property
    def context(self) -> pl.DataFrame:
        """What the reader would be shown."""
        return self._table("context").rename({"text": "text_id"}, strict=False)  # its name in older folders

    @cached_property
    def shown(self) -> pl.DataFrame:
        """The first 20 units of each question as text."""
        return self._table("shown")

    @cached_property
    def classes(self) -> pl.DataFrame | None:
        """The classes that questions were told; None in a folder from before they were kept."""
        return self._table("classes") if (self.folder / "classes.parquet").is_file() else None

    @cached_property
    def attribution(self) -> pl.DataFrame | None:
        """Why answers are wrong; None where nobody asked."""
        return self._table("attribution") if (self.folder / "attribution.parquet").is_file() else None

    @cached_property
    def verdicts(self) -> pl.DataFrame | None:
        """What the judges said of the answers (question, judge, correct, score, reply); None without a judge."""
        path = self.folder / "verdicts.jsonl"
        return pl.read_ndjson(path, infer_schema_length=None) if path.is_file() else None

    @cached_property
    def answers(self) -> pl.DataFrame | None:
        """What a reader said (question, sample, text); None where no reader was asked."""
        path = self.folder / "answers.jsonl"
        if not path.is_file():
            return None
        return pl.read_ndjson(path, schema_overrides={"question": pl.Int32, "sample": pl.Int32}).select(
            "question", "sample", pl.col("hypothesis").alias("text"))

    @property
    def oracle(self) -> bool:
        """Whether the arm looked at gold, so that it is no system."""
        return bool(self.manifest.get("oracle")) or "memlab.oracle" in self.config

    @property
    def seconds(self) -> float | None:
        """Wall-clock seconds of the run; what came from the store was not computed again."""
        value = self.manifest.get("total_seconds")
        return float(value) if isinstance(value, int | float) else None

    @property
    def tainted(self) -> bool:
        """Whether the arm was shown what a system must not see (benchmark ids), and says so."""
        return bool(self.manifest.get("tainted"))

    @cached_property
    def config(self) -> str:
        """The configuration as YAML text; empty when the file is missing."""
        path = self.folder / "config.yaml"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The configuration as it was resolved; empty when the file is missing."""
        from omegaconf import OmegaConf

        found = OmegaConf.to_container(OmegaConf.create(self.config)) if self.config else {}
        return {str(k): v for k, v in found.items()} if isinstance(found, dict) else {"config": found}

    def _table(self, name: str) -> pl.DataFrame:
        path = self.folder / f"{name}.parquet"
        try:
            return pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise MemlabError(f"cannot be read ({error})", where=str(path),
                              fix=f"delete the folder {self.folder} and run the arm again") from error


@dataclass(frozen=True)
class Found:
    """What a data folder of an experiment holds."""

    arms: tuple[ArmRun, ...]
    older: tuple[Path, ...]
    broken: tuple[str, ...]


def read_arm(folder: Path) -> ArmRun:
    """Read a finished run folder; raise MemlabError if its manifest or metrics cannot be read."""
    manifest, metrics = _json(folder / "manifest.json"), _json(folder / "metrics.json")
    name, _, digest = folder.name.rpartition("-")
    return ArmRun(str(manifest.get("arm") or name or digest), str(manifest.get("digest") or digest), folder,
                  manifest, metrics)


def finished(folder: Path, order: Iterable[str] = (), exact: Mapping[str, str] | None = None) -> Found:
    """Find the finished arms in ``runs/<exp>/<data>``: those named in order first, those that look at gold last.

    A twin follows its arm. ``exact`` names the run folder of arms of which no other counts: one of an earlier
    configuration does not stand in for them. What cannot be read is told in ``broken`` and stops nothing.
    """
    newest: dict[str, ArmRun] = {}
    older: list[Path] = []
    broken: list[str] = []
    for path in sorted(folder.glob("*/manifest.json")):
        try:
            arm = read_arm(path.parent)
        except MemlabError as error:
            broken.append(str(error))
            continue
        if exact is not None and exact.get(arm.name, arm.folder.name) != arm.folder.name:
            older.append(arm.folder)
            continue
        rival = newest.get(arm.name)
        if rival is not None and _written(rival) > _written(arm):
            older.append(arm.folder)
            continue
        if rival is not None:
            older.append(rival.folder)
        newest[arm.name] = arm
    place = {name: i for i, name in enumerate(order)}
    twin = ".twin"  # a token-matched constant K stands behind the arm that it matches

    def order_of(arm: ArmRun) -> tuple[bool, int, list[str | int], str]:
        base = arm.name.removesuffix(twin)
        return arm.oracle, place.get(base, len(place)), _natural(base), arm.name

    arms = sorted(newest.values(), key=order_of)
    return Found(tuple(arms), tuple(sorted(older)), tuple(broken))


def _natural(name: str) -> list[str | int]:
    """Order numbers in names as numbers: fixed_5 before fixed_10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]


def _written(arm: ArmRun) -> float:
    """When the manifest says that the run ended, else when the file was written; seconds since 1970."""
    try:
        return datetime.fromisoformat(str(arm.manifest.get("finished"))).timestamp()
    except ValueError:
        return (arm.folder / "manifest.json").stat().st_mtime


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MemlabError(f"cannot be read ({error})", where=str(path),
                          fix="delete its folder and run the arm again") from error
    if not isinstance(value, dict):
        raise MemlabError("is not a JSON object", where=str(path), fix="delete its folder and run the arm again")
    return value


def failure_file(folder: Path) -> Path:
    """Name the file that tells why the arm of this run folder failed.

    >>> failure_file(Path("runs/adaptive_k/locomo/gap-1f2e")).name
    'gap-1f2e.failed.txt'
    """
    return folder.with_name(f"{folder.name}.failed.txt")
