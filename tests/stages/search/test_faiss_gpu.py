"""FAISS on GPUs, with a stand-in for the devices: real indexes on the CPU that keep the limits of FAISS's GPU code."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.stages.search import faiss_gpu
from memlab.stages.search.exact import Exact
from memlab.stages.search.faiss_index import HNSW, IVF, IVFPQ, SQ8, Approximate
from memlab.support.terminal import log_once

faiss = pytest.importorskip("faiss")
N, DIM = 6000, 32
IVF_ = IVF(exact_below=0, nlist=16, nprobe=16, threads=1)
PQ = IVFPQ(exact_below=0, nlist=16, nprobe=16, m=8, refine=40, threads=1)


class GpuIndex:
    """A CPU index that refuses what FAISS's ``GpuIndexIVF`` refuses."""

    def __init__(self, index: Any, device: int, log: Bed) -> None:
        self.index, self.device, self.log, self.nprobe, self.d = index, device, log, 1, index.d

    def search(self, x: np.ndarray, k: int, *, params: Any = None) -> Any:
        if k > 2048 or not 0 < self.nprobe <= 2048:
            raise RuntimeError(f"Error: 'k <= getMaxKSelection()' failed: k is {k}, nprobe {self.nprobe}")
        self.log.searches.append(self.device)
        self.index.nprobe = self.nprobe
        return self.index.search(x, k, params=params)

    def add(self, x: np.ndarray) -> None:
        self.log.added += len(x)
        self.index.add(x)


@dataclass
class Shards:
    parts: list[GpuIndex]

    def count(self) -> int:
        return len(self.parts)

    def at(self, i: int) -> GpuIndex:
        return self.parts[i]


@dataclass
class Bed:
    """What happened on the fake GPUs."""

    gpus: int
    clones: int = 0
    added: int = 0
    searches: list[int] = field(default_factory=list)
    fail: str = ""

    def one(self, provider: Any, device: int, given: Any, options: Any = None) -> Any:
        """Clone as GpuCloner.cpp does: flat and inverted lists only, PQ codes of 8 bits and certain lengths only."""
        if self.fail:
            raise RuntimeError(self.fail)
        index = faiss.downcast_index(given)  # a view: it lives as long as what was given
        if isinstance(index, faiss.IndexFlat):
            return faiss.clone_index(index)
        if isinstance(index, faiss.IndexIVFPQ):
            if index.pq.nbits != 8:
                raise RuntimeError("Error: 'bitsPerCode_ == 8' failed: bits")
            assert index.pq.M < 56 or options.useFloat16
        elif not isinstance(index, faiss.IndexIVFFlat):
            raise RuntimeError("Error: This index type is not implemented on GPU.")
        self.clones += 1
        return GpuIndex(faiss.clone_index(index), device, self)

    def multiple(self, resources: Any, index: Any, co: Any = None, gpus: Any = None) -> Any:
        if len(resources) == 1:
            return self.one(resources[0], gpus[0], index, co)
        assert co.shard, "replicas refuse search parameters"
        parts = []
        for i, device in enumerate(gpus):
            part = empty_like(index)
            index.copy_subset_to(part, faiss.InvertedLists.SUBSET_TYPE_ID_MOD, len(gpus), i)
            parts.append(self.one(resources[i], device, part, co))
        return Shards(parts)

def empty_like(index: Any) -> Any:
    """Return an index with the same centroids and no vectors, as GpuCloner.cpp makes it for a shard."""
    if isinstance(index, faiss.IndexIVFPQ):
        part = faiss.IndexIVFPQ(index.quantizer, index.d, index.nlist, index.pq.M, index.pq.nbits, index.metric_type)
        part.pq = index.pq
    else:
        part = faiss.IndexIVFFlat(index.quantizer, index.d, index.nlist, index.metric_type)
    part.is_trained = True
    return part


class Options:
    shard = useFloat16 = False


class Resources:
    def setTempMemory(self, size: int) -> None:
        assert size > 0


@pytest.fixture(params=[1, 3])
def bed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bed:
    bed = Bed(request.param)
    real = faiss.downcast_index
    for name, value in {"get_num_gpus": lambda: bed.gpus, "StandardGpuResources": Resources,
                        "GpuMultipleClonerOptions": Options, "index_cpu_to_gpu": bed.one,
                        "index_cpu_to_gpu_multiple_py": bed.multiple,
                        "index_gpu_to_cpu": lambda index: index.index,
                        "downcast_index": lambda i: i if isinstance(i, GpuIndex | Shards) else real(i)}.items():
        monkeypatch.setattr(faiss, name, value, raising=False)
    monkeypatch.setattr(faiss_gpu, "failure", lambda: "")
    log_once.cache_clear()
    return bed


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((30, DIM))
    rows = centres[rng.integers(0, 30, N + 20)] + .5 * rng.standard_normal((N + 20, DIM))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return rows[20:], rows[:20], np.full(20, N)


def same(index: Approximate, found: Any, depth: int) -> None:
    """Every search of these tests probes all lists, so the best must be those of exact search."""
    vectors, queries, seen = data()
    for (at, scores), (true, best), query in zip(found, Exact(vectors).search(queries, seen, depth), queries):
        assert len(at) >= depth, index
        assert len(set(at.tolist())) == len(at)
        assert scores == pytest.approx(vectors[at] @ query, abs=1e-6)
        assert len(set(at.tolist()) & set(true[np.argsort(-best)[:depth]].tolist())) >= .9 * depth  # codes are coarse


@pytest.mark.parametrize("index", [IVF_, PQ], ids=["IVF", "IVFPQ"])
def test_every_gpu_searches_its_part_with_the_configured_lists(index: Approximate, bed: Bed) -> None:
    vectors, queries, seen = data()
    searcher = index.open(vectors, None)
    same(index, searcher.search(queries, seen, 10), 10)
    assert set(bed.searches) == set(range(bed.gpus))
    before = bed.clones
    searcher.search(queries, seen, 10)
    assert bed.clones == before  # it is copied once


def test_ivfpq_uses_the_gpu_at_the_default_depth(bed: Bed) -> None:
    """1,000 hits by 8 candidates are more than the 2,048 that a GPU returns, so the index is searched in parts."""
    vectors, queries, seen = data()
    wide = IVFPQ(exact_below=0, nlist=16, nprobe=16, m=8, threads=1)
    same(wide, wide.open(vectors, None).search(queries, seen, 700), 700)  # 5,600 candidates
    assert bed.searches


def test_an_index_is_trained_and_filled_on_the_gpu_and_kept_on_disk(bed: Bed, tmp_path: Path) -> None:
    vectors, queries, seen = data()
    for index in (IVF_, PQ):
        folder = tmp_path / type(index).__name__
        same(index, index.open(vectors, folder).search(queries, seen, 10), 10)
        assert bed.added == N
        bed.added = 0
        same(index, index.open(vectors, folder).search(queries, seen, 10), 10)  # from disk
        assert bed.added == 0


@pytest.mark.parametrize(("index", "failure", "error", "reason"), [
    (SQ8(exact_below=0, threads=1), "", "", ""), (HNSW(exact_below=0, M=16, ef_search=N, threads=1), "", "", ""),
    (IVF(exact_below=0, nlist=16, nprobe=16, threads=1, device="cpu"), "", "", ""),
    (IVFPQ(exact_below=0, nlist=16, nprobe=16, m=8, bits=6, refine=100, threads=1), "", "", "bits"),
    (IVF(exact_below=0, nlist=16, nprobe=4000, threads=1), "", "", "nprobe"),
    (IVF_, "no kernel image is available", "", "IVF runs on the CPU: no kernel image is available"),
    (IVF_, "", "Error in alloc: cudaMalloc error out of memory [2]", "out of memory")])
def test_what_a_gpu_does_not_take_is_searched_on_the_cpu_and_said_unless_no_gpu_was_asked_for(
    index: Approximate, failure: str, error: str, reason: str, bed: Bed, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(faiss_gpu, "failure", lambda: failure)
    bed.fail = error
    vectors, queries, seen = data()
    with caplog.at_level("WARNING", "memlab"):
        same(index, index.open(vectors, None).search(queries, seen, 10), 10)
    assert bed.searches == []
    assert (reason and not failure) or bed.clones == bed.added == 0
    assert reason in caplog.text
    assert bool(reason) == ("CPU" in caplog.text)


@pytest.mark.parametrize(("trial", "reason"), [
    ("import faiss", ""), ("raise SystemExit(3)", "exit status 3"),
    ("import os, sys; print('failed in runL2Norm; details: CUDA error 209', file=sys.stderr); os.abort()",
     "CUDA error 209"),
    ("assert False, 'a search found the wrong vectors'", "AssertionError: a search found the wrong vectors")])
def test_a_faiss_that_ends_its_process_on_a_gpu_is_found_out_in_another_process(trial: str, reason: str) -> None:
    assert faiss_gpu.failure(trial) == reason


def test_a_filter_by_date_stays_on_the_cpu(bed: Bed) -> None:
    vectors, queries, seen = data()
    searcher = IVF_.open(vectors, None)
    for at, _ in searcher.search(queries, seen - 1000, 10):
        assert len(at) >= 10
        assert at.max() < N - 1000
    assert bed.searches == []
