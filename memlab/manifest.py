"""What a reviewer needs to judge a run again: source, versions, hardware, costs; written last into a run folder."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent
COMMIT = "commit.json"
"""Lies beside a copy of memlab's source, and says which commit was copied."""

BESIDE_THE_RESULT = ("report", "track", "cluster", "run.py", "arms.py", "submit.py", "status.py", "plan.py",
                     "overrides.py", "doctor.py", "upkeep.py", "progress.py", "manifest.py")
"""Parts of memlab that cannot change a ranking or a metric: their source is left out of an arm's digest."""

LIBRARIES = ("numpy", "scipy", "polars", "torch", "transformers", "sentence-transformers", "tokenizers", "faiss-cpu",
             "faiss-gpu", "bm25s", "PyStemmer", "hydra-core", "pydantic", "wandb", "FlagEmbedding")


@functools.cache
def source_digest() -> str:
    """Digest memlab's own source as far as it can change a result."""
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in BESIDE_THE_RESULT:
            total.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


@functools.cache
def versions() -> dict[str, str]:
    """Name the version of Python and of every library that a result can depend on, as far as installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """Name the processor, the cores that this process may use, the memory and the GPUs."""
    gpus: list[str] = []
    if "torch" in sys.modules:  # not loaded just to say that there is no GPU
        import torch

        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"processor": _processor(), "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
            else os.cpu_count(), "memory_gb": round(pages / 2**30, 1), "gpus": gpus}


@functools.cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@functools.cache
def commit() -> dict[str, Any]:
    """Name the commit of the checkout, or of the one that this is a copy of, and whether files differ from it.

    Nulls outside a checkout.
    """
    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(PACKAGE.parent), *words],  # noqa: S603, S607 (fixed words, user's git)
                              capture_output=True, text=True, timeout=20, check=True)
        return done.stdout.strip()

    if (PACKAGE.parent / COMMIT).is_file():
        return read_json(PACKAGE.parent / COMMIT)
    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "--", "memlab", "conf"))}
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}


def peak_memory_gb() -> float:
    """Peak resident memory of this process so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**30 if sys.platform == "darwin" else 2**20), 3)


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that the file is either whole or absent."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(json.dumps(content, indent=1, sort_keys=False, allow_nan=False, default=str) + "\n",
                         encoding="utf-8")
        os.replace(aside, path)
    except OSError:
        with suppress(OSError):
            aside.unlink()
        raise


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that ``write_json`` wrote."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
