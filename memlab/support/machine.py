"""This machine: cores, versions of packages, errors when memory runs out, and Python's garbage collection."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from memlab.support.errors import MemlabError


def usable_cores() -> int:
    """Return the number of cores that this process may use; a job's share can be less than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def package_version(package: str) -> str:
    """Return the version of an installed package; "" if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the search, for work that makes many small objects and drops few; also a decorator.

    Reading a configuration makes millions of them, and a tenth of its time went to looking at them again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def release_freed_memory() -> bool:
    """Give freed memory back to the system; return whether there was any. Only glibc can: elsewhere it returns False.

    glibc keeps small blocks that were freed among others, hundreds of megabytes after reading many vectors.
    """
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return False


OF_A_RUN = ("take fewer questions (data.limit=100), or rank the corpora in parts (shards=8); of a GPU, end what "
            "holds it (nvidia-smi), or start its server with less (memlab serve MODEL --gpu-memory SHARE)")
"""What makes a run smaller."""

_TORCH = re.compile(r"DefaultCPUAllocator: can't allocate memory|backend out of memory|STATUS_ALLOC_FAILED")
"""Parts of torch's RuntimeErrors that have no class of their own: of CPUs, of Apple's GPUs and of CUDA's libraries."""

_UNMAPPED = "failed to map segment from shared object"
"""What the loader of libraries says where the process may not have their memory."""


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
    if isinstance(error, ImportError) and _UNMAPPED in str(error):  # or its folder is for no programs
        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or isinstance(error, RuntimeError) and bool(_TORCH.search(str(error)))
