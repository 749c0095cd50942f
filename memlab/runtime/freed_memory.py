"""Memory that was freed and that the C library keeps for later."""

from __future__ import annotations

import ctypes


def release_freed_memory() -> bool:
    """Give freed memory back to the system; return whether there was any. Only glibc can: elsewhere it returns False.

    glibc keeps small blocks that were freed among others, hundreds of megabytes after reading many vectors.
    """
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return False
