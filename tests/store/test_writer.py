"""Time left while models work, by a clock that their work alone moves: no test waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.models.local.batching import pack
from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.tables import texts_frame
from memlab.store import Store
from memlab.support import progress

LOADING = 40.0
"""Seconds until the first block, in addition to its work."""


class Clock:
    """Seconds that only work adds to, and the estimates that were shown."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.shown: list[tuple[float, float, float | None]] = []  # share of the cost, moment, seconds left

    def monotonic(self) -> float:
        return self.now

    def at(self, share: float) -> float:
        """Return estimated over true time left when this share of the work was done."""
        _, moment, left = next(row for row in self.shown if row[0] >= share)
        assert left is not None
        return left / (self.shown[-1][1] - moment)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    class Watched(progress.Pace):
        def step(self, units: int, cost: float | None = None) -> None:
            super().step(units, cost)
            clock.shown.append((self.done / self.cost, clock.now, self.left()))

    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "Pace", Watched)
    return clock


class Model:
    """Work of one millisecond per padded token, longest texts first."""

    name = "timed"
    limit = 120
    encodes_passages = False

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def identity(self) -> dict[str, Any]:
        return {"is": "timed", "of": type(self).__name__}

    def dim(self) -> int:
        return 2

    def token_limit(self) -> int:
        return self.limit

    def truncated(self, texts: Sequence[str], role: Role) -> Any:
        raise NotImplementedError

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        del role
        for batch in self.batches(texts):
            yield batch, np.ones((len(batch), 2), np.float32)

    def batches(self, texts: Sequence[str]) -> Iterator[Ints]:
        """Yield packed batches; words of four characters are its tokens."""
        lengths = np.array([min(len(text.split()), self.limit) + 2 for text in texts])
        self.clock.now += LOADING
        for batch in pack(lengths, 2048):
            self.clock.now += .001 * len(batch) * int(lengths[batch].max())
            yield batch


def texts(n: int, seed: int = 0) -> pl.DataFrame:
    """Return n texts of which most are short and a few very long, as turns are."""
    lengths = np.random.default_rng(seed).pareto(1.2, n) * 6 + 3
    return texts_frame([f"{i:04d} " + "word " * min(int(length), 900) for i, length in enumerate(lengths)])


def test_encoding_longest_first(tmp_path: Path, clock: Clock) -> None:
    Store(tmp_path).vectors(Model(clock), texts(6000), "document")
    assert clock.shown[-1][0] == pytest.approx(1.0)
    assert .7 < clock.at(.1) < 1.3
    assert .7 < clock.at(.5) < 1.3
