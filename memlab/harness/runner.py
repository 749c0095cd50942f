"""Running arms and reporting them, in whatever process: a laptop's shell or a cluster's job."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from memlab.errors import MemlabError
from memlab.harness.arm import Arm, Ranked
from memlab.harness.plan import in_plan_terms
from memlab.harness.results import failure_file
from memlab.store import Store


def run_arm(arm: Arm, store: Store, out: Console, ranked: Callable[[], Ranked] | None = None) -> bool:
    """Run one arm and tell how it ended; one that fails is told in a file beside its folder, and stops no other.

    ``ranked`` gives what its shards have made, where it has any.
    """
    start, before = time.perf_counter(), Counter(store.made)
    if arm.finished():
        out.print(f"  [dim]{escape(arm.name)}: finished before[/dim]")
        return True
    try:
        arm.run(store, ranked=ranked() if ranked else None)
        failure_file(arm.folder()).unlink(missing_ok=True)
    except Exception as error:
        out.print(f"  [red]{escape(arm.name)} failed[/red]: {escape(worded_error(error))}\n"
                  f"    {escape(keep_traceback(failure_file(arm.folder())))}")
        return False
    made = ", ".join(f"{n:,} {what}" for what, n in in_plan_terms(store.made - before).items())
    out.print(f"  [green]{escape(arm.name)}[/green]: {time.perf_counter() - start:.1f} s "
              f"({f'{made} made' if made else 'no model was asked anything new'})")
    return True


def worded_error(error: Exception) -> str:
    """Say what went wrong in a line: memlab's own words, or the exception's with its name."""
    return str(error) if isinstance(error, MemlabError) else f"{type(error).__name__}: {error}"


def keep_traceback(path: Path) -> str:
    """Keep the traceback of the exception at hand; where the disk is what failed, return it instead."""
    trace = traceback.format_exc()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trace, encoding="utf-8")
    except OSError:
        with suppress(OSError):
            path.unlink()  # half a traceback says nothing; the log and the exit status do
        return trace
    return f"details: {path}"


