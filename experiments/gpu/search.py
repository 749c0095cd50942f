"""Speed of searches on a card and on the CPU: exact search, inverted lists, token vectors.

    python experiments/gpu/search.py [small]

Times include sending the vectors to the card, unless "there" is said. Vectors have 1,024 numbers.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import numpy as np

from experiments.gpu.agreement import recall
from experiments.gpu.speed import random_token_vectors, seconds, unit
from memlab.models.local.backend import resolve
from memlab.stages.search import faiss_gpu
from memlab.stages.search.exact import Exact, ExactOnDevice
from memlab.stages.search.faiss_index import IVF
from memlab.stages.search.maxsim import best_matches
from memlab.stages.search.token_pools import PlacedTokens, place

WIDTH, BLOCK, DEPTH = 1024, 1 << 16, 100


def main() -> None:
    """Print three tables."""
    device, small = resolve("auto", "auto", "auto").devices[0], "small" in sys.argv[1:]
    vectors = near_topics(20_000 if small else 1_000_000, device)
    print("exact search, seconds: CPU, card, card with the vectors there")
    for size in (500, 5_000, 20_000, 100_000, 300_000, 1_000_000):
        for asked in (1, 16, 256):
            if size <= len(vectors):
                exact_search(vectors[:size], unit(asked, asked, WIDTH, device), device)
    inverted_lists(vectors, device)
    token_vectors(device, 100_000 if small else 1_000_000)


def near_topics(number: int, device: str) -> np.ndarray:
    """Return unit vectors around 1,000 centres, since evenly spread ones have no neighbours to find."""
    centre = np.random.default_rng(0).integers(0, 1_000, number)
    vectors = unit(3, number, WIDTH, device) + unit(4, 1_000, WIDTH, device)[centre]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def exact_search(vectors: np.ndarray, queries: np.ndarray, device: str) -> None:
    """Print the seconds of one search."""
    visible, held = np.full(len(queries), len(vectors)), ExactOnDevice(vectors, BLOCK, device)
    cpu = seconds(lambda: Exact(vectors).search(queries, visible, DEPTH), "cpu", 1)
    card = seconds(lambda: ExactOnDevice(vectors, BLOCK, device).search(queries, visible, DEPTH), device)
    there = seconds(lambda: held.search(queries, visible, DEPTH), device)
    products = float(vectors.size * len(queries))
    print(f"  {len(vectors):>9,} vectors {len(queries):>4} questions  {products:.1e} products  "
          f"{cpu:.5f}  {card:.5f}  {there:.5f}", flush=True)


def inverted_lists(vectors: np.ndarray, device: str) -> None:
    """Print how long inverted lists take to build and to search, and what they find."""
    try:
        import faiss
    except ImportError as error:
        print(f"inverted lists: FAISS is not installed ({error})")
        return
    print(f"inverted lists, FAISS {faiss.__version__} on {faiss_gpu.count_gpus(faiss)} GPUs")
    queries = vectors[::len(vectors) // 256][:256]
    visible = np.full(len(queries), len(vectors))
    best = ExactOnDevice(vectors, BLOCK, device).search(queries, visible, 10)
    for where in ("auto", "cpu") if faiss_gpu.count_gpus(faiss) else ("cpu",):
        index = IVF(exact_below=0, device=where)
        begin = time.perf_counter()
        searcher = index.open(vectors, None)
        build = time.perf_counter() - begin
        share = recall(searcher.search(queries, visible, DEPTH), best)
        taken = seconds(partial(searcher.search, queries, visible, DEPTH), device)
        print(f"  device={where:<5} build {build:.2f} s, {len(queries)} questions {taken:.4f} s, recall@10 {share:.3f}",
              flush=True)


def token_vectors(device: str, number: int) -> None:
    """Print how long a question of 32 tokens is matched with so many token vectors."""
    query = unit(1, 32, WIDTH, device)
    stored = random_token_vectors(2, number, WIDTH, device)
    print(f"late interaction, {number:,} token vectors of {WIDTH} numbers in fp16, seconds a question")
    placed = place(stored, device, "fp16" if device != "cpu" else "fp32")
    print(f"  there {seconds(lambda: best_matches(query, placed), device, 10):.5f}", flush=True)
    streamed = PlacedTokens(stored, placed.device, placed.products)
    print(f"  sent piece by piece {seconds(lambda: best_matches(query, streamed), device):.5f}", flush=True)
    print(f"  CPU {seconds(lambda: best_matches(query, stored), 'cpu', 1):.5f}", flush=True)


if __name__ == "__main__":
    main()
