"""The processor cores of this process."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of cores that this process may use; a job's share can be less than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
