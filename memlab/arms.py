"""Running arms and reporting them, in whatever process: a laptop's shell or a cluster's job."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from memlab.arm import Arm, Ranked
from memlab.errors import MemlabError
from memlab.evaluate.contrast import Contrast
from memlab.manifest import read_json
from memlab.plan import worded
from memlab.store import Store
from memlab.track.failure import failure_file


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
    made = ", ".join(f"{n:,} {what}" for what, n in worded(store.made - before).items())
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


def publish(arms: Iterable[Arm], track: Any, contrasts: Sequence[Contrast], before: Sequence[Path] = ()) -> list[Path]:
    """Publish what finished (with its twin) or failed, and build a report beside it; return the comparisons' files.

    ``before`` are comparisons of just these arms that a job has built: then none is built again.
    """
    from memlab.report.build import build

    built: list[Path] = []
    arms = list(arms)
    for place in dict.fromkeys(arm.beside() for arm in arms):
        here = [a for a in arms if a.beside() == place]
        exact: dict[str, str] = {}
        for arm in here:
            matched = str(read_json(arm.folder() / "manifest.json").get("twin") or "") if arm.finished() else ""
            exact |= {arm.name: arm.folder().name, f"{arm.name}.twin": matched}
            if arm.finished() or failure_file(arm.folder()).is_file():
                track.publish(arm.folder())
            if matched:
                track.publish(place / matched)
        if any(arm.finished() for arm in here) and not before:
            built.append(build(place, contrasts=contrasts, expected=[a.name for a in here], exact=exact).json)
    return list(before) or built


def show(comparison: Path, arms: Sequence[Arm], out: Console) -> None:
    """Print the comparison that a report was built with, and where the report lies."""
    from memlab.report.console import print_arm, print_comparison

    read = read_json(comparison)
    here = [a.name for a in arms if a.beside().resolve() == comparison.parent.resolve()]
    if len(here) == 1 and here[0] in read["arms"]:
        print_arm(read, here[0], out)
    else:
        print_comparison(read, out)
    out.print(f"report: {comparison.with_name('report.html')}")
