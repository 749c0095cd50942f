"""Scoring that arms in different jobs have in common, done before they run: each pair once, however many arms need it.

A pair score costs far more than a vector, and arms that differ only behind it (in K, in a budget) would all make it at
the same time. So those that share a scoring stage, with all that comes before it, are scored together ahead of them.
Arms that differ before it, in the depth of a pool for instance, score for themselves; what others have stored by then
is not scored again.
"""

from __future__ import annotations

from collections.abc import Sequence

from memlab.arm import RANKED, Arm
from memlab.cluster.prepare import WRITTEN
from memlab.cluster.shards import cut
from memlab.models.held import held
from memlab.models.protocols import Embedder
from memlab.pipeline import LANES, Pipeline
from memlab.stage import spec_digest
from memlab.store import Store


def scorings(pipeline: Pipeline) -> dict[str, str]:
    """Return the slots that ask a model as they rank, each with the digest of all stages up to it.

    Equal digests stand for equal work. A lane's vectors are not meant: the preparation has made them.
    """
    found: dict[str, str] = {}
    for slot, stage in pipeline.between(WRITTEN, RANKED):
        if any(slot not in LANES or not isinstance(model, Embedder) for model in held(stage)):
            found[slot] = spec_digest([pipeline.tokens, *(one for _, one in pipeline.between(None, slot))])
    return found


def groups(arms: Sequence[Arm], packs: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Group the arms that share scoring with an arm of another job; no pair is scored for two groups.

    ``packs`` are the arms of each job, by number.
    """
    marks = {n: scorings(arms[n].pipeline) for pack in packs for n in pack}
    jobs: dict[str, set[int]] = {}
    for job, pack in enumerate(packs):
        for n in pack:
            for mark in marks[n].values():
                jobs.setdefault(mark, set()).add(job)
    found: dict[str, list[int]] = {}
    for n, mine in marks.items():
        if any(len(jobs[mark]) > 1 for mark in mine.values()):
            found.setdefault(next(iter(mine.values())), []).append(n)
    return [tuple(group) for group in found.values()]


def score(arms: Sequence[Arm], store: Store, part: int = 0, of: int = 1) -> None:
    """Rank as far as these arms score alike, on one part of the corpora, so that the store holds all of it."""
    marks = [{} if arm.finished() else scorings(arm.pipeline) for arm in arms]
    every = [mark for mine in marks for mark in mine.values()]
    done: set[str] = set()
    for arm, mine in zip(arms, marks):
        common = [(slot, mark) for slot, mark in mine.items() if every.count(mark) > 1]
        if common and common[-1][1] not in done:
            done.add(common[-1][1])
            arm.pipeline.run(cut(arm.dataset, part, of), store, until=common[-1][0])
