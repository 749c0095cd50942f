"""An arm: a pipeline on a data set, and the run folder that it leaves."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import polars as pl
from omegaconf import OmegaConf

from memlab.data.dataset import Dataset
from memlab.data.numbering import corpora_by_content, draws
from memlab.evaluate.contrast import KEPT_RANKS
from memlab.evaluate.curves import constant_k
from memlab.evaluate.export import write_answers, write_trec
from memlab.evaluate.summary import averages, by_order, calibration_error, per_question
from memlab.evaluate.whole import budget
from memlab.experiment.config.plugins import plugin_versions
from memlab.experiment.harness import manifest
from memlab.experiment.harness.run_files import write_manifest
from memlab.experiment.harness.run_tables import DrawsCurve, rule_curve, snippets, truncated_share
from memlab.experiment.harness.staleness import source_digest
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import models_in, origins, parts
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import LAST_RANKED
from memlab.pipeline.stage import EmptyStage, learns, spec, spec_digest
from memlab.pipeline.tables import Tables
from memlab.pipeline.token_counter import TokenCounter
from memlab.pipeline.transcript import render_turns
from memlab.stages.query import filters
from memlab.stages.rank.adaptive_k import TokenMatchedK, token_matched_k
from memlab.stages.rank.units import kind_of
from memlab.store import Store
from memlab.store.completions import Totals
from memlab.support.files import atomic_dir, sweep_leftovers, write_json, write_parquet
from memlab.support.redaction import redact

_NAME = 150  # bytes of a folder's name; most systems allow 255, and a report beside it has a longer one
_LOADED: OrderedDict[str, Tables] = OrderedDict()
_constant_k = by_order(constant_k)


def load(dataset: Dataset) -> Tables:
    """Load a data set once per process, whatever the number of arms."""
    key = spec_digest(dataset.identity())
    if key not in _LOADED:
        _LOADED.clear()  # a sweep stays on one data set; two of them need not fit in memory
        tables = corpora_by_content(dataset.load())  # so that a part of the corpora has the ids of the whole
        tables.digest(tables)  # cached with the tables, for the stages of all arms
        _LOADED[key] = tables
    return _LOADED[key]


@runtime_checkable
class Fit(Protocol):
    """A saved fit."""

    def number_seen(self, tables: Tables) -> int:
        """Return the number of questions on whose labels it was fitted."""


@dataclass(frozen=True)
class Ranked:
    """An arm's tables up to the slot ``LAST_RANKED``, with the seconds of each slot and the counts of what was made.

    ``costs`` and ``replies`` are those of ``Pipeline.run``.
    """

    tables: Tables
    seconds: dict[str, float]
    made: Counter[str]
    costs: dict[str, float] = field(default_factory=dict)
    replies: dict[str, Totals] = field(default_factory=dict)


@dataclass(frozen=True)
class Arm:
    """One configuration on one data set, with its name in an experiment."""

    name: str
    experiment: str
    pipeline: Pipeline
    dataset: Dataset
    out: Path
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The resolved configuration, as plain values without keys; empty for an arm that no file configures."""
    command: str = ""
    """The line that started the run, without secrets, for its manifest."""
    overrides: tuple[str, ...] = ()
    """What the line and its experiment choose and set for this arm, without secrets, for its manifest."""
    has_secret: bool = False
    """Whether the configuration holds a key, which ``settings`` does not."""
    notes: tuple[str, ...] = ()
    """What a reader of the report must know of this arm, beside the notes of the data set."""

    @cached_property
    def config(self) -> str:
        """Return the settings as YAML text."""
        return OmegaConf.to_yaml(OmegaConf.create({**self.settings})) if self.settings else ""

    def digest(self) -> str:
        """Return the digest of all that can change a result: stages, models, data and source, but no path or device."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        seed = self.seed if self.adaptive() else None  # it draws the baseline, which belongs to the arm
        described = {"seed": seed, "pipeline": spec(self.pipeline), "data": self.dataset.identity(),
                     "source": source_digest()}
        foreign = {name: about["digest"] for name, about in self.plugins().items()}
        return spec_digest(described | ({"plugins": foreign} if foreign else {}))

    def plugins(self) -> dict[str, dict[str, str | None]]:
        """Return package -> version and source digest of the plug-ins whose classes the arm uses."""
        return plugin_versions(self.pipeline, self.dataset)

    def adaptive(self) -> bool:
        """Return whether K differs by question, so that the arm is compared with a token-matched baseline."""
        return bool(getattr(self.pipeline.select, "adaptive", False))

    def arms_folder(self) -> Path:
        """Return the folder that holds all arms of this experiment on this data set."""
        return self.out / self.experiment / folder_name(redact(self.dataset.name))

    def folder(self) -> Path:
        """Return the run folder, named by the arm and the first ten digits of its digest."""
        return self.arms_folder() / f"{safe(self.name)}-{self.digest()[:10]}"

    def is_finished(self) -> bool:
        """Return whether the run folder is complete: its manifest is written last."""
        return (self.folder() / "manifest.json").is_file()

    def run(self, store: Store, watch: Callable[[str, float], None] | None = None,
            ranked: Ranked | None = None) -> Path:
        """Run the arm, and its token-matched baseline if it is adaptive; return the run folder.

        A finished arm returns at once. The baseline is finished first: a finished arm has one. Where shards have
        ``ranked`` already, only the slots after ``LAST_RANKED`` run.
        """
        folder = self.folder()
        if self.is_finished():
            return folder
        start, before = time.perf_counter(), Counter(store.made)
        seconds, costs, replies = ((dict(ranked.seconds), dict(ranked.costs), dict(ranked.replies)) if ranked
                                   else ({}, {}, {}))
        if ranked:
            before.subtract(ranked.made)
        tables = ranked.tables if ranked else load(self.dataset)
        seconds["data"] = seconds.get("data", 0.0) + time.perf_counter() - start

        def note(slot: str, spent: float) -> None:
            seconds[slot] = spent
            if watch:
                watch(slot, spent)

        tables = self.pipeline.run(tables, store, note, after=LAST_RANKED if ranked else None, costs=costs,
                                   replies=replies)
        if not isinstance(self.pipeline.where, EmptyStage):
            tables = filters.undo(tables, load(self.dataset))
        total = time.perf_counter() - start + (sum(ranked.seconds.values()) if ranked else 0.0)
        matched = self._run_baseline(tables, store, ranked) if self.adaptive() and tables["ranking"].height else None
        start = time.perf_counter()
        questions = per_question(tables, self.dataset.grouping(), budget([spec(self.pipeline)]),
                                 rounds=getattr(self.dataset, "counts_rounds", False))
        curve = self._curve(tables, questions, store)
        seconds["evaluate"] = time.perf_counter() - start
        self._write(folder, tables, questions, curve)
        write_manifest(folder, {
            **self._description(tables, store), "questions": questions.height, "twin": matched,
            "seconds": {slot: round(spent, 4) for slot, spent in seconds.items()}, "total_seconds": round(total, 3),
            "costs": {slot: round(spent, 6) for slot, spent in costs.items()}, "replies": replies,
            "haystack": haystack(tables, self.pipeline.tokens),
            "made": {what: store.made[what] - before[what] for what in sorted({*store.made, *before})},
            **manifest.environment()})
        return folder

    def _curve(self, tables: Tables, questions: pl.DataFrame, store: Store) -> pl.DataFrame | None:
        if isinstance(self.pipeline.pack, DrawsCurve):
            return self.pipeline.pack.curve(self.pipeline.select, tables, store)
        groups = dict(questions.select("question", "group").iter_rows())
        return rule_curve(self.pipeline.select, tables, groups, store) if self.adaptive() else None

    def _run_baseline(self, tables: Tables, store: Store, ranked: Ranked | None) -> str:
        """Run the token-matched baseline; return the name of its run folder."""
        drawn = draws(tables["questions"], tables["turns"], self.seed)
        matched = token_matched_k(tables["ranking"], drawn, seed=self.seed)
        select = {"_target_": f"{TokenMatchedK.__module__}.TokenMatchedK", "k": matched.k, "seed": matched.seed}
        other = replace(self, name=f"{self.name}.twin", pipeline=self.pipeline.replace(select=matched),
                        settings={**self.settings, "rank": {**self.settings.get("rank", {}), "select": select}})
        return other.run(store, ranked=ranked).name

    def _description(self, tables: Tables, store: Store) -> dict[str, Any]:
        """Return the part of the manifest that depends on the arm and its tables, not on time and machine."""
        bins, stages = reliability(self.pipeline.select, tables), [stage for _, stage in self.pipeline.stages()]
        fitted = sum(fit.number_seen(tables) for fit in parts(stages, Fit))
        return {
            "arm": self.name, "experiment": self.experiment, "command": self.command,
            "overrides": list(self.overrides),
            "digest": self.digest(), "source": source_digest(), "seed": self.seed, "plugins": self.plugins(),
            "dataset": self.dataset.name, "data": self.dataset.identity(),
            "notes": [*self.dataset.notes(), *self.notes],
            "pipeline": spec(self.pipeline), "tokens": self.pipeline.tokens.name,
            "models": {slot: models for slot, stage in self.pipeline.stages() if (models := origins(stage))},
            "oracle": self.pipeline.uses_oracle(), "tainted": self.pipeline.tainted() or fitted > 0,
            "asking": manifest.ways_to_ask(self.pipeline, kind_of(tables)), "fitted": any(map(learns, stages)),
            "looks_at_gold": self.pipeline.looks_at_gold(),
            "truncated": truncated_share(self.pipeline, tables, store), "constant_k": _constant_k(tables),
            "reliability": bins, "calibration_error": calibration_error(bins), "importances": importances(tables),
            "told": note_counts(tables["notes"]) | learned_counts(self.pipeline, tables["questions"], fitted)}

    def _write(self, folder: Path, tables: Tables, questions: pl.DataFrame, curve: pl.DataFrame | None) -> None:
        """Write the run folder under a temporary name and rename it: two processes may finish one arm at once."""
        sweep_leftovers(folder)
        with atomic_dir(folder, other="choose another place with out=DIR") as temporary:
            self._fill(temporary, tables, questions)
            if curve is not None:
                write_parquet(curve, temporary / "curve.parquet")

    def _fill(self, folder: Path, tables: Tables, questions: pl.DataFrame) -> None:
        ranked = tables["ranking"].join(tables["units"].select("unit", "level", "session", "turns"), on="unit")
        kept = ranked.filter((pl.col("rank") <= KEPT_RANKS) | pl.col("selected")).sort("question", "rank")
        (folder / "config.yaml").write_text(self.config, encoding="utf-8")
        write_answers(tables, folder)
        frames = {"ranking": kept, "context": tables["context"], "questions": questions, "ids": tables["ids"],
                  "shown": snippets(kept, tables), "classes": tables["classes"]}
        if "attribution" in tables and tables["attribution"].height:
            frames["attribution"] = tables["attribution"]
        for name, frame in frames.items():
            write_parquet(frame, folder / f"{name}.parquet")
        write_trec(tables, folder, name=self.name)
        write_json(folder / "metrics.json", averages(questions))


def folder_name(name: str) -> str:
    """Return a name as that of a folder: one of more than 150 bytes is cut, and ends in its digest.

    >>> folder_name("locomo"), len(folder_name("x" * 250))
    ('locomo', 150)
    """
    if len(os.fsencode(name)) <= _NAME:
        return name
    digest = hashlib.blake2b(os.fsencode(name), digest_size=5).hexdigest()
    return f"{os.fsencode(name)[:_NAME - 11].decode(errors='ignore')}-{digest}"


def safe(name: str) -> str:
    """Return an arm's name as a part of a folder name; the digest after it keeps names distinct that became equal.

    >>> safe("rank.select.k=5, x/y")
    'rank.select.k=5_x_y'
    """
    return re.sub(r"[^A-Za-z0-9._=+-]+", "_", name)[:80]


def reliability(select: Any, tables: Tables) -> list[dict[str, float]]:
    """Return a learned selection's estimates and outcomes by bin; empty if nothing was learned."""
    return select.reliability(tables) if hasattr(select, "reliability") else []


def importances(tables: Tables, most: int = 20) -> list[dict[str, str | float]]:
    """Return the features that a learned ranking gains most by, with their shares of all gain; empty for others."""
    if "importances" not in tables:
        return []
    table = tables["importances"].with_columns((pl.col("gain") / pl.col("gain").sum()).round(4).alias("share"))
    return table.head(most).to_dicts()


def has_finished(name: str, folder: Path) -> bool:
    """Return whether an arm of this name, in whatever configuration, has a finished run among the arms of a folder."""
    return any(folder.glob(f"{safe(name)}-{'[0-9a-f]' * 10}/manifest.json"))


SAMPLED = 5
"""Haystacks whose tokens are counted, evenly spaced among all: counting those of a large benchmark takes minutes."""


def haystack(tables: Tables, counter: TokenCounter) -> dict[str, float]:
    """Return the size of a question's haystack: sessions and turns on average, and the median of all turns' tokens.

    Tokens are those of turns as a context shows them, with their day and speaker.
    """
    asked = tables["questions"].select("corpus")
    sizes = {name: tables[name].group_by("corpus").len() for name in ("sessions", "turns")}
    counts = {name: round(int(asked.join(size, on="corpus")["len"].sum()) / max(asked.height, 1), 1)
              for name, size in sizes.items()}
    corpora = asked["corpus"].unique().sort()
    some = corpora.gather([i * len(corpora) // SAMPLED for i in range(SAMPLED)]) if len(corpora) > SAMPLED else corpora
    turns = render_turns(tables["turns"].filter(pl.col("corpus").is_in(some.implode())), tables["texts"])
    shown = turns.select("corpus", pl.format("[2024-01-01]\n{}", "display_text").alias("text"))
    tokens = shown.with_columns(counter.count_each(pl.col("text")).alias("tokens")).group_by("corpus").agg(
        pl.col("tokens").sum())["tokens"].median()
    return {**counts, "tokens": float(tokens)} if isinstance(tokens, int | float) else counts


def note_counts(notes: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Return {what: {number, of}}, summed over all notes."""
    sums = notes.group_by("what").agg(pl.col("number", "of").sum()).sort("what")
    return {what: {"number": number, "of": of} for what, number, of in sums.iter_rows()}


def learned_counts(pipeline: Pipeline, questions: pl.DataFrame, fitted: int) -> dict[str, dict[str, int]]:
    """Return {what: {number, of}} of the questions that an encoder was trained on, or a saved fit; empty for none."""
    models = [model for _, stage in pipeline.stages() for model in models_in(stage)]
    learned = {text for model in models if isinstance(model, SentenceEmbedder) for text in model.learned_questions()}
    numbers = {"an encoder": int(questions["text_id"].is_in(learned).sum()), "a saved fit": fitted}
    return {f"questions were learned by {what} of this arm: its figures do not tell how it does on new ones":
            {"number": number, "of": questions.height} for what, number in numbers.items() if number}


def refusal(pipeline: Pipeline) -> str | None:
    """Return why an arm cannot be sharded; None if it can."""
    for slot, stage in pipeline.between(None, LAST_RANKED):
        if learns(stage):
            return (f"{slot}: {type(stage).__name__} learns from all questions, which no shard has; choose another "
                    "technique there, or shards=1")
    return None
