"""Time, memory and overlap of late interaction by candidates in one pool of up to a million turns on disk.

    python experiments/late/million.py locomo10.dev.json --turns 1000000 --precision int8 --folder DIR

The pool is the user turns of all conversations; then the same ones again and again, in sessions of their own, with
noise on every token vector: its length is .4 times that of the vector. A file of token vectors for each copy is written
to DIR and mapped; files, centroids and codes that are there already are used again. Questions are asked one by one
through the search stage of ``system=best`` with ``search/late=index``: single memories, windows and sessions. For some
of them the 10 best of each lane are compared with those of exact search. Evidence is that of the originals, so a copy
that stands before it costs nDCG. The encoding of questions does not count.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from memlab.evaluate.retrieval import ndcg
from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import read
from memlab.models.protocols import Floats, Ints
from memlab.pipeline.tables import Tables, distinct_texts, frame
from memlab.stages.search.hits import MemoryPool, topk
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import Queries
from memlab.stages.search.maxsim import DocumentFrequencies, best_matches
from memlab.stages.search.token_lists import TokenLists
from memlab.stages.search.token_pools import Places, TokenPool, session_numbers
from memlab.store import Store, segment, store_at
from memlab.store.token_vectors import BITS, Precision, TokenBlock, TokenVectors, merge, quantise
from memlab.support.files import write_json
from memlab.support.progress import progress

NOISE = 0.4
"""Length of the noise on a vector of length 1."""

TOKENS = 1 << 17
"""Token vectors in fp32 at a time: 200 MB."""

BEST = 10
KIND = "turn.user"
LANES = ("late", "late_window", "late_session")


@dataclass(frozen=True)
class Turns:
    """The turns that copies are made of.

    texts: Token vectors of the distinct texts, in the order of their files. text_of, sessions: (n,) the text and the
    session of each turn. evidence: question -> its turns.
    """

    texts: TokenVectors
    text_of: Ints
    sessions: Ints
    evidence: dict[int, Ints]


class OneMemory(Store):
    """A store that keeps a pool and its lists from question to question, as a live memory does."""

    shares_results = False
    caches_indexes = True

    def __init__(self, root: Path, pool: TokenPool, lists: TokenLists) -> None:
        super().__init__(root)
        self._pool, self._lists = pool, lists

    def index(self, key: Any, make: Any) -> Any:  # noqa: ARG002  (all is made before the first question)
        return self._lists

    def cached(self, tables: Tables, names: Any, key: Any, make: Any) -> Any:  # noqa: ARG002
        return [self._pool]


def turns_of(tables: Tables, stage: LateIndex, store: Store) -> Turns:
    """Return the user turns of a data set, with their token vectors from the store."""
    turns = tables["turns"].filter(role="user").with_row_index("row")
    keys, text_of = distinct_texts(tables["texts"], turns["text_id"])
    texts = store.token_vectors(stage.matcher, keys, "document")
    order = np.lexsort((texts.begins, texts.block_of))
    rows = (tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question")
            .join(turns, on=["corpus", "session", "turn"]).group_by("question").agg(pl.col("row").unique()))
    return Turns(texts.take(order), np.argsort(order)[text_of], session_numbers(turns) - 1,
                 {question: np.array(row, np.int64) for question, row in rows.iter_rows()})


def with_noise(vectors: Floats, rng: np.random.Generator) -> Floats:
    """Return unit vectors (t, dim) with noise on each, and of unit length again."""
    noisy = rng.standard_normal(vectors.shape, np.float32)
    noisy *= NOISE / vectors.shape[1] ** 0.5
    noisy += vectors
    noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
    return noisy


def noisy_copy(texts: TokenVectors, copy: int, precision: Precision) -> TokenBlock:
    """Return a copy of some texts as one block; copy 0 has neither noise nor other keys."""
    rng, keys, blocks = np.random.default_rng(copy), texts.keys(), []
    for rows, starts, (ids, vectors) in texts.in_pieces(TOKENS, lambda block, at: (block.ids[at], block.widen(at))):
        if copy:
            vectors = with_noise(vectors, rng)
        key = rng.integers(0, 2**63, (len(rows), 2), np.uint64) if copy else keys[rows]
        codes, scales = quantise(vectors, precision)
        blocks.append(TokenBlock(key, starts, ids, scales, codes, BITS[precision]))
    return merge(blocks)


def files_of(folder: Path, texts: TokenVectors, copies: int, precision: Precision) -> list[str]:
    """Write so many copies of some texts into a folder, unless they are there, and return the files' names in order."""
    folder.mkdir(parents=True, exist_ok=True)
    page, of = folder / "copies.json", {"precision": precision, "texts": len(texts), "tokens": int(texts.lengths.sum())}
    made: dict[str, Any] = json.loads(page.read_text()) if page.exists() else {**of, "copies": []}
    if made | of != made:
        raise SystemExit(f"{folder} holds copies of something else: {page}")
    with progress("copies", copies - len(made["copies"]), "copies") as step:
        while len(made["copies"]) < copies:
            made["copies"].append(segment.write(folder, noisy_copy(texts, len(made["copies"]), precision).arrays))
            write_json(page, made)
            step(1)
    names: list[str] = made["copies"][:copies]
    return names


def map_files(folder: Path, names: list[str], precision: Precision) -> TokenVectors:
    """Return the texts of all files, in the order of these."""
    blocks = []
    with progress("files mapped", len(names), "files") as step:
        for name in names:
            held = segment.read(folder / name)
            if held is None:
                raise SystemExit(f"{folder / name} is damaged")
            blocks.append(TokenBlock.of(held.arrays, BITS[precision], held.release))
            step(1)
    return TokenVectors(blocks, np.repeat(np.arange(len(blocks)), [len(block.keys) for block in blocks]),
                        np.concatenate([block.starts[:-1] for block in blocks]),
                        np.concatenate([np.diff(block.starts) for block in blocks]))


def pool_of(turns: Turns, texts: TokenVectors, size: int) -> TokenPool:
    """Return the first turns of the copies; each copy of a session is a session."""
    numbers = np.arange(size)
    copy, row = np.divmod(numbers, len(turns.text_of))
    used, text_of = np.unique(copy * len(turns.texts) + turns.text_of[row], return_inverse=True)
    rows = MemoryPool(0, KIND, numbers, np.full(size, -np.inf))
    return TokenPool(rows, texts.take(used), text_of, numbers,
                     copy * (int(turns.sessions.max()) + 1) + turns.sessions[row])


def exact_best(stage: LateIndex, pool: TokenPool, queries: Queries, turns: int) -> list[dict[str, Ints]]:
    """Return for each query the best memories of each lane by exact search, copy by copy of so many turns."""
    numbers, ids = np.arange(len(pool.memories)), np.concatenate([ids for ids, _ in queries])
    parts = np.split(numbers, numbers[turns::turns])
    frequencies = np.zeros(len(ids), np.int64)
    for part in parts:
        some, text_of = np.unique(pool.text_of[part], return_inverse=True)
        frequencies += DocumentFrequencies(pool.texts.take(some), text_of, ids).count(ids, len(part))
    ends = np.cumsum([0, *(len(ids) for ids, _ in queries)])
    matrix = np.concatenate([vectors for _, vectors in queries])
    found: list[dict[str, list[tuple[Floats, Ints]]]] = [{lane: [] for lane in LANES} for _ in queries]
    with progress("exact search", len(parts), "copies") as step:
        for part in parts:
            some, text_of = np.unique(pool.text_of[part], return_inverse=True)
            matches = best_matches(matrix, pool.texts.take(some))[text_of]
            places = Places(pool.sessions[part], part, stage.window)
            for i, (begin, end) in enumerate(zip(ends, ends[1:])):
                weight = stage.weights(frequencies[begin:end], len(numbers))
                for lane, rows in stage._lanes(matches[:, begin:end], places):
                    best = topk(scores := rows @ weight, part, BEST)
                    found[i][lane].append((scores[best], part[best]))
            step(1)
    return [{lane: _merge_hits(pairs) for lane, pairs in one.items()} for one in found]


def _merge_hits(pairs: list[tuple[Floats, Ints]]) -> Ints:
    scores, numbers = np.concatenate([one for one, _ in pairs]), np.concatenate([one for _, one in pairs])
    return numbers[topk(scores, numbers, BEST)]


def ndcg_of(best: list[Ints], evidence: list[Ints]) -> float:
    """Return the mean nDCG@10 of some questions, from the best memories and the evidence of each."""
    ranks = np.full((len(best), max(map(len, evidence))), np.nan)
    for row, found, wanted in zip(ranks, best, evidence):
        row[:len(wanted)] = [float(at[0]) + 1 if len(at := np.flatnonzero(found == one)) else np.inf for one in wanted]
    return float(ndcg(ranks, BEST).mean())


def question_tables(tables: Tables, question: int) -> Tables:
    """Return what the search reads of a question, which sees the whole pool."""
    text = tables["questions"].filter(question=question)["text_id"]
    return Tables(texts=tables["texts"].filter(pl.col("text_id").is_in(text.implode())),
                  questions=frame("questions", {"question": [0], "corpus": [0], "text_id": text}),
                  queries=frame("queries", {"query": [0], "question": [0], "kind": ["original"], "text_id": text,
                                            "weight": [1.0]}))


@contextmanager
def print_time(what: str) -> Iterator[None]:
    """Print the seconds of a block, and the memory behind it."""
    start = time.perf_counter()
    yield
    memory = psutil.Process().memory_info()
    print(f"{what}: {time.perf_counter() - start:.1f} s; resident {memory.rss / 1e9:.2f} GB, of it mapped files "
          f"{memory.shared / 1e9:.2f} GB; peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB",
          flush=True)


def spread(items: list[int], number: int) -> list[int]:
    """Return so many of the items, evenly spread.

    >>> spread([5, 6, 7, 8, 9], 3)
    [5, 7, 9]
    """
    return [items[int(i)] for i in np.linspace(0, len(items) - 1, min(number, len(items)))]


def main() -> None:
    """Make the pool, build the index, ask, and compare with exact search."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", default="locomo", help="or longmemeval")
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--precision", choices=list(BITS), default="int8")
    parser.add_argument("--questions", type=int, default=200, help="asked one by one")
    parser.add_argument("--exact-questions", type=int, default=20, help="of these, compared with exact search")
    parser.add_argument("--centroids", default="null")
    parser.add_argument("--probes", type=int, default=32)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--words", nargs="*", default=[], help="words of a configuration: embedder.adapter=FILE")
    options = parser.parse_args()
    sweep = read(["system=best", "search/late=index", f"data={options.data}", f"data.path={options.file}",
                  "search.late.exact_below=0", f"search.late.kinds=[{KIND}]", f"search.late.probes={options.probes}",
                  f"search.late.candidates={options.candidates}", f"search.late.centroids={options.centroids}",
                  f"search.late.precision={options.precision}", *options.words])
    tables, store = load(sweep.arms[0].dataset), store_at(sweep.settings.store)
    stage = sweep.arms[0].pipeline.late
    assert isinstance(stage, LateIndex)
    turns = turns_of(tables, stage, store)
    asked, _ = distinct_texts(tables["texts"], tables["questions"]["text_id"])
    store.token_vectors(stage.matcher, asked, "query")
    folder = options.folder
    with print_time("token vectors written or found"):
        names = files_of(folder, turns.texts, -(-options.turns // len(turns.text_of)), options.precision)
    with print_time("token vectors mapped, with the check of their digests"):
        pool = pool_of(turns, map_files(folder, names, options.precision), options.turns)
    tokens = int(pool.texts.lengths.sum())
    print(f"{options.turns:,} turns, {tokens:,} tokens of {turns.texts.blocks[0].dim} numbers, {options.precision}, "
          f"{len(names)} files")
    file = folder / f"{options.turns} {options.precision} {stage.centroids} {stage.seed}.index"
    lists = TokenLists(stage.centroids, stage.seed, file)
    with print_time("index built or read"):
        postings = lists.of(pool.texts)
    print(f"{len(postings.centroids):,} centroids; {lists.assigned:,} tokens assigned")
    memory = OneMemory(store.root, pool, lists)
    sample = spread(sorted(turns.evidence), options.questions)
    search = searcher(stage, memory, tables)
    with print_time("first question"):
        search(sample[0])
    found, milliseconds = {}, []
    with print_time(f"{len(sample)} questions"), progress("questions", len(sample), "questions") as step:
        for question in sample:
            start = time.perf_counter()
            found[question] = search(question)
            milliseconds.append(1e3 * (time.perf_counter() - start))
            step(1)
    median, ninetieth, most = np.percentile(milliseconds, [50, 90, 100])
    print(f"ms of a question: median {median:.1f}, 90th percentile {ninetieth:.1f}, most {most:.1f}")
    on_disk = sum((folder / name).stat().st_size for name in names)
    print(f"bytes on disk of a turn: vectors {on_disk / len(names) / len(turns.text_of):,.0f}, "
          f"index {file.stat().st_size / options.turns:,.0f}")
    compare(stage, memory, pool, tables, turns, found, options.exact_questions)


def searcher(stage: LateIndex, memory: OneMemory, tables: Tables) -> Callable[[int], dict[str, Ints]]:
    """Return a search for the best memories of each lane of a question."""
    given = {question: question_tables(tables, question) for question in tables["questions"]["question"]}

    def search(question: int) -> dict[str, Ints]:
        hits = stage.run(given[question], memory)["hits"].filter(pl.col("rank") <= BEST)
        return {lane: hits.filter(lane=f"{lane}:{KIND}")["memory"].to_numpy() for lane in LANES}

    return search


def compare(stage: LateIndex, memory: OneMemory, pool: TokenPool, tables: Tables, turns: Turns,
            found: dict[int, dict[str, Ints]], number: int) -> None:
    """Print how much of the exact results of some questions was found, and the nDCG of both."""
    some = spread(list(found), number)
    rows = tables["questions"].filter(pl.col("question").is_in(some)).sort("question")
    texts, text_of = distinct_texts(tables["texts"], rows["text_id"])
    vectors, width = memory.token_vectors(stage.matcher, texts, "query"), stage.matcher.query_tokens
    queries = [(ids[:width], matrix[:width]) for ids, matrix in map(vectors.text, text_of)]
    with print_time(f"exact search of {len(some)} questions at once"):
        exact = exact_best(stage, pool, queries, len(turns.text_of))
    for lane in LANES:
        shares = [np.isin(one[lane], found[question][lane]).mean() for question, one in zip(some, exact)]
        print(f"overlap with the exact top {BEST}, {lane}: {np.mean(shares):.4f}")
    evidence = [turns.evidence[question] for question in some]
    for lane in LANES[:2]:
        print(f"turn nDCG@{BEST} of the lane {lane} alone, mean of the {len(some)} questions: "
              f"exact {ndcg_of([one[lane] for one in exact], evidence):.4f}, "
              f"index {ndcg_of([found[question][lane] for question in some], evidence):.4f}")
    print(f"the same of the {len(found)} questions, index, {LANES[0]}: "
          f"{ndcg_of([one[LANES[0]] for one in found.values()], [turns.evidence[one] for one in found]):.4f}")


if __name__ == "__main__":
    main()
