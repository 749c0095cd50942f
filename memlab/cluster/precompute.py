"""Shared work of a sweep, before its arms run: each text is encoded once and each pair scored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.cluster.shards import load_part
from memlab.harness.arm import Arm, load
from memlab.harness.run_tables import lane_embedders, truncated
from memlab.models.protocols import Embedder, Role, TokenMatcher, models_in
from memlab.search.as_of import of_kinds
from memlab.search.late_interaction import WeightedLate
from memlab.slots import LANES, LAST_RANKED, LAST_WRITTEN
from memlab.stage import spec_digest
from memlab.store import Store
from memlab.tables import Tables


def asks_before_search(arm: Arm) -> bool:
    """Return whether an arm asks a model of any kind before it searches."""
    return any(models_in([stage for _, stage in arm.pipeline.between(None, LAST_WRITTEN)]))


def write(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Run the slots before the searches on all data, so that no two parts ask a model about the same session."""
    del part, of
    for arm in arms:
        if not arm.finished():
            arm.pipeline.run(load(arm.dataset), store, until=LAST_WRITTEN)


def prepare(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Encode the union of the arms' keys and queries; each of several parts takes its share of the text hashes.

    The slots before the searches run here as well, so that the store also holds the replies that they need.
    """
    encoded: set[tuple[str, str, str]] = set()
    for arm in arms:
        if arm.finished():
            continue
        tables = arm.pipeline.run(load(arm.dataset), store, until=LAST_WRITTEN)
        for stage, embedder in lane_embedders(arm.pipeline):
            for role, texts in _texts_of_part(stage, tables, part, of):
                key = (spec_digest(embedder), role, spec_digest(texts["text_id"].to_list()))
                if texts.height and key not in encoded:
                    encoded.add(key)
                    for _ in store.iter_vectors(embedder, texts, role):
                        pass
                    if role == "document":  # every arm reports truncation, and should not load the model for it
                        truncated(embedder, texts, store)
        for _, stage in arm.pipeline.stages():
            if isinstance(stage, WeightedLate):
                for role, texts in _texts_of_part(stage, tables, part, of):
                    if texts.height:
                        precision = stage.number_format() if role == "document" else "fp32"
                        store.token_vectors(stage.matcher, texts, role, precision)


def _texts_of_part(stage: Any, tables: Tables, part: int, of: int) -> list[tuple[Role, pl.DataFrame]]:
    """Return the texts of this part that a lane encodes, by role."""
    memories = of_kinds(tables["memories"], getattr(stage, "kinds", None))
    share = pl.col("text_id").str.slice(0, 8).str.to_integer(base=16, dtype=pl.Int64) % of
    mine = tables["texts"].filter(share == part).sort("text_id")
    return [("document", mine.filter(pl.col("text_id").is_in(memories["key_id"].unique().implode()))),
            ("query", mine.filter(pl.col("text_id").is_in(tables["queries"]["text_id"].unique().implode())))]


def work_keys(arm: Arm) -> dict[str, str]:
    """Return a key for each slot that asks a model to rank: the digest of the data and of all stages up to the slot.

    Equal keys stand for equal work. A lane's vectors do not count, nor do its token vectors: ``prepare`` makes them.
    """
    keys: dict[str, str] = {}
    pipeline = arm.pipeline
    for slot, stage in pipeline.between(LAST_WRITTEN, LAST_RANKED):
        prepared = () if slot not in LANES else TokenMatcher if isinstance(stage, WeightedLate) else Embedder
        if any(not isinstance(model, prepared) for model in models_in(stage)):
            stages = [stage for _, stage in pipeline.between(None, slot)]
            keys[slot] = spec_digest([arm.dataset.identity(), pipeline.tokens, *stages])
    return keys


def shared_groups(arms: Sequence[Arm], bundles: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Group the arms that share work with an arm of another job; no work key is in two groups.

    ``bundles`` are the arms of each job, by number. If several arms of a job share the same work with other jobs, one
    of them represents all, so that any two arms of a group belong to different jobs.
    """
    keys = {n: list(work_keys(arms[n]).values()) for bundle in bundles for n in bundle}
    jobs: dict[str, set[int]] = {}
    for job, bundle in enumerate(bundles):
        for key in (key for n in bundle for key in keys[n]):
            jobs.setdefault(key, set()).add(job)
    groups: dict[str, dict[tuple[int, str], int]] = {}
    for job, bundle in enumerate(bundles):
        for n in bundle:
            if shared := [key for key in keys[n] if len(jobs[key]) > 1]:
                groups.setdefault(shared[0], {}).setdefault((job, shared[-1]), n)
    return [tuple(sorted(group.values())) for group in groups.values()]


def score(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Rank one part of the corpora up to the last slot that these arms share, to store all shared work."""
    keys = [{} if arm.finished() else work_keys(arm) for arm in arms]
    every = [key for own in keys for key in own.values()]
    ranked: set[str] = set()
    for arm, own in zip(arms, keys):
        common = [(slot, key) for slot, key in own.items() if every.count(key) > 1]
        if common and common[-1][1] not in ranked:
            ranked.add(common[-1][1])
            arm.pipeline.run(load_part(arm.dataset, part, of), store, until=common[-1][0])
