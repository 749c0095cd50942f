"""What a sweep is made of as jobs: waves of steps, each wave after the one before.

The preparation encodes what all arms need, and what several of them score alike is scored once
(``memlab.cluster.precompute``). Then come the arms (or their shards, and the merge of these), then the report. A step
that fails holds up nothing: the next wave starts when the one before has ended, however it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Does = Literal["write", "prepare", "score", "arms", "shard", "merge", "report"]

AHEAD: dict[Does, str] = {"write": "writing", "prepare": "preparation", "score": "scoring"}
"""What is done for several arms before they run, and what it is called."""


@dataclass(frozen=True)
class Step:
    """One job: what it does, on which arms (their numbers in the sweep), and which part of how many it is."""

    does: Does
    arms: tuple[int, ...] = ()
    part: int = 0
    of: int = 1

    def __str__(self) -> str:
        """Write the step as one word, the way a command line names it.

        >>> str(Step("shard", (4,), 2, 8)), str(Step("prepare"))
        ('shard:4:2/8', 'prepare::0/1')
        """
        return f"{self.does}:{','.join(map(str, self.arms))}:{self.part}/{self.of}"

    @property
    def name(self) -> str:
        """A name for a queue's listing.

        >>> Step("shard", (4,), 2, 8).name, Step("arms", (0, 1)).name, Step("report", (0, 1)).name
        ('shard 3 of 8 of arm 4', 'arms 0, 1', 'report')
        >>> Step("score", (0, 1)).name
        'score for arm 0 and 1 more'
        """
        part = f" {self.part + 1} of {self.of}" if self.of > 1 and self.does != "merge" else ""
        some = ", ".join(map(str, self.arms))
        if self.does == "shard":
            return f"shard{part} of arm {some}"
        if self.does == "score":
            return f"score{part} for arm {self.arms[0]} and {len(self.arms) - 1} more"
        return f"{self.does} {some}" if self.does in ("arms", "merge") else f"{self.does}{part}"


def step_of(word: str) -> Step:
    """Read a step from its word.

    >>> step_of("shard:4:2/8") == Step("shard", (4,), 2, 8)
    True
    """
    does, arms, part = word.split(":")
    number, _, of = part.partition("/")
    known: dict[str, Does] = {name: name for name in get_args(Does)}
    return Step(known[does], tuple(int(a) for a in arms.split(",") if a), int(number), int(of))


def waves(packs: Sequence[Sequence[int]], arms: int, shards: int = 1, alike: Sequence[tuple[int, ...]] = (),
          asking: Sequence[int] = ()) -> list[list[Step]]:
    """Lay out a sweep of so many ``arms``, all of which are reported.

    ``packs`` are the numbers of those that are to run, one job each pack; ``shards`` is the parts of an arm, which are
    a job each. ``alike`` are groups that score alike, with an arm of every job that waits for it; jobs that wait for
    none run beside the scoring. ``asking`` are arms that ask a model before they search, which all parts of a
    preparation would do. One arm that is not sharded needs no preparation: nobody else waits for what it encodes.

    >>> [[str(s) for s in wave] for wave in waves([[0, 1], [2]], 4, alike=[(1, 2)])]
    [['prepare:0,1,2:0/1'], ['score:1,2:0/1'], ['arms:0,1:0/1', 'arms:2:0/1'], ['report:0,1,2,3:0/1']]
    >>> [str(s) for s in waves([[0], [1], [2]], 3, alike=[(0, 1)])[1]]
    ['score:0,1:0/1', 'arms:2:0/1']
    """
    work = tuple(a for pack in packs for a in pack)
    laid = [[Step("write", tuple(asking))]] if shards > 1 and asking else []
    if shards > 1 or len(work) > 1:
        laid.append([Step("prepare", work, i, shards) for i in range(shards)])
    waits = {a for group in alike for a in group}
    first = [pack for pack in packs if alike and not waits.intersection(pack)]
    laid.append([*(Step("score", group, i, shards) for group in alike for i in range(shards)), *_jobs(first, shards)])
    laid.append(_jobs([pack for pack in packs if pack not in first], shards))
    if shards > 1:
        laid.append([Step("merge", (a,), 0, shards) for a in work])
    return [*(wave for wave in laid if wave and work), [Step("report", tuple(range(arms)))]]


def _jobs(packs: Sequence[Sequence[int]], shards: int) -> list[Step]:
    if shards == 1:
        return [Step("arms", tuple(pack)) for pack in packs]
    return [Step("shard", (a,), i, shards) for pack in packs for a in pack for i in range(shards)]


def packed(keys: Iterable[str], most: int) -> list[list[int]]:
    """Pack arms into jobs: those of one key (the models that they load) together, at most so many a job.

    >>> packed(["a", "b", "a", "a"], most=2)
    [[0, 2], [3], [1]]
    """
    by_key: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        by_key.setdefault(key, []).append(number)
    return [numbers[at : at + most] for numbers in by_key.values() for at in range(0, len(numbers), most)]
