"""Encoding what all arms of a sweep need, before they run: each text once, however many arms search it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.cluster.shards import cut
from memlab.harness.arm import Arm, load
from memlab.harness.truncation import truncated
from memlab.models.protocols import Embedder, Role, held
from memlab.pipeline import LANES, LAST_RANKED, LAST_WRITTEN
from memlab.stage import spec_digest
from memlab.store import Store
from memlab.tables import Tables


def asks(arm: Arm) -> bool:
    """Tell whether an arm asks a model of any kind before it searches."""
    return any(held([stage for _, stage in arm.pipeline.between(None, LAST_WRITTEN)]))


def write(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Run the slots before the searches, whole: what is asked of a session is asked once, whichever part has it."""
    del part, of
    for arm in arms:
        if not arm.finished():
            arm.pipeline.run(load(arm.dataset), store, until=LAST_WRITTEN)


def prepare(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Encode the union of the arms' keys and queries; of several parts each takes the texts of its share of hashes.

    The slots before the searches run here as well, so that what they ask models for is in the store too.
    """
    done: set[tuple[str, str, str]] = set()
    for arm in arms:
        if arm.finished():
            continue
        tables = arm.pipeline.run(load(arm.dataset), store, until=LAST_WRITTEN)
        for stage in (stage for slot, stage in arm.pipeline.stages() if slot in LANES):
            embedder: Any = getattr(stage, "embedder", None)
            if embedder is None:
                continue
            for role, texts in _asked(stage, tables, part, of):
                key = (spec_digest(embedder), role, spec_digest(texts["hash"].to_list()))
                if texts.height and key not in done:
                    done.add(key)
                    for _ in store.iter_vectors(embedder, texts, role):
                        pass
                    if role == "document":  # every arm tells it, and should not load the model for that
                        truncated(embedder, texts, store)


def _asked(stage: Any, tables: Tables, part: int, of: int) -> list[tuple[Role, pl.DataFrame]]:
    """Return the texts of this part that a lane encodes, by role."""
    memories, kinds = tables["memories"], getattr(stage, "kinds", None)
    if kinds is not None:
        memories = memories.filter(pl.col("kind").is_in(list(kinds)))
    mine = tables["texts"].filter(pl.col("hash").str.slice(0, 8).str.to_integer(base=16, dtype=pl.Int64) % of == part)
    return [("document", mine.filter(pl.col("hash").is_in(memories["key"].unique().implode())).sort("hash")),
            ("query", mine.filter(pl.col("hash").is_in(tables["queries"]["text"].unique().implode())).sort("hash"))]


def scorings(arm: Arm) -> dict[str, str]:
    """Return the slots that ask a model as they rank, each with a mark: the digest of the data and all stages up to it.

    Equal marks stand for equal work. A lane's vectors are not meant: the preparation has made them.
    """
    found: dict[str, str] = {}
    pipeline = arm.pipeline
    for slot, stage in pipeline.between(LAST_WRITTEN, LAST_RANKED):
        if any(slot not in LANES or not isinstance(model, Embedder) for model in held(stage)):
            before = [one for _, one in pipeline.between(None, slot)]
            found[slot] = spec_digest([arm.dataset.identity(), pipeline.tokens, *before])
    return found


def groups(arms: Sequence[Arm], packs: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Group the arms that share a mark with an arm of another job; no mark is in two groups.

    ``packs`` are the arms of each job, by number. Of a job's arms that share the same with others, one stands for all,
    so that what two arms of a group share is shared by jobs.
    """
    marks = {n: list(scorings(arms[n]).values()) for pack in packs for n in pack}
    jobs: dict[str, set[int]] = {}
    for job, pack in enumerate(packs):
        for n in pack:
            for mark in marks[n]:
                jobs.setdefault(mark, set()).add(job)
    found: dict[str, dict[tuple[int, str], int]] = {}
    for job, pack in enumerate(packs):
        for n in pack:
            shared = [mark for mark in marks[n] if len(jobs[mark]) > 1]
            if shared:
                found.setdefault(shared[0], {}).setdefault((job, shared[-1]), n)
    return [tuple(sorted(group.values())) for group in found.values()]


def score(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Rank as far as these arms score alike, on one part of the corpora, so that the store holds all of it."""
    marks = [{} if arm.finished() else scorings(arm) for arm in arms]
    every = [mark for mine in marks for mark in mine.values()]
    done: set[str] = set()
    for arm, mine in zip(arms, marks):
        common = [(slot, mark) for slot, mark in mine.items() if every.count(mark) > 1]
        if common and common[-1][1] not in done:
            done.add(common[-1][1])
            arm.pipeline.run(cut(arm.dataset, part, of), store, until=common[-1][0])
