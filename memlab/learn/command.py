"""Arguments and exit status of the commands that fit on configured runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.sweep import read_one
from memlab.store import Store, store_at
from memlab.support.errors import Faults, MemlabError
from memlab.support.terminal import print


def read_arm(arguments: Sequence[str]) -> tuple[Arm, Store]:
    """Return the one arm that arguments of memlab.run configure, and the store; raise Faults for several arms."""
    arm, settings = read_one(arguments)
    return arm, store_at(settings.store)


def report(action: Callable[[], str]) -> int:
    """Print what the action returns, or its error; return the exit status: 2 for wrong arguments."""
    try:
        print(action())
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 2 if isinstance(error, Faults) else 1
    return 0


def split(words: Sequence[str]) -> list[list[str]]:
    """Return the words of each data set; those that belong to none belong to all.

    >>> split(["seed=1", "data=locomo", "data.path=a", "system=best", "data=synthetic"])
    [['seed=1', 'system=best', 'data=locomo', 'data.path=a'], ['seed=1', 'system=best', 'data=synthetic']]
    """
    common = [word for word in words if not word.startswith(("data=", "data."))]
    parts: list[list[str]] = []
    for word in words:
        if word.startswith("data=") or word.startswith("data.") and not parts:
            parts.append([])
        if word.startswith(("data=", "data.")):
            parts[-1].append(word)
    return [common + part for part in parts or [[]]]
