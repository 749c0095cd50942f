"""Retries of requests: the waits between attempts, and their number."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tenacity import RetryCallState, retry_if_exception_type, stop_after_attempt, wait_exponential, wait_random

LONGEST_WAIT = 120.0
"""Seconds; a service that asks for a longer wait has run out of quota."""


class TemporaryFailure(Exception):
    """A failure that may not occur again; ``retry_after`` is the header of that name."""

    def __init__(self, what: str, retry_after: str | None = None) -> None:
        super().__init__(what)
        self.retry_after = retry_after


def retry_options(retries: int, first_wait: float) -> dict[str, Any]:
    """Return tenacity's options: repeat after a TemporaryFailure, and raise the last one.

    A wait is as long as the service asks for, or else ``first_wait`` seconds, doubled at each further attempt, plus
    jitter; it is at most ``LONGEST_WAIT``.
    """
    backoff = wait_exponential(multiplier=first_wait, max=LONGEST_WAIT) + wait_random(0, first_wait)

    def wait(state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        return min(asked_wait(getattr(failure, "retry_after", None), backoff(state)), LONGEST_WAIT)

    return {"retry": retry_if_exception_type(TemporaryFailure), "stop": stop_after_attempt(retries + 1), "wait": wait,
            "reraise": True}


def asked_wait(header: str | None, otherwise: float) -> float:
    """Return the seconds that a Retry-After header asks for, as a number or a date."""
    if not header:
        return otherwise
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return otherwise
