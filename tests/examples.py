"""How many examples a property test takes, and which parameters of another wait for the night."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings

NIGHTLY = os.environ.get("MEMLAB_NIGHTLY") == "1"
"""Whether .ci/nightly runs the tests: those that try some of many cases then try all, or more."""


def rest_at_night(values: Iterable[Any], now: Collection[Any]) -> list[Any]:
    """Parameters of a test: all values, of which those that are not among ``now`` are marked ``nightly``."""
    return [value if value in now else
            pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.nightly)
            for value in values]


def fewer(divisor: int, **more: Any) -> settings:
    """Settings of a property whose examples are costly: those of the profile by a divisor, but at least five."""
    return settings(max_examples=max(5, settings().max_examples // divisor), **more)
