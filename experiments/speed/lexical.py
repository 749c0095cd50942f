"""Speed of stemmed BM25 over LongMemEval haystacks: memlab's stage against bm25s on each haystack.

    python experiments/speed/lexical.py --longmemeval FILE            # about 30 s

Keys are the user turns of a session joined by a space. Both start from texts and end with a score for every session
of every question's haystack; bm25s tokenises and indexes each haystack, memlab's stage also writes the ranked table.
The two are timed alternately, the best time of each is kept, and the largest difference between their scores is
printed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import bm25s
import numpy as np
import polars as pl
import Stemmer

from memlab.data.longmemeval import LongMemEval
from memlab.pipeline.tables import Tables, with_text
from memlab.stages.query.original import Original
from memlab.stages.search.bm25 import BM25
from memlab.stages.write.chunk import SessionChunker
from memlab.store import Store


def tables(file: Path) -> Tables:
    """Return tables with sessions as memories and questions as queries."""
    data, store = LongMemEval(path=file).load(), Store()
    data = data.updated(SessionChunker(roles=("user",)).run(data.only(SessionChunker.reads), store))
    return data.updated(Original().run(data.only(Original.reads), store))


def haystacks(data: Tables) -> list[tuple[list[str], str]]:
    """Return, for each question, the keys of its corpus in order of memory id, and the question."""
    keys = with_text(data["memories"], data["texts"], "key_id", "key").sort("memory").group_by("corpus").agg("key")
    questions = with_text(data["questions"], data["texts"])
    both = questions.join(keys, on="corpus").sort("question")
    return list(zip(both["key"].to_list(), both["text"].to_list()))


def bm25s_scores(stacks: list[tuple[list[str], str]]) -> list[np.ndarray]:
    """Return bm25s's scores for each haystack."""
    stemmer, scores = Stemmer.Stemmer("english"), []
    for keys, question in stacks:
        index = bm25s.BM25(method="lucene")
        index.index(bm25s.tokenize(keys, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
        query = bm25s.tokenize(question, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)[0]
        scores.append(index.get_scores(query))
    return scores


def main() -> None:
    """Time both alternately and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longmemeval", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    data = tables(args.longmemeval)
    stacks, store, seconds = haystacks(data), Store(), {"memlab": [], "bm25s": []}
    for _ in range(args.turns):
        start = time.perf_counter()
        hits = BM25().run(data, store)["hits"]
        seconds["memlab"].append(time.perf_counter() - start)
        start = time.perf_counter()
        scores = bm25s_scores(stacks)
        seconds["bm25s"].append(time.perf_counter() - start)
    memlab_scores = hits.sort("query", "memory")["score"].to_numpy()
    gap = np.abs(memlab_scores - np.concatenate(scores))
    print(f"{len(stacks)} haystacks, {len(memlab_scores)} sessions, {pl.thread_pool_size()} polars threads")
    for name, values in seconds.items():
        print(f"{name}: {min(values):.2f} s (all passes: {', '.join(f'{v:.2f}' for v in values)})")
    print(f"ratio {min(seconds['bm25s']) / min(seconds['memlab']):.1f}; in each pass "
          f"{', '.join(f'{b / m:.1f}' for m, b in zip(seconds['memlab'], seconds['bm25s']))}")
    print(f"scores differ by more than 1e-5 in {(gap > 1e-5).sum()} of {len(gap)}, by {gap.max():.1e} at most")


if __name__ == "__main__":
    main()
