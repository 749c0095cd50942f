"""Progress of long work: done of total, rate, time left.

On a terminal a bar that disappears when the work is done; elsewhere (a log file, a cluster job) one line every
half minute, and nothing for work that is shorter than that.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TextIO

from memlab.support.terminal import print

Step = Callable[..., None]
"""``step(n, note="", cost=None)``: n more units of a cost are done; the note is shown after the rate."""

_LINE_EVERY = 30.0  # seconds: often enough to see that a job runs, seldom enough to leave its log readable
_SURE_SHARE, _SURE_SECONDS = 0.02, 10.0  # before the first estimate: an earlier one is far off, and remembered
_WAIT = 0.5  # seconds before a bar appears, so that short work does not flicker
_SCREEN = Lock()  # held by a bar; an inner one stays silent, since two would overwrite each other


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


class Pace:
    """Done work and its cost over time.

    Args:
        total: Units of work in all.
        cost: Cost of all units, in any measure to which time is proportional; None: one for each unit.
        loads: Whether the first step includes the loading of a model. The pace is then that of the later steps.
    """

    def __init__(self, total: int, cost: float | None = None, *, loads: bool = False) -> None:
        self.total, self.loads = total, loads
        self.cost = float(total) if cost is None else cost
        self.start = time.monotonic()
        self.units = 0
        self.done = self.seconds = 0.0
        self._first: tuple[float, float] | None = None if loads else (0.0, 0.0)  # cost and seconds left out

    def step(self, units: int, cost: float | None = None) -> None:
        """Count work that was done just now."""
        self.units += units
        self.done += units if cost is None else cost
        self.seconds = time.monotonic() - self.start
        if self._first is None:
            self._first = self.done, self.seconds

    def seconds_left(self) -> float | None:
        """Return the seconds that the rest will take; None when all is done, or while that is a guess."""
        first_cost, first_seconds = self._first or (0.0, 0.0)
        done, seconds = self.done - first_cost, self.seconds - first_seconds
        sure = self.done >= _SURE_SHARE * self.cost or self.seconds >= _SURE_SECONDS
        if self.units >= self.total or not sure or done <= 0 or seconds <= 0:
            return None
        return max(0.0, self.cost - self.done) * seconds / done

    def describe(self, unit: str, note: str) -> str:
        """Describe the work in one line: done of total, rate, note, and the time left if it can be said.

        With a time left the rate is that of the rest, since the first units may be the costly ones.
        """
        left = self.seconds_left()
        units, seconds = (self.units, self.seconds) if left is None else (self.total - self.units, left)
        rate = units / seconds if seconds > 0 else 0.0
        return ", ".join(filter(None, [
            f"{self.units:,}/{self.total:,} {unit}", f"{rate:,.{0 if rate >= 100 else 1}f} {unit}/s", note,
            "" if left is None else f"{clock(left)} left"]))


def say(text: str) -> None:
    """Print a line to standard error on a terminal, unless a bar is there; nothing elsewhere."""
    if sys.stderr.isatty() and not _SCREEN.locked():
        print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(label: str, total: int, unit: str, *, cost: float | None = None, loads: bool = False,
             stream: TextIO | None = None, every: float = _LINE_EVERY) -> Iterator[Step]:
    """Show work of ``total`` units while the block runs; call the yielded ``step`` (``Step``) as it is done.

    ``cost`` is that of all units and ``loads`` whether the first step loads a model (see ``Pace``). ``stream`` is
    standard error by default; ``every`` is the time between two lines off a terminal, in seconds.
    """
    stream = stream or sys.stderr
    pace = Pace(total, cost, loads=loads)
    if total == 0 or _SCREEN.locked():
        yield lambda *_, **__: None
    elif stream.isatty():
        yield from _bar(label, pace, unit, stream)
    else:
        yield _lines(label, pace, unit, stream, every)


def _lines(label: str, pace: Pace, unit: str, stream: TextIO, every: float) -> Step:
    last = 0.0

    def step(n: int, note: str = "", cost: float | None = None) -> None:
        nonlocal last
        pace.step(n, cost)
        if pace.seconds - last >= every:
            last = pace.seconds
            print(f"{label}: {pace.describe(unit, note)}", file=stream, flush=True)

    return step


def _bar(label: str, pace: Pace, unit: str, stream: TextIO) -> Iterator[Step]:
    from rich.progress import BarColumn, Progress, TextColumn

    from memlab.support.console import Console

    bar = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"),
                   console=Console(file=stream, force_terminal=True), transient=True)
    task = bar.add_task(label, total=pace.cost, state="")

    def step(n: int, note: str = "", cost: float | None = None) -> None:
        pace.step(n, cost)
        if pace.seconds >= _WAIT and not bar.live.is_started:
            bar.start()
        bar.update(task, completed=pace.done, state=pace.describe(unit, note))

    with _SCREEN:
        try:
            yield step
        finally:
            bar.stop()
