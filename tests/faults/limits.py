"""Limits of a disk: no file above a size, a small disk that is full, a folder that nobody may write to."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let this process write no file of more bytes: the kernel refuses it as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@contextmanager
def small_disk(place: Path, size: str = "8m") -> Iterator[Path]:
    """A disk of its own; skips without root's rights."""
    place.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here: that takes root's rights")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(place: Path) -> None:
    """Leave no byte on a disk: the file ``much`` takes them."""
    with (place / "much").open("wb", buffering=0) as out, suppress(OSError):
        while out.write(bytes(1024)):
            pass


@contextmanager
def read_only(place: Path) -> Iterator[Path]:
    """A folder, with what it holds, that nobody may write to; for root, to whom all is open, a read-only disk."""
    place.mkdir(parents=True, exist_ok=True)
    if os.geteuid():
        place.chmod(0o500)
        try:
            yield place
        finally:
            place.chmod(0o700)
        return
    if subprocess.run(["mount", "--bind", place, place], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
