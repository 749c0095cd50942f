"""FAISS: its import, and indexes of inverted lists on GPUs, built on one and searched on all of them in parts.

A GPU returns at most 2,048 vectors per query. An index is therefore cut into parts, one per GPU or more where more
candidates are wanted, and each part is searched for its own best. FAISS's replicas are not used, since they refuse
search parameters. Searches filtered by date stay on the CPU: some versions of ``GpuIndexIVF`` ignore a selector
without an error, and would return memories that were said after the question.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from memlab.models.protocols import Floats, Ints
from memlab.support.errors import MemlabError
from memlab.support.terminal import log_once

LIMIT = 2048
"""The most vectors that FAISS on a GPU returns per query."""

SCRATCH = 256 << 20
"""Bytes of working memory per part; FAISS would take up to 1.5 GB for each."""

TRIAL = """
import faiss, numpy
vectors = numpy.eye(64, dtype="float32")
for gpu in range(faiss.get_num_gpus()):
    index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), gpu, faiss.IndexFlatIP(64))
    index.add(vectors)
    assert (index.search(vectors, 1)[1][:, 0] == numpy.arange(64)).all(), "a search found the wrong vectors"
"""
"""A search on every GPU."""


def load_faiss(where: str, otherwise: str = "") -> Any:
    """Import FAISS; raise MemlabError if it cannot be, with the command that installs it, and another way out."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise MemlabError("this index needs FAISS, which is not installed", where=where,
                          fix=f"pip install 'memlab[cpu]'{otherwise}") from None
    except (ImportError, RuntimeError) as error:  # FAISS for GPUs looks for CUDA's libraries
        raise MemlabError(f"FAISS cannot be loaded ({error})", where=where,
                          fix="pip install -c constraints-gpu.txt -e '.[gpu]'   (in memlab's folder)") from error
    return faiss


def count_gpus(faiss: Any) -> int:
    """Return the number of GPUs that FAISS sees; 0 for a build without GPU code."""
    return int(getattr(faiss, "get_num_gpus", lambda: 0)())


@cache
def failure(trial: str = TRIAL) -> str:
    """Return why FAISS cannot search on this machine's GPUs; "" if it can.

    It is tried in a process of its own, once: a build without code for a card (FAISS's wheel for CUDA 12 of 2026-03 on
    an H200) raises nothing, it ends its process.
    """
    try:
        ended = subprocess.run([sys.executable, "-c", trial], capture_output=True, text=True,  # noqa: S603
                               errors="replace", timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "a search of 64 vectors took more than two minutes"
    lines = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
    return "" if not ended.returncode else lines[-1].rpartition("details: ")[2][:160]


def build(faiss: Any, index: Any, sample: Floats, blocks: Iterable[Floats]) -> Any:
    """Train an empty CPU index on the first GPU, add the vectors there, and return it on the CPU.

    Raises RuntimeError if the GPU cannot.
    """
    resources = faiss.StandardGpuResources()
    clustering = faiss.index_cpu_to_gpu(resources, 0, faiss.IndexFlatIP(index.d))
    index.clustering_index = clustering  # k-means with the CPU index's own settings, such as its seed
    index.train(sample)
    index.clustering_index = None
    clustering.thisown = True  # FAISS's Python gives it away above, and nothing else would free the GPU's memory
    on_gpu = faiss.index_cpu_to_gpu(resources, 0, index, _options(faiss))
    for block in blocks:
        on_gpu.add(block)
    return faiss.index_gpu_to_cpu(on_gpu)


class GpuSearch:
    """An index of inverted lists on every GPU; it is copied there at the first search and stays."""

    def __init__(self, faiss: Any, index: Any, nprobe: int, name: str) -> None:
        self.faiss, self.index, self.nprobe, self.name = faiss, index, nprobe, name
        self.failed = False
        self._parts: list[Any] = []
        self._whole: Any = None  # owns the parts

    def search(self, queries: Floats, wanted: int) -> Ints | None:
        """Return positions (q, at least ``wanted``), -1 where there are no more; None if the GPUs cannot."""
        if self.failed:
            return None
        try:
            parts = self._cut(max(count_gpus(self.faiss), -(-wanted // LIMIT)))
            with ThreadPoolExecutor(len(parts)) as pool:
                results = list(pool.map(lambda part: part.search(queries, min(wanted, LIMIT))[1], parts))
        except RuntimeError as error:  # FAISS raises it for memory too
            self.failed = True
            log_once(f"{self.name} runs on the CPU: the GPU gave up ({short(error)})")
            return None
        return np.concatenate(results, axis=1)

    def _cut(self, count: int) -> list[Any]:
        """Return at least this many parts of the index on the GPUs."""
        if len(self._parts) < count:
            devices = [i % count_gpus(self.faiss) for i in range(count)]
            resources = [self.faiss.StandardGpuResources() for _ in devices]  # one per part: they are not thread-safe
            for resource in resources:
                resource.setTempMemory(SCRATCH)
            self._parts = []  # frees the GPUs' memory before the new copy
            self._whole = self.faiss.index_cpu_to_gpu_multiple_py(resources, self.index, _options(self.faiss), devices)
            whole = self.faiss.downcast_index(self._whole)
            parts = [self.faiss.downcast_index(whole.at(i)) for i in range(count)] if count > 1 else [whole]
            for part in parts:
                part.nprobe = self.nprobe
            self._parts = parts
        return self._parts


def short(error: Exception) -> str:
    """Return the end of an error of FAISS, which begins with a long C++ signature."""
    return str(error).rpartition("Error: ")[2][:120]


def _options(faiss: Any) -> Any:
    options = faiss.GpuMultipleClonerOptions()
    options.shard = True
    options.useFloat16 = True  # tables of IVF-PQ; codes of 56 bytes and more need it. Inverted lists stay in fp32
    return options
