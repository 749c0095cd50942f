"""Progress of long work: done of total, rate, time left.

On a terminal a bar that disappears when the work is done; elsewhere (a log file, a cluster job) one line every
half minute, and nothing for work that is shorter than that.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Step = Callable[..., None]
"""``step(n, note="")``: n more units are done; the note (a padding share, for example) is shown after the rate."""

_LINE_EVERY = 30.0  # seconds: often enough to see that a job runs, seldom enough to leave its log readable
_SURE_SHARE, _SURE_SECONDS = 0.02, 10.0  # before the first estimate: an earlier one is far off, and remembered
_WAIT = 0.5  # seconds before a bar appears, so that short work does not flicker
_live: list[object] = []  # bars on the screen; an inner one stays silent, since two would overwrite each other


def clock(seconds: float) -> str:
    """Format a duration for people.

    >>> clock(7.2), clock(150), clock(7300)
    ('7 s', '2 min 30 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def state(done: int, total: int, unit: str, seconds: float, note: str = "") -> str:
    """Describe work in one line.

    >>> state(50, 200, "texts", 10.0)
    '50/200 texts, 5.0 texts/s, 30 s left'
    """
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{done:,}/{total:,} {unit}", f"{rate:,.{0 if rate >= 100 else 1}f} {unit}/s"]
    if note:
        parts.append(note)
    if 0 < done < total and rate > 0 and (done >= _SURE_SHARE * total or seconds >= _SURE_SECONDS):
        parts.append(f"{clock((total - done) / rate)} left")
    return ", ".join(parts)


@contextmanager
def progress(label: str, total: int, unit: str, *, stream: TextIO | None = None,
             every: float = _LINE_EVERY) -> Iterator[Step]:
    """Show work of ``total`` units while the block runs; call the yielded ``step(n, note="")`` as it is done.

    ``stream`` is standard error by default; ``every`` is the time between two lines off a terminal, in seconds.
    """
    stream = stream or sys.stderr
    if _live or total == 0:
        yield _silent
    elif stream.isatty():
        yield from _bar(label, total, unit, stream)
    else:
        yield _lines(label, total, unit, stream, every)


def _silent(n: int, note: str = "") -> None:
    del n, note


def _lines(label: str, total: int, unit: str, stream: TextIO, every: float) -> Step:
    start = last = time.monotonic()
    done = 0

    def step(n: int, note: str = "") -> None:
        nonlocal done, last
        done += n
        now = time.monotonic()
        if now - last >= every:
            last = now
            print(f"{label}: {state(done, total, unit, now - start, note)}", file=stream, flush=True)

    return step


def _bar(label: str, total: int, unit: str, stream: TextIO) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"),
                   console=Console(file=stream, force_terminal=True), transient=True)
    task = bar.add_task(label, total=total, state="")
    start = time.monotonic()
    done = 0

    def step(n: int, note: str = "") -> None:
        nonlocal done
        done += n
        seconds = time.monotonic() - start
        if seconds >= _WAIT and not bar.live.is_started:
            bar.start()
        bar.update(task, completed=done, state=state(done, total, unit, seconds, note))

    _live.append(bar)
    try:
        yield step
    finally:
        _live.remove(bar)
        bar.stop()
