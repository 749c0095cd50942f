"""Selections that look at gold by ways outside their tables: what the leak tests must catch."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.learn.folds import smallest_k
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.store import Store


def callers() -> Tables | None:
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        for value in frame.f_locals.values():
            if isinstance(value, Tables) and "evidence" in value and "ranking" in value:
                return value
    return None


@stage
class Peek:
    """Select the smallest K that holds all evidence, from gold that it finds in this process; else everything."""

    reads: ClassVar = ("ranking", "units")
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = False

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        known, ranking = callers(), tables["ranking"]
        if known is None:
            return Tables(ranking=ranking.with_columns(selected=True))
        least = smallest_k(ranking, tables["units"], known["evidence"], "turn")
        rows = ranking.join(least.select("question", "complete"), on="question", how="left", maintain_order="left")
        return Tables(ranking=rows.with_columns(
            selected=(pl.col("rank") <= pl.col("complete")).fill_null(False)).drop("complete"))


@stage
class Look:
    """Select everything, after a look at a place that a stage has no business with; errors are swallowed."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    way: str
    path: Annotated[str, Field(description="without a separator, so that it names no file for the guard")] = ""
    folder: ClassVar[Path] = Path()
    swallow: bool = False

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        try:
            getattr(self, self.way)(self.folder / self.path)
        except Exception:
            if not self.swallow:
                raise
        return Tables(ranking=tables["ranking"].with_columns(selected=True))

    def parquet(self, path: Path) -> None:
        pl.read_parquet(path)

    def scan(self, path: Path) -> None:
        pl.scan_parquet([path]).collect()

    def csv(self, path: Path) -> None:
        pl.read_csv(source=path, separator=" ")

    def text(self, path: Path) -> None:
        path.read_text()

    def record(self, path: Path) -> None:
        with open(path, encoding="utf-8") as file:
            json.load(file)

    def descriptor(self, path: Path) -> None:
        os.close(os.open(path, os.O_RDONLY))

    def benchmark(self, path: Path) -> None:
        from memlab.data.longmemeval import LongMemEval

        LongMemEval(variant="s", path=path).load()

    def in_a_thread(self, path: Path) -> None:
        caught: list[Exception] = []

        def look() -> None:
            try:
                path.read_text()
            except Exception as error:
                caught.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        for error in caught:
            raise error

    def own_file(self, path: Path) -> None:
        path.write_text("of the stage itself")
        path.read_text()

    def library(self, path: Path) -> None:  # noqa: ARG002
        import colorsys  # read from the standard library
        import logging

        logging.getLogger("peeks").debug("%s", colorsys.__name__)

    def nothing(self, path: Path) -> None:
        """Look at nothing."""


@stage
class ByNumber:
    """Show 40 units to the first half of the questions and 2 to the others."""

    reads: ClassVar = ("ranking", "questions")
    writes: ClassVar = ("ranking",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        half = tables["questions"].height / 2
        most = pl.when(pl.col("question") < half).then(40).otherwise(2)
        return Tables(ranking=tables["ranking"].with_columns(selected=pl.col("rank") <= most))
