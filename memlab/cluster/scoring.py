"""Scoring that arms in different jobs have in common, done before they run, so that it is done once.

A pair score costs far more than a vector, and arms that differ only behind it (in K, in a budget) would all make it at
the same time. So a scoring stage that several jobs share, with all that comes before it, runs ahead of them. Arms that
differ before it (in the depth of a pool, for instance) share nothing by that, even where some of their pairs are the
same: those may be scored by several jobs at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from memlab.arm import RANKED, Arm
from memlab.cluster.prepare import WRITTEN
from memlab.cluster.shards import cut
from memlab.models.held import held
from memlab.models.protocols import Embedder
from memlab.pipeline import LANES
from memlab.stage import spec_digest
from memlab.store import Store


def scorings(arm: Arm) -> dict[str, str]:
    """Return the slots that ask a model as they rank, each with a mark: the digest of the data and all stages up to it.

    Equal marks stand for equal work. A lane's vectors are not meant: the preparation has made them.
    """
    found: dict[str, str] = {}
    pipeline = arm.pipeline
    for slot, stage in pipeline.between(WRITTEN, RANKED):
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
