"""Strategies of input that is almost right: valid JSON values, lines and bytes with a few things changed.

The profile sets the number of examples, and ``MEMLAB_EXAMPLES=N`` another one. Nesting stays below 90 levels.
"""

from __future__ import annotations

import copy
import json
import math
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from memlab.support.errors import MemlabError

HANG_SECONDS, ASLEEP_SECONDS = 10, 120
"""Of the processor, so that a busy machine is no hang; and of the clock, for a reader that waits."""

MEMORY_KB = 1_000_000
"""Growth of the process that a reader may cause, in kB."""

fuzz = settings(print_blob=True, suppress_health_check=list(HealthCheck))


class Hang(BaseException):
    """A reader took longer than ``time_limit`` allows; no reader may catch it."""


def nested(depth: int, *, kind: str = "list") -> Any:
    """Return lists or objects inside one another."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


TEXTS = (
    "", " ", "\n", "\0", "\x1b[2J\x07", "\ud800", "a\udfffb", "\u2028", "line\u2029two", "\x85", "\ufeff", "\U0001f409",
    "a" * 3000, "9" * 6000, "-1", "1e999", "nan", "null", "true", "user", "assistant", "../../x", "/", "\\", "%",
    "%ZZ%00", "2023-05-20", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2023-13-45",
    "1:56 pm on 8 May, 2023", "2023/05/20 (Sat) 02:21", "1709286000.0001",
    "{}", "[x]", "${oc.env:HOME}", "D" + "1" * 5000 + ":1", "٣", "²",
    "http://[", "\t", "__class__", "session_1", "session_²", "<b>&#x110000;</b>", "d.m: 1", "\u200e", "1" * 400)
NUMBERS = (0, -1, 1, 2, 255, 2**31, 2**32, 2**63, 2**64, -2**63 - 1, 10**30, 10**309, 0.5, -0.0, 1e308, 1e-320, 1e18,
           math.nan, math.inf, -math.inf, 253402300800)
ODD: tuple[Any, ...] = (*TEXTS, *NUMBERS, None, True, False, [], {}, [[]], [{}], {"": None}, [None], {"a": []},
                        ["x"] * 50)
BYTES = (b"\0", b"\n", b"\xff", b"\xc3(", b"\xe2\x80\xa8", b"NaN", b"1e999", b"-", b"9" * 6000, b"[" * 60, b'"')


def odd() -> st.SearchStrategy[Any]:
    """Return values of all types, many of them at the edge of what a type holds."""
    return st.one_of(
        st.sampled_from(ODD), st.text(max_size=12), st.integers(), st.floats(),
        st.builds(nested, st.integers(1, 85), kind=st.sampled_from(("list", "object")))).map(copy.deepcopy)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (holder, key) of every value within lists and objects."""
    pending = [value]
    while pending:
        holder = pending.pop()
        keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], list | dict):
                pending.append(holder[key])


CHANGES = ("replace", "replace", "drop", "double", "swap", "wrap", "rename", "text", "text", "nest", "fill")


@st.composite
def mutated(draw: st.DrawFn, *valid: Any, most: int = 4) -> Any:
    """Draw one of some JSON values, with at most ``most`` changes."""
    value = copy.deepcopy(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(0, most))):
        spots = list(places(value)) if isinstance(value, list | dict) else []
        if not spots or draw(st.integers(0, 60)) == 0:
            return draw(odd())
        holder, key = draw(st.sampled_from(range(len(spots))).map(spots.__getitem__))
        _change(draw, holder, key, spots)
    return value


def _change(draw: st.DrawFn, holder: Any, key: Any, spots: list[tuple[Any, Any]]) -> None:
    change = draw(st.sampled_from(CHANGES))
    old = holder[key]
    if change == "drop":
        del holder[key]
    elif change == "double" and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(old))
    elif change in ("swap", "double"):
        other, name = spots[draw(st.integers(0, len(spots) - 1))]
        holder[key] = copy.deepcopy(other[name])
    elif change == "wrap":
        holder[key] = copy.deepcopy(draw(st.sampled_from(([old], {"a": old}, [old, old], {"": [old]}))))
    elif change == "rename" and isinstance(holder, dict):
        holder[draw(st.sampled_from([*TEXTS, *(n for h, n in spots if isinstance(h, dict))]))] = holder.pop(key)
    elif change == "text" and isinstance(old, str):
        at = draw(st.integers(0, len(old)))
        middle = draw(st.one_of(st.sampled_from(TEXTS), st.text(max_size=3)))
        holder[key] = old[:at] + middle + old[at + draw(st.sampled_from((0, 0, 1, 3, 1000))):]
    elif change == "nest":
        holder[key] = nested(draw(st.integers(1, 40)), kind=draw(st.sampled_from(("list", "object"))))
    elif change == "fill" and isinstance(old, list) and old:
        holder[key] = copy.deepcopy(old * draw(st.integers(0, 20)))
    else:
        holder[key] = draw(odd())


@st.composite
def as_json(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> bytes:
    """Draw the bytes of a JSON value: characters as they are or escaped, now and then damaged."""
    value = draw(values)
    return draw(damaged(st.just(json_bytes(value, ascii_only=draw(st.booleans())))))


@st.composite
def as_lines(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> bytes:
    """Draw the bytes of JSON lines, from values that are lists; another value is a line of its own."""
    value = draw(values)
    ascii_only = draw(st.booleans())
    lines = [json_bytes(line, ascii_only=ascii_only) for line in (value if isinstance(value, list) else [value])]
    return draw(damaged(st.just(draw(st.sampled_from((b"\n", b"\n", b"\r\n", b"\n\n"))).join(lines))))


def json_bytes(value: Any, *, ascii_only: bool = True) -> bytes:
    """Return a value as JSON; half surrogates become bytes that are no UTF-8 where they are not escaped."""
    return json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Draw bytes that are mostly as they were, else cut off, flipped, doubled, or with other bytes between."""
    data = draw(whole)
    kind = draw(st.sampled_from(("none",) * 6 + ("cut", "flip", "insert", "double", "mark", "utf16", "raw")))
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    if kind == "cut":
        return data[:at]
    if kind == "flip" and data:
        return data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1:]
    if kind == "insert":
        return data[:at] + draw(st.binary(max_size=4) | st.sampled_from(BYTES)) + data[at:]
    if kind == "double":
        return data + data
    if kind == "mark":
        return b"\xef\xbb\xbf" + data
    if kind == "utf16":
        return data.decode("utf-8", "replace").encode("utf-16")
    return draw(st.binary(max_size=200)) if kind == "raw" else data


def outcome(read: Callable[[], Any]) -> Any:
    """Return what a reader returns, or its MemlabError; raise ``Hang`` for 10 s, AssertionError for 1 GB more."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with time_limit():
            return read()
    except MemlabError as fault:
        return fault
    finally:
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < MEMORY_KB, f"the process grew by {grown / 1e6:.1f} GB"


@contextmanager
def time_limit() -> Iterator[None]:
    """Interrupt what takes more than ``HANG_SECONDS`` of the processor or ``ASLEEP_SECONDS`` of the clock."""
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"longer than {HANG_SECONDS} s of the processor or {ASLEEP_SECONDS} s of the clock")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, HANG_SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, ASLEEP_SECONDS))
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
