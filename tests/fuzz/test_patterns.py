"""No pattern of memlab takes time that grows with the square of a text's length.

The texts are made of each pattern's own pieces (``tests/fuzz/patterns.py``), so a new pattern needs no new test.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from memlab.data.chats.whatsapp import HEAD
from memlab.data.questions import facts
from memlab.models.serving.process import CAUSES
from memlab.stages.query import decompose
from memlab.stages.query.classify import Rules
from memlab.support.text.temporal import context
from tests.examples import NIGHTLY
from tests.fuzz.patterns import METHODS, Used, all_patterns, texts_of

pytestmark = pytest.mark.nightly

LIMITS = {"memlab.data.chats.whatsapp_dates": HEAD, "memlab.stages.query.decompose": decompose.LONGEST,
          "memlab.data.questions.facts": facts.LONGEST,
          "memlab.data.questions.rules": facts.LONGEST_SENTENCE,
          "memlab.support.text.temporal.context": context._FAR}
"""Letters of the longest text that a module shows its patterns; it must take less than a second."""

LETTERS = 40_000
"""Of a text for all other patterns."""

SLOW, GROWTH = 0.05, 3.0
"""Seconds that are worth a second look, and how much longer twice the text may take."""

TEXTS = 2000 if NIGHTLY else 40
"""For each pattern, drawn among all that its pieces give."""


def seconds(used: Used, method: str, text: str, times: int) -> float:
    """The processor's shortest time, so that a busy machine is no slow pattern."""
    found = []
    for _ in range(times):
        start = time.thread_time()
        if method == "search":  # at every place
            for _ in used.pattern.finditer(text):
                pass
        else:
            getattr(used.pattern, method)(text)
        found.append(time.thread_time() - start)
    return min(found)


def grows(used: Used, method: str, text: str, longer: str) -> bool:
    """Return whether twice the text takes far more than twice the time, each time that both are measured in turns."""
    for _ in range(2):
        both = [(seconds(used, method, text, 1), seconds(used, method, longer, 1)) for _ in range(2)]
        if min(second for _, second in both) <= GROWTH * min(first for first, _ in both):
            return False
    return True


def sizes(most: int) -> Iterator[int]:
    """Lengths that grow slowly at first: a pattern may take twice the time for each letter."""
    size = 16.0
    while size < most:
        yield int(size)
        size *= 1.3 if size < 64 else 2
    yield most


def slow(used: Used, tried: int) -> str:
    """Say for which text a pattern is slow; "" if it is for none of those that are tried."""
    limit = LIMITS.get(used.where.rpartition(".")[0])
    for before, piece, after in texts_of(used.pattern, tried):
        for method in used.methods:
            for size in sizes(limit or LETTERS):
                text, longer = (before + piece * max(1, n // len(piece)) + after for n in (size, 2 * size))
                if seconds(used, method, text, 1) > SLOW and (once := seconds(used, method, text, 3)) > SLOW:
                    if once > 1.0 or size < 64 or limit is None and grows(used, method, text, longer):
                        return (f"{used.where}, {method}: {once:.2f} s for {len(text)} letters, {before[:40]!r}, then "
                                f"{piece[:40]!r} again and again, then {after[:40]!r}: {used.pattern.pattern[:120]!r}")
                    break
    return ""


@pytest.mark.parametrize(("pattern", "method", "found"), [
    (r"<attached: ([^>]*)>", "search", True), (r"D\s*:?\s*(\d{1,9})", "search", True), (r"\s+$", "search", True),
    (r"(\\*)(\"|\$\{|\Z)", "search", True), (r"(?:a|b|ab)*c", "match", True), (r"(\w+\s*)+:", "match", True),
    (r"^(.+?) when (.+?) $", "match", True), (r"\w+", "search", False), (r"(?<!\s)\s+$", "search", False),
    (r"[^:]*:", "match", False), (r"\b(\w+)=(\S+)", "search", False), (r"D\s*+(?::\s*+)?(\d{1,9})", "search", False)])
def test_a_slow_pattern_is_found_and_a_linear_one_is_not(pattern: str, method: str, found: bool) -> None:
    assert bool(slow(Used("here", re.compile(pattern), (method,)), 10_000)) == found


def test_no_pattern_takes_time_with_the_square_of_the_length() -> None:
    found = all_patterns()
    assert len(found) > 400
    found += [Used("Rules", re.compile(pattern, Rules.flags), METHODS[2:]) for _, pattern in Rules.patterns]
    found += [Used("CAUSES", re.compile(pattern), METHODS[2:]) for pattern, _, _ in CAUSES]
    faults = [fault for used in found if (fault := slow(used, TEXTS))]
    assert not faults, "\n".join(faults)
