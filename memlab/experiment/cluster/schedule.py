"""The jobs of a sweep in levels of steps: a level starts when the one before has ended, even if a step of it failed.

First the preparation encodes what all arms need, then scores that several arms share are computed once
(``memlab.experiment.cluster.shards``). Then come the arms (or their shards, and the merge of these), and last the
report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from memlab.experiment.harness.arm import Arm
from memlab.models.protocols import Chat, models_in
from memlab.pipeline.stage import spec_digest

Task = Literal["write", "prepare", "score", "arms", "shard", "merge", "report"]

SHARED_TASKS: dict[Task, str] = {"write": "writing", "prepare": "preparation", "score": "scoring"}
"""Tasks for several arms, run before the arms themselves, and their names in messages."""


@dataclass(frozen=True)
class Step:
    """One job: its task, its arms (their numbers in the sweep), and which part of how many it is."""

    task: Task
    arms: tuple[int, ...] = ()
    part: int = 0
    of: int = 1

    def __str__(self) -> str:
        """Format the step as one argument of a command line.

        >>> str(Step("shard", (4,), 2, 8)), str(Step("prepare"))
        ('shard:4:2/8', 'prepare::0/1')
        """
        return f"{self.task}:{','.join(map(str, self.arms))}:{self.part}/{self.of}"

    @property
    def name(self) -> str:
        """A name for people.

        >>> Step("shard", (4,), 2, 8).name, Step("arms", (0, 1)).name, Step("report", (0, 1, 2, 3)).name
        ('shard 3 of 8 of arm 4', 'arms of arm 0, 1', 'report of 4 arms')
        """
        part = f" {self.part + 1} of {self.of}" if self.of > 1 and self.task != "merge" else ""
        numbers = f"arm {', '.join(map(str, self.arms))}" if len(self.arms) < 4 else f"{len(self.arms)} arms"
        return f"{self.task}{part} of {numbers}"


def parse_step(argument: str) -> Step:
    """Parse a step from its argument.

    >>> parse_step("shard:4:2/8") == Step("shard", (4,), 2, 8)
    True
    """
    task, arms, part = argument.split(":")
    number, _, of = part.partition("/")
    tasks: dict[str, Task] = {name: name for name in get_args(Task)}
    return Step(tasks[task], tuple(int(a) for a in arms.split(",") if a), int(number), int(of))


def levels(bundles: Sequence[Sequence[int]], arms: int, shards: int = 1, shared: Sequence[tuple[int, ...]] = (),
           writers: Sequence[int] = ()) -> list[list[Step]]:
    """Lay out a sweep of ``arms`` arms, all of which are reported.

    bundles: the numbers of the arms to run, one job per bundle. shards: the number of parts of each arm, one job per
    part. shared: groups of arms that share scores; bundles without an arm of a group run beside the scoring. writers:
    arms that ask a model before they search; one job asks for all parts of the preparation. A single arm without
    shards needs no preparation.

    >>> [[str(s) for s in level] for level in levels([[0, 1], [2]], 4, shared=[(1, 2)])]
    [['prepare:0,1,2:0/1'], ['score:1,2:0/1'], ['arms:0,1:0/1', 'arms:2:0/1'], ['report:0,1,2,3:0/1']]
    >>> [str(s) for s in levels([[0], [1], [2]], 3, shared=[(0, 1)])[1]]
    ['score:0,1:0/1', 'arms:2:0/1']
    """
    numbers = tuple(n for bundle in bundles for n in bundle)
    steps = [[Step("write", tuple(writers))]] if shards > 1 and writers else []
    if shards > 1 or len(numbers) > 1:
        steps.append([Step("prepare", numbers, i, shards) for i in range(shards)])
    waiting = {n for group in shared for n in group}
    first = [bundle for bundle in bundles if shared and not waiting.intersection(bundle)]
    steps.append([*(Step("score", group, i, shards) for group in shared for i in range(shards)),
                  *_arm_steps(first, shards)])
    steps.append(_arm_steps([bundle for bundle in bundles if bundle not in first], shards))
    if shards > 1:
        steps.append([Step("merge", (n,), 0, shards) for n in numbers])
    return [*(level for level in steps if level and numbers), [Step("report", tuple(range(arms)))]]


def _arm_steps(bundles: Sequence[Sequence[int]], shards: int) -> list[Step]:
    if shards == 1:
        return [Step("arms", tuple(bundle)) for bundle in bundles]
    return [Step("shard", (n,), i, shards) for bundle in bundles for n in bundle for i in range(shards)]


def bundle_arms(arms: Sequence[Arm], limit: int) -> list[list[int]]:
    """Put arms that load the same models into bundles of at most ``limit``; return their numbers."""
    return bundle([models_key(arm) for arm in arms], limit)


def bundle(keys: Iterable[str], limit: int) -> list[list[int]]:
    """Put the positions of equal keys into bundles of at most ``limit``.

    >>> bundle(["a", "b", "a", "a"], limit=2)
    [[0, 2], [3], [1]]
    """
    by_key: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        by_key.setdefault(key, []).append(number)
    return [numbers[at : at + limit] for numbers in by_key.values() for at in range(0, len(numbers), limit)]


def models_key(arm: Arm) -> str:
    """Return a digest of the models that an arm loads; chat models do not count, since a server holds them."""
    models = models_in([stage for _, stage in arm.pipeline.stages()])
    return spec_digest(sorted({spec_digest(model) for model in models if not isinstance(model, Chat)}))
