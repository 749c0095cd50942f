"""Commands that fit on a configured run, and their exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memlab.errors import Faults, MemlabError
from memlab.harness.arm import Arm, load
from memlab.harness.sweep import read_one
from memlab.learn.fits import save
from memlab.runtime.machine import OF_A_RUN, enough_memory
from memlab.runtime.terminal import own_words, print
from memlab.store import Store, store_at
from memlab.tables import Tables


def read_arm(arguments: Sequence[str]) -> tuple[Arm, Store]:
    """Return the one arm that arguments of memlab.run configure, and the store; raise Faults for several arms."""
    arm, settings = read_one(arguments)
    return arm, store_at(settings.store)


def report(action: Callable[[], str], failed: int = 1) -> int:
    """Print what the action returns, or its error; return the exit status: 2 for wrong arguments."""
    try:
        print(action())
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 2 if isinstance(error, Faults) else failed
    return 0


def fit_command(argv: Sequence[str] | None, fit: Callable[[Tables], Any], text: str) -> int:
    """Fit on the ranking that the arguments configure, save it at ``file=``, and return the exit status.

    ``--help`` prints the text.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help"} & {*arguments}:
        print(text)
        return 0

    def action() -> str:
        own, others = own_words(arguments, ["file"])
        if not own.get("file"):
            raise MemlabError("no file for the fit is given", fix="file=FIT.json")
        arm, store = read_arm(others)
        with enough_memory(OF_A_RUN):
            tables = arm.pipeline.run(load(arm.dataset), store)
            save(fit(tables), Path(own["file"]))
        return f"fitted on {tables['questions'].height:,} questions of {arm.dataset.name}: {own['file']}"

    return report(action, failed=2)
