"""Running one arm in a shell or in a job of a cluster, with its outcome on the console."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.markup import escape

from memlab.errors import MemlabError, error_message
from memlab.harness.arm import Arm, Ranked
from memlab.harness.plan import in_plan_terms
from memlab.harness.results import failure_file
from memlab.runtime.console import Console
from memlab.runtime.machine import OF_A_RUN, enough_memory
from memlab.runtime.redaction import redact
from memlab.store import Store


def run_arm(arm: Arm, store: Store, out: Console, ranked: Callable[[], Ranked] | None = None) -> bool:
    """Run one arm, print how it ended, and return whether it finished.

    The traceback of an arm that fails goes to a file beside its folder, and stops no other arm. ``ranked`` returns the
    result of the arm's shards, if it has any.
    """
    start, before = time.perf_counter(), Counter(store.made)
    if arm.is_finished():
        out.print(f"  [dim]{escape(arm.name)}: finished before[/dim]")
        return True
    try:
        with enough_memory(OF_A_RUN):
            arm.run(store, ranked=ranked() if ranked else None)
        failure_file(arm.folder()).unlink(missing_ok=True)
    except Exception as error:
        out.print(f"  [red]{escape(arm.name)} failed[/red]: {escape(error_message(error))}")
        if details := keep_traceback(failure_file(arm.folder()), error):
            out.print(f"    {escape(details)}")
        return False
    made = ", ".join(f"{n:,} {what}" for what, n in in_plan_terms(store.made - before).items())
    out.print(f"  [green]{escape(arm.name)}[/green]: {time.perf_counter() - start:.1f} s "
              f"({f'{made} made' if made else 'no model was asked anything new'})")
    return True


def keep_traceback(path: Path, error: Exception) -> str:
    """Write an exception's traceback, without keys, to a file and return its path.

    Where writing fails, return the traceback itself, or "" for a MemlabError, whose message says all.
    """
    trace = redact("".join(traceback.format_exception(error)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trace, encoding="utf-8")
    except OSError:
        with suppress(OSError):
            path.unlink()  # half a traceback helps nobody; the log and the exit status do
        return "" if isinstance(error, MemlabError) else trace
    return f"details: {path}"
