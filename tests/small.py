"""Tiny lives, the words of small command lines, and a data set of tables that a test has made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.data.dataset import GroupBy
from memlab.data.synthetic.dataset import Synthetic
from memlab.experiment.harness.arm import Arm
from memlab.memory.content import Content
from memlab.memory.memory import Memory
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.pipeline.tables import Tables
from memlab.stages.search.bm25 import BM25

LIVES = ("data.lives=2", "data.sessions=10", "data.questions=8", "data.evidence=[2,3]")
"""16 questions over 160 turns."""


def lives(**settings: Any) -> Synthetic:
    """The data set that ``LIVES`` describes."""
    return Synthetic(**{"lives": 2, "sessions": 10, "questions": 8, "evidence": (2, 3), **settings})


def with_words(more: Sequence[str], *usual: str) -> list[str]:
    """These words, and of the usual ones those whose setting or slot they do not name: a line gives each once."""
    given = {word.partition("=")[0] for word in more}
    return [*more, *(word for word in usual if word.partition("=")[0] not in given)]


def on_lives(root: Path, *more: str) -> list[str]:
    """A command line on tiny lives that leaves everything below ``root``."""
    return with_words(more, *LIVES, "track=none", f"out={root}/runs", f"store={root}/store")


def words(root: Path, *more: str) -> list[str]:
    """A command line on tiny lives that loads no model and leaves everything below ``root``."""
    return on_lives(root, *with_words(more, *LIVES, "search/dense=none"))


def lexical(**stages: Any) -> Pipeline:
    """A pipeline that searches by words alone, and ranks every memory."""
    return Pipeline(**{"dense": EmptyStage(writes=("hits",)), "lexical": BM25(unmatched=True), **stages})


@dataclass(frozen=True)
class Given:
    """Tables as a data set."""

    tables: Tables
    name: str = "given"

    def load(self) -> Tables:
        return self.tables

    def identity(self) -> dict[str, Any]:
        return {"tables": self.tables.digest(self.tables)}

    def notes(self) -> list[str]:
        return []

    def grouping(self) -> GroupBy:
        return "auto"


def arm(root: Path, pipeline: Pipeline | None = None, data: Any = None, **more: Any) -> Arm:
    """An arm on tiny lives, or on other data."""
    return Arm(**{"name": "one", "experiment": "single", "pipeline": pipeline or lexical(), "dataset": data or lives(),
                  "out": root / "runs", "seed": 0, "settings": {"name": "one", "rank": {"select": {"k": 10}}}, **more})


def content_of(memory: Memory) -> Content:
    """What a memory holds, for tests that look inside."""
    with memory._opening.alone() as content:
        return content
