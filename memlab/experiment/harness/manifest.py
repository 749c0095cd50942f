"""Versions and hardware of a run, for its manifest."""

from __future__ import annotations

import functools
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from memlab.models.protocols import parts
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import learns
from memlab.support.errors import MemlabError
from memlab.support.foreign import read_json
from memlab.support.machine import usable_cores
from memlab.support.paths import PACKAGE

COMMIT = "commit.json"
"""A file beside a copy of memlab's source that names the copied commit."""

LIBRARIES = ("memlab", "numpy", "scipy", "polars", "torch", "transformers", "sentence-transformers", "tokenizers",
             "faiss-cpu", "faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cuvs", "PyStemmer", "hydra-core", "pydantic",
             "wandb", "FlagEmbedding", "lightgbm")


@runtime_checkable
class FitOfRankings(Protocol):
    """Saved fits, each of one kind of ranking."""

    def fit_of(self, kind: Collection[str]) -> object:
        """Return the fit of rankings of a kind; raise MemlabError if there is none."""


def ways_to_ask(pipeline: Pipeline, kind: Collection[str]) -> dict[str, Any]:
    """Return how questions without labels are asked of a pipeline whose rankings are of this kind.

    ``ready`` says that it answers them as it is, or with a fit that memlab ships. ``training`` has, for each stage that
    is fitted on labels, the arguments of ``memlab train`` and those that load the fit; it is empty where one cannot be
    saved.
    """
    try:
        for saved in parts(pipeline.without_judges().select, FitOfRankings):
            saved.fit_of(kind)
        ready = True
    except MemlabError:
        ready = False
    training = [getattr(stage, "training", ()) for _, stage in pipeline.stages() if learns(stage)]
    return {"ready": ready, "training": [list(one) for one in training] if all(training) else []}


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of every installed library that a result can depend on."""
    numbers = {"python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            numbers[name] = metadata.version(name)
    return numbers


def hardware() -> dict[str, Any]:
    """Return the processor, the cores that this process may use, the memory and the GPUs."""
    gpus: list[str] = []
    if "torch" in sys.modules:  # not loaded just to learn that there is no GPU
        import torch

        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"processor": _processor(), "cores": usable_cores(), "memory_gb": round(pages / 2**30, 1), "gpus": gpus}


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
    """Return the commit of this checkout, or of the checkout that this is a copy of, and whether files differ from it.

    Both are null outside a checkout, also where memlab is installed below a folder of somebody's own checkout.
    """
    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(PACKAGE.parent), *words],  # noqa: S603, S607 (fixed words, user's git)
                              capture_output=True, text=True, timeout=20, check=True)
        return done.stdout.strip()

    if (PACKAGE.parent / COMMIT).is_file():
        return read_json(PACKAGE.parent / COMMIT)
    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != PACKAGE.parent.resolve():
            return {"commit": None, "dirty": None}
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "--", "memlab", "conf"))}
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}


def peak_memory_gb() -> float:
    """Return the peak resident memory of this process so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**30 if sys.platform == "darwin" else 2**20), 3)


def environment() -> dict[str, Any]:
    """Return commit, versions, hardware and peak memory of the run that ends now, and the time."""
    return {"peak_memory_gb": peak_memory_gb(), "hardware": hardware(), "versions": versions(), **commit(),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
