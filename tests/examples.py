"""How many examples a property test takes."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def fewer(divisor: int, **more: Any) -> settings:
    """Settings of a property whose examples are costly: those of the profile by a divisor, but at least five."""
    return settings(max_examples=max(5, settings().max_examples // divisor), **more)
