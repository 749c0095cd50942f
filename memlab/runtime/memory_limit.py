"""Lack of memory as an error that says what to make smaller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from memlab.errors import MemlabError

OF_A_RUN = "take fewer questions (data.limit=100), or rank the corpora in parts (shards=8)"
"""What makes a run smaller."""

_TORCH = re.compile(r"DefaultCPUAllocator: can't allocate memory|backend out of memory|STATUS_ALLOC_FAILED")
"""Parts of torch's RuntimeErrors that have no class of their own: of CPUs, of Apple's GPUs and of CUDA's libraries."""


@contextmanager
def enough_memory(fix: str, where: str = "") -> Iterator[None]:
    """Raise a lack of memory in the block as a MemlabError with this fix; also a decorator.

    polars ends the process instead of raising an exception.
    """
    try:
        yield
    except Exception as error:
        if not is_lack(error):
            raise
        detail = " ".join(str(error).split())
        raise MemlabError(f"there is not enough memory{f' ({detail:.200})' if detail else ''}", where=where,
                          fix=fix) from error


def is_lack(error: BaseException) -> bool:
    """Return whether an exception of Python, numpy or torch says that no memory is left, of the machine or of a GPU.

    >>> is_lack(MemoryError()), is_lack(RuntimeError("no such file"))
    (True, False)
    """
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or isinstance(error, RuntimeError) and bool(_TORCH.search(str(error)))
