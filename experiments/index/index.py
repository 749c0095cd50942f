"""Indexes on real and perturbed vectors: recall@10 against exact search, queries/s, build time and bytes, by size.

    python experiments/index/index.py --locomo FILE --longmemeval FILE            # about 25 min on 2 cores

Real vectors are MiniLM's, of LoCoMo's turns and a sample of LongMemEval's user turns; queries are the two benchmarks'
questions. Larger pools are made from them: x + .4 (u - v) for random real x, u, v, scaled to unit length. New vectors
then vary in the same directions as real ones (plain noise would fill all 384 dimensions, as no text does). For each
strategy, search widths are tried in increasing order until recall@10 on one half of the queries is .99 at two standard
errors below its mean (the first width with a mean of .99 often reaches it by chance). The other half gives the results.
Flat and index are timed alternately.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch

from memlab.data.locomo import LoCoMo
from memlab.data.longmemeval import LongMemEval
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import Floats
from memlab.pipeline.tables import Tables, texts_frame
from memlab.stages.search.exact import Exact, Neighbours, Searcher
from memlab.stages.search.faiss_index import HNSW, IVF, IVFPQ, SQ8, Approximate
from memlab.store import Store

K, BATCH, GOAL = 10, 256, .99
Ladder = Callable[[int], Approximate]
WIDTHS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


def texts_of(tables: Tables, table: str) -> list[str]:
    """Return the distinct texts of a table, sorted; of turns, only those of role user (in LoCoMo all are)."""
    rows = tables[table].filter(role="user") if table == "turns" else tables[table]
    return sorted(t for t in tables["texts"].join(rows, on="text_id", how="semi")["text"] if t.strip())


def real_vectors(args: argparse.Namespace) -> tuple[Floats, Floats]:
    """Return the vectors of real turns (n, 384) and of real questions (q, 384)."""
    benchmarks = [LoCoMo(path=args.locomo).load(), LongMemEval(path=args.longmemeval).load()]
    user_turns = [t for t in texts_of(benchmarks[1], "turns") if len(t) <= 400]  # nine in ten; the rest is slow
    turns = texts_of(benchmarks[0], "turns") + random.Random(0).sample(user_turns, min(args.turns, len(user_turns)))
    questions = [t for tables in benchmarks for t in texts_of(tables, "questions")]
    store, model = Store(args.store), SentenceEmbedder()
    queries = store.vectors(model, texts_frame(questions), "query")
    return store.vectors(model, texts_frame(turns), "document"), np.random.default_rng(1).permutation(queries)


def enlarge(vectors: Floats, n: int) -> Floats:
    """Return n vectors of unit length: the real ones, then perturbed ones."""
    rng, out = np.random.default_rng(0), np.empty((n, vectors.shape[1]), np.float32)
    first = min(n, len(vectors))
    out[:first] = vectors[rng.permutation(len(vectors))[:first]]
    for at in range(first, n, 50_000):
        x, u, v = (vectors[rng.integers(0, len(vectors), min(50_000, n - at))] for _ in range(3))
        perturbed = x + .4 * (u - v)
        out[at:at + len(perturbed)] = perturbed / np.linalg.norm(perturbed, axis=1, keepdims=True)
    return out


def ladders(threads: int) -> Iterator[tuple[str, Ladder]]:
    """Yield each strategy's name and a function from its search width to the index."""
    def ladder(kind: type[Approximate], widen: Callable[[int], dict[str, int]], **fixed: Any) -> Ladder:
        return lambda width: kind(exact_below=0, threads=threads, build_threads=threads, **fixed, **widen(width))

    yield "IVF", ladder(IVF, lambda width: {"nprobe": width})
    yield "HNSW", ladder(HNSW, lambda width: {"ef_search": width})
    yield "HNSW on 8-bit codes", ladder(HNSW, lambda width: {"ef_search": width}, storage="sq8", refine=4)
    yield "IVF-PQ", ladder(IVFPQ, lambda width: {"nprobe": width, "refine": max(8, width // 2)})
    yield "8-bit codes", ladder(SQ8, lambda width: {"refine": max(2, width // 16)})


def top_k(neighbours: Neighbours) -> list[set[int]]:
    return [set(at[np.argsort(-scores, kind="stable")[:K]].tolist()) for at, scores in neighbours]


def recalls(neighbours: Neighbours, truth: Neighbours) -> np.ndarray:
    """Return recall@10 of each query. Shape (q,)."""
    return np.array([len(a & b) / K for a, b in zip(top_k(neighbours), top_k(truth))])


def lower_bound(values: np.ndarray) -> float:
    """Return the value two standard errors below the mean."""
    return float(values.mean() - 2 * values.std(ddof=1) / len(values)**.5)


def speed(searcher: Searcher, queries: Floats, batch: int, n: int) -> float:
    """Return queries per second in batches of this size."""
    start = time.perf_counter()
    for at in range(0, len(queries), batch):
        some = queries[at:at + batch]
        searcher.search(some, np.full(len(some), n), K)
    return len(queries) / (time.perf_counter() - start)


class FaissFlat:
    """FAISS's exact search, so that "flat" is the faster of two implementations."""

    def __init__(self, vectors: Floats) -> None:
        self.index = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(vectors)

    def search(self, queries: Floats, visible: np.ndarray, depth: int) -> Neighbours:  # noqa: ARG002
        return list(zip(*self.index.search(queries, depth)[::-1]))


def measure(searcher: Searcher, flat: Searcher, queries: Floats, n: int) -> dict[str, float]:
    """Return the best of three timings of both, one query at a time and in batches; flat gets fewer queries."""
    turns: dict[str, list[float]] = {"one": [], "batch": [], "flat one": [], "flat batch": []}
    few, many = queries[:max(8, min(200, 20_000_000 // n))], np.resize(queries, (2 * BATCH, queries.shape[1]))
    for _ in range(3):
        turns["flat one"].append(speed(flat, few, 1, n))
        turns["one"].append(speed(searcher, queries, 1, n))
        turns["flat batch"].append(speed(flat, many[:BATCH], BATCH, n))
        turns["batch"].append(speed(searcher, many, BATCH, n))
    return {name: max(values) for name, values in turns.items()}


def climb(name: str, ladder: Ladder, vectors: Floats, queries: Floats, folder: Path) -> dict[str, Any]:
    """Build once, widen the search until one half of the queries reaches the goal, then measure on the other half."""
    n, half = len(vectors), len(queries) // 2
    all_visible, exact = np.full(len(queries), n), Exact(vectors)
    truth = exact.search(queries, all_visible, K)
    start, before = time.perf_counter(), set(folder.iterdir())
    ladder(WIDTHS[0]).open(vectors, folder)
    seconds = time.perf_counter() - start
    (file,) = set(folder.iterdir()) - before
    for width in WIDTHS:
        searcher = ladder(width).open(vectors, folder)
        if lower_bound(recalls(searcher.search(queries[:half], all_visible[:half], K), truth[:half])) >= GOAL:
            break
    test, visible = queries[half:], all_visible[half:]
    speeds = measure(searcher, exact, test, n)
    faiss_flat = FaissFlat(vectors)
    for key, batch in (("flat one", 1), ("flat batch", BATCH)):
        rates = (speed(faiss_flat, test[:max(8, batch)], batch, n) for _ in range(3))
        speeds[key] = max(speeds[key], *rates)
    recall = recalls(searcher.search(test, visible, K), truth[half:])
    result = {"index": name, "n": n, "width": width, "recall@10": recall.mean(), "surely": lower_bound(recall),
              "build_s": seconds, "bytes": file.stat().st_size, **speeds}
    print(json.dumps(result), flush=True)
    file.unlink()
    return result


def row(r: dict[str, Any]) -> str:
    return (f"| {r['n']:,} | {r['index']} | {r['width']} | {r['recall@10']:.4f} | {r['one']:,.0f} "
            f"({r['one'] / r['flat one']:.1f} x) | {r['batch']:,.0f} ({r['batch'] / r['flat batch']:.1f} x) | "
            f"{r['flat one']:,.1f} | {r['flat batch']:,.0f} | {r['build_s']:.0f} | {r['bytes'] / 1e6:,.0f} |")


def main() -> None:
    """Measure all strategies and print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--longmemeval", type=Path, required=True)
    parser.add_argument("--store", type=Path, help="store for vectors (default: memlab's store)")
    parser.add_argument("--turns", type=int, default=3000, help="number of LongMemEval's user turns to encode")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", help="names of the strategies to measure")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    vectors, queries = real_vectors(args)
    print(f"{len(vectors)} real vectors, {len(queries)} questions", flush=True)
    rows = []
    for n in args.sizes:
        pool = enlarge(vectors, n)
        for name, ladder in ladders(args.threads):
            if not args.only or name in args.only:
                with tempfile.TemporaryDirectory() as folder:
                    rows.append(climb(name, ladder, pool, queries, Path(folder)))
    print("| vectors | index | width | recall@10 | queries/s, one at a time (ratio to flat) | "
          "queries/s, batches of 256 (ratio to flat) | flat, one at a time | flat, batches | build s | MB |\n"
          "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    print("\n".join(map(row, rows)))


if __name__ == "__main__":
    main()
