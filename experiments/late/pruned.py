"""Time and overlap of searching by candidates, against exact search, one question at a time.

    python experiments/late/pruned.py locomo10.dev.json [--turns 5000] [--questions 300] [--precision fp32]
        [--settings 16:150 32:150 32:500]

The pool is the turns of all conversations. If more are wanted, they are added again with noise on every token vector:
its length is .4 times that of the vector, which leaves a cosine of .93. Settings are PROBES:CANDIDATES. Query tokens
weigh by their idf. Prints milliseconds of the clock per question, questions per second, and the share of the exact top
10 that is found. The encoding of questions does not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import read
from memlab.models.protocols import Floats, Ints
from memlab.pipeline.tables import distinct_texts
from memlab.stages.search.hits import topk
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import idf_weights
from memlab.stages.search.maxsim import best_matches, weighted_sums
from memlab.stages.search.token_lists import TokenLists, TokenPostings
from memlab.store import store_at
from memlab.store.token_vectors import BITS, Precision, TokenBlock, TokenVectors, merge, quantise

Query = tuple[Ints, Floats]
"""Token ids (t,) and vectors (t, dim) of a question."""

Weights = Callable[[Ints], Floats]
"""Token ids of a question (t,) -> the weight of each, (t,)."""

Search = Callable[[Ints, Floats], Ints]
"""A question's token ids and vectors -> the numbers of the ten best texts."""

NOISE = 0.4
"""Length of the noise on a vector of length 1."""


def grow(block: TokenBlock, turns: int, seed: int) -> TokenBlock:
    """Return so many texts: those of the block, then the same ones with noise on their vectors and other keys."""
    rng, parts, size = np.random.default_rng(seed), [block], len(block.keys)
    while size < turns:
        part = block.take(np.arange(min(len(block.keys), turns - size)))
        noise = rng.standard_normal(part.vectors.shape, np.float32) * (NOISE / part.vectors.shape[1] ** 0.5)
        vectors = part.vectors + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        keys = rng.integers(0, 2**63, part.keys.shape, np.uint64)
        parts.append(TokenBlock(keys, part.starts, part.ids, part.scales, vectors))
        size += len(part.keys)
    return merge(parts)


def read_pool(file: Path, turns: int, questions: int, precision: Precision) -> tuple[TokenBlock, list[Query]]:
    """Return the turns of all conversations of LoCoMo, grown to so many, and questions spread over all of them."""
    sweep = read(["system=best", "search/late=index", "data=locomo", f"data.path={file}"])
    tables, store = load(sweep.arms[0].dataset), store_at(sweep.settings.store)
    stage = sweep.arms[0].pipeline.late
    assert isinstance(stage, LateIndex)
    documents, _ = distinct_texts(tables["texts"], tables["turns"]["text_id"])
    asked, _ = distinct_texts(tables["texts"], tables["questions"]["text_id"])
    stored = store.token_vectors(stage.matcher, documents, "document")
    encoded = store.token_vectors(stage.matcher, asked, "query")
    width = stage.matcher.query_tokens
    queries = [(ids[:width], matrix[:width]) for ids, matrix in
               (encoded.text(int(i)) for i in np.linspace(0, len(encoded) - 1, questions))]
    return _one_block(stored, turns, precision), queries


def as_texts(block: TokenBlock) -> TokenVectors:
    """Return all texts of a block."""
    return TokenVectors([block], np.zeros(len(block.keys), np.int64), block.starts[:-1], np.diff(block.starts))


def overlap(some: Ints, exact: Ints) -> float:
    """Return the share of the exact results that is among some."""
    return float(np.isin(exact, some).mean())


def exact_search(texts: TokenVectors, weights: Weights) -> Search:
    """Return the search that scores every text."""
    numbers = np.arange(len(texts))

    def search(ids: Ints, query: Floats) -> Ints:
        return topk(weighted_sums(weights(ids), best_matches(query, texts).T), numbers, 10)

    return search


def pruned_search(texts: TokenVectors, postings: TokenPostings, weights: Weights, probes: int, candidates: int
                  ) -> Search:
    """Return the search that scores the texts with the best estimates."""
    numbers = np.arange(len(texts))

    def search(ids: Ints, query: Floats) -> Ints:
        weight = weights(ids)
        estimated = weighted_sums(weight, postings.estimates(query, probes))[postings.place]
        best = np.sort(topk(estimated, numbers, candidates))
        return best[topk(weighted_sums(weight, best_matches(query, texts.take(best)).T), best, 10)]

    return search


def measure(name: str, search: Search, queries: list[Query], exact: list[Ints]) -> list[Ints]:
    """Time a search for each query, print a row, and return the results."""
    for query in queries[:20]:
        search(*query)
    start = time.perf_counter()
    results = [search(*query) for query in queries]
    spent = (time.perf_counter() - start) / len(queries)
    share = np.mean([overlap(one, other) for one, other in zip(results, exact or results)])
    print(f"{name}: {1e3 * spent:.2f} ms, {1 / spent:.0f} questions per second, overlap {share:.4f}", flush=True)
    return results


def main() -> None:
    """Measure exact search and all settings in one pool."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--turns", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--precision", choices=list(BITS), default="fp32")
    parser.add_argument("--centroids", type=int)
    parser.add_argument("--settings", nargs="+", default=["16:100", "16:150", "32:100", "32:150", "32:200", "32:500"])
    options = parser.parse_args()
    block, queries = read_pool(options.file, options.turns, options.questions, options.precision)
    whole = as_texts(block)
    print(f"{len(whole)} turns, {len(block.ids)} tokens of {block.dim} numbers, {options.precision}")
    start = time.perf_counter()
    postings = TokenLists(options.centroids, seed=0).of(whole)
    print(f"{len(postings.centroids)} centroids and their lists: {time.perf_counter() - start:.1f} s")
    once = np.bincount(postings.place, minlength=postings.size)

    def weights(ids: Ints) -> Floats:
        return idf_weights(postings.document_frequencies(ids, once).astype(np.float64), len(whole))

    reference = measure("exact", exact_search(whole, weights), queries, [])
    for setting in options.settings:
        probes, candidates = map(int, setting.split(":"))
        measure(f"{probes} probes, {candidates} candidates",
                pruned_search(whole, postings, weights, probes, candidates), queries, reference)


def _one_block(stored: TokenVectors, turns: int, precision: Precision) -> TokenBlock:
    texts = [stored.text(i) for i in range(min(len(stored), turns))]
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids, _ in texts])]).astype(np.int64)
    ids = np.concatenate([ids for ids, _ in texts]).astype(np.int32)
    block = grow(TokenBlock(stored.keys()[:len(texts)], starts, ids, np.ones(len(ids), np.float32),
                            np.concatenate([matrix for _, matrix in texts])), turns, seed=0)
    vectors, scales = quantise(block.vectors, precision)
    return TokenBlock(block.keys, block.starts, block.ids, scales, vectors, BITS[precision])


if __name__ == "__main__":
    main()
