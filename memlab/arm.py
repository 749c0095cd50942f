"""One arm: a pipeline on a data set, and the folder that its finished run leaves behind."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab import manifest
from memlab.data.dataset import Dataset
from memlab.evaluate.averages import averages
from memlab.evaluate.curve import constant_k
from memlab.evaluate.export import write_run
from memlab.evaluate.questions import per_question
from memlab.learn import coverage
from memlab.pipeline import LANES, Pipeline
from memlab.rank.twin import twin
from memlab.stage import spec, spec_digest
from memlab.store import Store
from memlab.tables import Tables

KEPT_RANKS = 200
"""Ranks of a question that a run folder keeps; deeper ones only where they were selected."""
SHOWN_RANKS = 20
"""Ranks that the report's drill-down shows."""

_LOADED: dict[str, Tables] = {}


def load(dataset: Dataset) -> Tables:
    """Load a data set once a process, whatever the number of arms."""
    key = spec_digest(dataset.identity())
    if key not in _LOADED:
        _LOADED.clear()  # a sweep stays on one data set; two of them need not fit in memory
        _LOADED[key] = dataset.load()
    return _LOADED[key]


@dataclass(frozen=True)
class Arm:
    """One configuration on one data set, under its name in an experiment."""

    name: str
    experiment: str
    pipeline: Pipeline
    dataset: Dataset
    out: Path
    seed: int
    config: str

    def digest(self) -> str:
        """All that can change a result: stages, models, data and memlab's own source; no path, URL or device."""
        return spec_digest({"pipeline": spec(self.pipeline), "data": self.dataset.identity(),
                            "source": manifest.source_digest()})

    def beside(self) -> Path:
        """The folder of all arms of this experiment on this data."""
        return self.out / self.experiment / self.dataset.name

    def folder(self) -> Path:
        """The run folder: the arm's name and the first figures of its digest."""
        return self.beside() / f"{safe(self.name)}-{self.digest()[:10]}"

    def finished(self) -> bool:
        """Tell whether the run folder is complete: its manifest is written last."""
        return (self.folder() / "manifest.json").is_file()

    def run(self, store: Store, watch: Callable[[str, float], None] | None = None) -> Path:
        """Run the arm, and the token-matched twin of an adaptive one; return the run folder.

        A finished arm returns at once. The twin is finished first, so that a finished arm has one.
        """
        folder = self.folder()
        if self.finished():
            return folder
        seconds: dict[str, float] = {}
        start, before = time.perf_counter(), Counter(store.made)
        tables = load(self.dataset)
        seconds["data"] = time.perf_counter() - start

        def note(slot: str, spent: float) -> None:
            seconds[slot] = spent
            if watch:
                watch(slot, spent)

        tables = self.pipeline.run(tables, store, note)
        matched = self._twin(tables, store) if getattr(self.pipeline.select, "adaptive", False) else None
        self._write(folder, tables, store, before, seconds, time.perf_counter() - start, matched)
        return folder

    def _twin(self, tables: Tables, store: Store) -> str:
        matched = twin(tables["ranking"], seed=self.seed)
        other = replace(self, name=f"{self.name}.twin", pipeline=self.pipeline.replace(select=matched))
        return other.run(store).name

    def _write(self, folder: Path, tables: Tables, store: Store, before: Counter[str], seconds: dict[str, float],
               total: float, matched: str | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        questions = per_question(tables)
        metrics = averages(questions)
        seconds["evaluate"] = time.perf_counter() - start
        ranked = tables["ranking"].join(tables["units"].select("unit", "level", "session", "turns"), on="unit")
        kept = ranked.filter((pl.col("rank") <= KEPT_RANKS) | pl.col("selected")).sort("question", "rank")
        (folder / "config.yaml").write_text(self.config, encoding="utf-8")
        kept.write_parquet(folder / "ranking.parquet")
        tables["context"].write_parquet(folder / "context.parquet")
        questions.write_parquet(folder / "questions.parquet")
        tables["ids"].write_parquet(folder / "ids.parquet")
        shown(kept, tables).write_parquet(folder / "shown.parquet")
        write_run(kept, tables, folder / "run.trec", name=self.name)
        manifest.write_json(folder / "metrics.json", metrics)
        manifest.write_json(folder / "manifest.json", {
            "arm": self.name, "experiment": self.experiment, "data": self.dataset.identity(), "digest": self.digest(),
            "dataset": self.dataset.name, "questions": questions.height, "clustered": self.dataset.clusters(),
            "notes": self.dataset.notes(), "pipeline": spec(self.pipeline),
            "oracle": self.pipeline.uses_oracle(), "twin": matched,
            "truncated": truncated_share(self.pipeline, tables),
            "reliability": reliability(self.pipeline, tables), "constant_k": constant_k(tables),
            "seconds": {k: round(v, 4) for k, v in seconds.items()}, "total_seconds": round(total, 3),
            "made": {k: store.made[k] - before[k] for k in sorted(store.made)}, "seed": self.seed,
            "peak_memory_gb": manifest.peak_memory_gb(), "hardware": manifest.hardware(),
            "versions": manifest.versions(), "source": manifest.source_digest(), **manifest.commit(),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        })


def safe(name: str) -> str:
    """Make a folder name of an arm's name; what was dropped is told apart by the digest that follows.

    >>> safe("rank.select.k=5, x/y")
    'rank.select.k=5_x_y'
    """
    return re.sub(r"[^A-Za-z0-9._=+-]+", "_", name)[:80]


def shown(ranked: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Make the drill-down's table: the first ranks of a question with a snippet and whether they hold evidence."""
    texts = tables["texts"]
    turn_texts = tables["turns"].join(texts, left_on="text", right_on="hash", how="left").select(
        "corpus", "session", "turn", "speaker", "role", pl.col("text_right").alias("text"))
    top = ranked.filter(pl.col("rank") <= SHOWN_RANKS).join(
        tables["units"].select("unit", "corpus"), on="unit").select(
        "question", "rank", "unit", "corpus", "session", "turns", "selected")
    lines = (
        top.select("unit", "corpus", "session", "turns").unique("unit").explode("turns")
        .join(turn_texts, left_on=["corpus", "session", "turns"], right_on=["corpus", "session", "turn"])
        .sort("unit", "turns")
        .with_columns((pl.coalesce("speaker", "role") + ": " + pl.col("text")).alias("line"))
        .group_by("unit", maintain_order=True).agg(pl.col("line").str.join("\n").str.slice(0, 400).alias("text"))
    )
    evidence = tables["evidence"]
    by_turn = evidence.filter(pl.col("turn").is_not_null()).with_columns(pl.lit(True).alias("gold"))
    by_session = evidence.filter(pl.col("turn").is_null()).select("question", "session").unique().with_columns(
        pl.lit(True).alias("gold_session"))
    gold = (
        top.select("question", "unit", "session", "turns").explode("turns")
        .join(by_turn, left_on=["question", "session", "turns"], right_on=["question", "session", "turn"], how="left")
        .join(by_session, on=["question", "session"], how="left")
        .group_by("question", "unit").agg((pl.col("gold").any() | pl.col("gold_session").any()).alias("gold"))
    )
    dates = tables["sessions"].select("corpus", "session", "said_on")
    return (
        top.join(lines, on="unit", how="left").join(gold, on=["question", "unit"], how="left")
        .join(dates, on=["corpus", "session"], how="left")
        .select("question", "rank", "unit", "session", "turns", "said_on", "text",
                pl.col("gold").fill_null(False), "selected")
        .sort("question", "rank")
    )


def truncated_share(pipeline: Pipeline, tables: Tables) -> dict[str, float]:
    """Give, by kind of memory, the share of distinct keys of which the embedder sees only the beginning."""
    embedder: Any = next((s.embedder for slot, s in pipeline.stages() if slot in LANES and hasattr(s, "embedder")),
                         None)
    if embedder is None:
        return {}
    found: dict[str, float] = {}
    for (kind,), part in tables["memories"].select("kind", "key").unique().group_by(["kind"], maintain_order=True):
        keys = tables["texts"].join(part.select("key"), left_on="hash", right_on="key", how="semi").sort("hash")
        key = f"{spec_digest(embedder)}:{_digest(keys['hash'])}"
        if key not in _TRUNCATED:
            cut = embedder.truncated(keys["text"].to_list(), "document")
            _TRUNCATED[key] = float(cut.mean()) if len(cut) else 0.0
        found[str(kind)] = round(_TRUNCATED[key], 4)
    return dict(sorted(found.items()))


_TRUNCATED: dict[str, float] = {}


def _digest(hashes: pl.Series) -> str:
    return hashlib.blake2b("".join(hashes.to_list()).encode(), digest_size=16).hexdigest()


def reliability(pipeline: Pipeline, tables: Tables) -> list[dict[str, float]]:
    """Hold a learned coverage against what came true, in ten bins; empty where nothing was learned."""
    learned = getattr(pipeline.select, "coverage", None)
    if learned is None:
        return []
    needed = coverage.labels(tables, getattr(learned, "level", "session"))
    return coverage.reliability(tables["ranking"], needed).to_dicts()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a finished run's manifest."""
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return content
