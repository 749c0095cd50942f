"""The FAISS strategies, on vectors in clusters (text vectors are clustered too)."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from memlab.pipeline.stage import spec
from memlab.stages.search import exact
from memlab.stages.search.dense import Dense
from memlab.stages.search.exact import Exact, Index, Neighbours
from memlab.stages.search.faiss_gpu import load_faiss
from memlab.stages.search.faiss_index import HNSW, IVF, IVFPQ, SQ8, Approximate
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.search.world import WordEmbedder, day, world

pytest.importorskip("faiss")
N, DIM = 3000, 32
INDEXES: list[Approximate] = [
    IVF(exact_below=0, nlist=40, nprobe=10, threads=1), HNSW(exact_below=0, M=16, threads=1),
    HNSW(exact_below=0, M=16, threads=1, storage="sq8", refine=2),
    IVFPQ(exact_below=0, nlist=40, nprobe=10, m=8, bits=6, threads=1), SQ8(exact_below=0, threads=1)]
each_index = pytest.mark.parametrize("index", INDEXES, ids=lambda i: type(i).__name__)


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((60, DIM))
    vectors = centres[rng.integers(0, 60, N)] + .5 * rng.standard_normal((N, DIM))
    queries = centres[rng.integers(0, 60, 40)] + .5 * rng.standard_normal((40, DIM))
    return tuple((v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float32)  # type: ignore[return-value]
                 for v in (vectors, queries))


def top(found: Neighbours, k: int = 10) -> list[set[int]]:
    return [set(at[np.argsort(-scores, kind="stable")[:k]].tolist()) for at, scores in found]


def recall(found: Neighbours, truth: Neighbours) -> float:
    return float(np.mean([len(a & b) / max(1, len(b)) for a, b in zip(top(found), top(truth))]))


@each_index
def test_recall_against_exact_and_true_products(index: Approximate) -> None:
    vectors, queries = data()
    seen = np.full(len(queries), N)
    found = index.open(vectors, None).search(queries, seen, 10)
    assert recall(found, Exact(vectors).search(queries, seen, 10)) >= .95
    for query, (at, scores) in zip(queries, found):
        assert len(at) >= 10
        assert scores == pytest.approx(vectors[at] @ query, abs=1e-6)


@each_index
def test_a_filter_is_kept_inside_the_search(index: Approximate) -> None:
    """Every query may see another prefix; deep enough, an index alone would return fewer than there are."""
    vectors, queries = data()
    seen = np.linspace(0, N, len(queries)).astype(int)
    for depth in (10, 700):
        found = index.open(vectors, None).search(queries, seen, depth)
        for limit, (at, _) in zip(seen, found):
            assert (at < limit).all()
            assert len(set(at.tolist())) == len(at) >= min(depth, limit)
    found = index.open(vectors, None).search(queries, seen, 10)
    assert recall(found, Exact(vectors).search(queries, seen, 10)) >= .9


@each_index
def test_same_vectors_give_the_same_index_file(index: Approximate, tmp_path: Path) -> None:
    vectors, _ = data()
    for name in "ab":
        index.open(vectors, tmp_path / name)
    files = [next((tmp_path / name).iterdir()) for name in "ab"]
    assert files[0].name == files[1].name
    assert files[0].read_bytes() == files[1].read_bytes()


@each_index
def test_a_kept_index_is_used_again_and_a_damaged_one_rebuilt(index: Approximate, tmp_path: Path) -> None:
    vectors, queries = data()
    seen = np.full(len(queries), N)
    built = top(index.open(vectors, tmp_path).search(queries, seen, 10))
    (file,) = tmp_path.iterdir()
    stamp = file.stat().st_mtime_ns
    assert top(index.open(vectors, tmp_path).search(queries, seen, 10)) == built
    assert file.stat().st_mtime_ns == stamp
    file.write_bytes(file.read_bytes()[:100])
    assert top(index.open(vectors, tmp_path).search(queries, seen, 10)) == built
    assert file.stat().st_size > 100
    index.open(vectors[::-1].copy(), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("exact_below", [20_000, 0])
def test_what_an_index_leaves_to_exact_search_may_go_to_a_gpu(exact_below: int, monkeypatch: pytest.MonkeyPatch
                                                              ) -> None:
    """Small pools, and queries for which the lists hold too little, were searched on the CPU in any case."""
    vectors, queries = data()
    monkeypatch.setattr(exact, "_has_gpu", lambda: True)
    monkeypatch.setattr(exact, "GPU", "cpu")
    monkeypatch.setattr(exact, "gpu_pays", lambda products, sent: True)
    searched: list[int] = []
    real = exact.ExactOnDevice.search
    monkeypatch.setattr(exact.ExactOnDevice, "search",
                        lambda self, rows, *rest: (searched.append(len(rows)), real(self, rows, *rest))[1])
    searcher = IVF(exact_below=exact_below, nlist=60, nprobe=1).open(vectors, None)
    searcher.search(queries, np.full(len(queries), len(vectors)), 1000)  # more than one list holds
    assert searched == [len(queries)]
    searched.clear()
    IVF(exact_below=exact_below, nlist=60, nprobe=1, device="cpu").open(vectors, None).search(
        queries, np.full(len(queries), len(vectors)), 1000)
    assert searched == []


def test_dense_with_an_index_ranks_like_flat() -> None:
    memories = [(0, f"w{i} w{i % 50} w{i % 7}", day(i % 30)) for i in range(600)]
    tables = world(memories, [(0, f"w{i} w{i % 50}", day(10 + i % 25)) for i in range(30)])
    model = WordEmbedder()
    flat, graph = (Dense(embedder=model, depth=5, **extra).run(tables, Store())["hits"]
                   for extra in ({}, {"index": HNSW(exact_below=100, threads=1)}))
    shared = flat.join(graph, on=["query", "memory"], how="inner")
    assert shared.height >= .95 * flat.height
    assert shared["score"].to_numpy() == pytest.approx(shared["score_right"].to_numpy(), abs=2e-6)


def test_misfit_parameters_name_the_remedy() -> None:
    vectors, _ = data()
    with pytest.raises(MemlabError, match=r"m 48 does not divide the vectors' 32 dimensions.*choose m among \[8, 16"):
        IVFPQ(exact_below=0, nlist=8).open(vectors, None)
    with pytest.raises(MemlabError, match="lower nlist"):
        IVF(exact_below=0, nlist=N + 1).open(vectors, None)


def test_without_faiss_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MemlabError, match=r"pip install 'memlab\[cpu\]'"):
        SQ8(exact_below=0).open(data()[0], None)


def test_a_faiss_without_its_libraries_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "faiss.py").write_text("raise ImportError('libcublas.so.13: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "faiss", raising=False)
    with pytest.raises(MemlabError, match=r"FAISS cannot be loaded \(.*\)\. Fix: .*constraints-gpu\.txt"):
        load_faiss("search.late")


@each_index
def test_identity_holds_what_changes_results_only(index: Approximate) -> None:
    assert isinstance(index, Index)
    assert {"device", "threads"}.isdisjoint(spec(index))
    assert index.build_settings()["build_threads"] == 1  # a graph built by several threads differs from run to run
    assert dataclasses.replace(index, device="cpu", threads=2).identity() == index.identity()
    changed = dataclasses.replace(index, refine=9)
    assert changed.identity() != index.identity()
    assert changed.build_settings() == index.build_settings()
