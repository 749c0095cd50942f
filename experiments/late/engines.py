"""Search over the same token vectors by memlab and by other engines, one question at a time.

    python experiments/late/engines.py run locomo10.dev.json [--turns 5000] [--questions 300] [--rounds 3]
        [--fast-plaid PYTHON] [--pylate PYTHON] [--xtr-warp PYTHON]

PYTHON is the interpreter of an environment that has the engine; memlab needs none of them. Every engine runs in a
process of its own with two threads, and only one of them works at a time: in each round all settings of all engines
have their turn, in a random order, each with 20 questions ahead that do not count. The pool is that of ``pruned.py``
in fp32; a text's score is the plain sum of its best matches (MaxSim). After each round it prints a table: seconds to
build the index, milliseconds of the clock and of the processor for a question, the share of the exact top 10 that is
found, and the median beside that of memlab's exact search. Encoding does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from memlab.store.token_vectors import Precision

Floats = np.ndarray[Any, np.dtype[np.float32]]
Search = Callable[..., Iterable[int]]
"""Token vectors of a question (t, dim) and settings -> the numbers of the ten best texts."""

THREADS = "2"

WARM_UP = 20
"""Questions that are asked before the clock starts."""


class Setting(NamedTuple):
    """How an index is built, how it is searched, and what is said of both."""

    label: str
    build: dict[str, Any]
    search: dict[str, Any]


def memlab(documents: list[Floats], _: Path, precision: Precision, lists: bool) -> Search:
    """Build memlab's lists, or none for exact search."""
    from pruned import as_texts, exact_search, pruned_search

    from memlab.stages.search.token_lists import TokenLists
    from memlab.store.token_vectors import make_block

    keys = np.random.default_rng(0).integers(0, 2**63, (len(documents), 2), np.uint64)
    ids = [np.zeros(len(document), np.int64) for document in documents]
    texts = as_texts(make_block(keys, ids, documents, precision))
    postings = TokenLists(None, seed=0).of(texts) if lists else None

    def weights(tokens: Any) -> Floats:
        return np.ones(len(tokens), np.float32)

    def search(query: Floats, probes: int = 0, candidates: int = 0) -> Iterable[int]:
        found = (exact_search(texts, weights) if postings is None else
                 pruned_search(texts, postings, weights, probes, candidates))
        return found(np.zeros(len(query), np.int64), query)

    return search


def fast_plaid(documents: list[Floats], folder: Path, bits: int) -> Search:
    """Build an index of fast-plaid."""
    import torch
    from fast_plaid.search import FastPlaid

    index = FastPlaid(str(folder), device="cpu")
    index.create([torch.from_numpy(document) for document in documents], nbits=bits)

    def search(query: Floats, **settings: int) -> Iterable[int]:
        return [text for text, _ in index.search(torch.from_numpy(query)[None], show_progress=False, **settings)[0]]

    return search


def xtr_warp(documents: list[Floats], folder: Path, bits: int) -> Search:
    """Build an index of xtr-warp-rs."""
    import torch
    from xtr_warp.search import XTRWarp

    index = XTRWarp(str(folder))
    index.create([torch.from_numpy(document) for document in documents], "cpu", nbits=bits, show_progress=False)
    index.load("cpu", mmap=False)

    def search(query: Floats, **settings: Any) -> Iterable[int]:
        asked = torch.from_numpy(query)[None]
        return [text for text, _ in index.search(asked, 10, show_progress=False, **settings)[0]]

    return search


def pylate(documents: list[Floats], folder: Path, bits: int | None, **settings: int) -> Search:
    """Build PyLate's PLAID index, or without bits the padded matrix that its exact scores are taken from."""
    import torch
    from pylate.indexes import PLAID
    from pylate.scores import colbert_scores

    tensors = [torch.from_numpy(document) for document in documents]
    if bits is None:
        padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
        counts = torch.nn.utils.rnn.pad_sequence([torch.ones(len(each)) for each in tensors], batch_first=True)

        def exact(query: Floats) -> Iterable[int]:
            scores = colbert_scores(torch.from_numpy(query)[None], padded, documents_mask=counts)[0]
            return scores.topk(10).indices.tolist()

        return exact
    index = PLAID(str(folder), nbits=bits, show_progress=False, device="cpu", **settings)
    index.add_documents(list(map(str, range(len(tensors)))), tensors)

    def search(query: Floats) -> Iterable[int]:
        return [int(hit["id"]) for hit in index([torch.from_numpy(query)], k=10)[0]]

    return search


BUILDERS: dict[str, Callable[..., Search]] = {
    "memlab": memlab, "fast-plaid": fast_plaid, "xtr-warp-rs": xtr_warp, "pylate": pylate}

SETTINGS: dict[str, list[Setting]] = {
    "memlab": [
        Setting("exact, fp32", {"precision": "fp32", "lists": False}, {}),
        *(Setting(f"{probes} probes, {candidates} candidates, {precision}", {"precision": precision, "lists": True},
                  {"probes": probes, "candidates": candidates})
          for precision, probes, candidates in (
              ("fp32", 16, 100), ("fp32", 32, 200), ("fp32", 32, 1000), ("int8", 16, 100), ("int8", 32, 200),
              ("4bit", 16, 100), ("4bit", 32, 200)))],
    "fast-plaid": [
        Setting(f"n_ivf_probe={probes}, n_full_scores={scored}, nbits={bits}", {"bits": bits},
                {"n_ivf_probe": probes, "n_full_scores": scored})
        for bits, probes, scored in ((4, 8, 4096), (4, 8, 200), (8, 8, 4096), (8, 8, 200), (8, 16, 400))],
    "xtr-warp-rs": [
        Setting("defaults, nbits=4", {"bits": 4}, {}),
        Setting("num_threads=2, nbits=4", {"bits": 4}, {"num_threads": 2}),
        *(Setting(f"nprobe={probes}, bound={8 * probes}, centroid_score_threshold=0, num_threads=2, nbits=4",
                  {"bits": 4}, {"nprobe": probes, "bound": 8 * probes, "centroid_score_threshold": 0.0,
                                "num_threads": 2})
          for probes in (32, 256))],
    "pylate": [
        Setting("colbert_scores (exact, padded), fp32", {"bits": None}, {}),
        Setting("PLAID, defaults, nbits=4", {"bits": 4}, {}),
        Setting("PLAID, n_full_scores=200, nbits=8", {"bits": 8, "n_full_scores": 200}, {})]}


def serve(engine: str, vectors: Path) -> None:
    """Build the indexes of an engine, then run the setting whose number each line of the input holds."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what engines print is no answer
    with np.load(vectors) as file:
        documents = np.split(file["documents"], file["starts"][1:-1])
        queries = np.split(file["queries"], file["query_starts"][1:-1])
    indexes: dict[str, tuple[Search, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for setting in SETTINGS[engine]:
            key = json.dumps(setting.build)
            if key not in indexes:
                start = time.perf_counter()
                indexes[key] = BUILDERS[engine](documents, Path(folder, str(len(indexes))), **setting.build
                                                ), time.perf_counter() - start
        builds = [indexes[json.dumps(setting.build)][1] for setting in SETTINGS[engine]]
        print(json.dumps({"version": version(engine), "builds": builds}), file=answers)
        for line in sys.stdin:
            setting = SETTINGS[engine][int(line)]
            search = indexes[json.dumps(setting.build)][0]
            for query in queries[:WARM_UP]:
                search(query, **setting.search)
            times, found, processor = [], [], time.process_time()
            for query in queries:
                start = time.perf_counter()
                found.append([int(text) for text in search(query, **setting.search)])
                times.append(time.perf_counter() - start)
            print(json.dumps({"times": times, "found": found, "processor": time.process_time() - processor}),
                  file=answers)


def export(file: Path, turns: int, questions: int, vectors: Path) -> None:
    """Save the pool, the questions and the exact top 10 of each."""
    from pruned import as_texts, exact_search, read_pool

    block, queries = read_pool(file, turns, questions, "fp32")
    exact = exact_search(as_texts(block), lambda ids: np.ones(len(ids), np.float32))
    starts = np.cumsum([0, *(len(ids) for ids, _ in queries)])
    np.savez(vectors, documents=block.vectors, starts=block.starts, query_starts=starts,
             queries=np.concatenate([matrix for _, matrix in queries]), exact=[exact(*query) for query in queries])
    print(f"{len(block.keys)} turns, {len(block.ids)} tokens of {block.dim} numbers, {len(queries)} questions of "
          f"{starts[-1] / len(queries):.1f} tokens", flush=True)


class Worker:
    """A process that serves one engine."""

    def __init__(self, engine: str, python: str, vectors: Path) -> None:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
        self.engine = engine
        self._process = subprocess.Popen([python, __file__, "serve", engine, str(vectors)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True,
                                         env=os.environ | dict.fromkeys(names, THREADS))
        about = self._read()
        self.version, self.builds = about["version"], about["builds"]
        self.times: list[list[float]] = [[] for _ in self.builds]
        self.processor: list[list[float]] = [[] for _ in self.builds]
        self.found: list[list[list[int]]] = [[] for _ in self.builds]

    def run(self, number: int) -> None:
        """Run a setting once."""
        print(number, file=self._process.stdin, flush=True)
        answer = self._read()
        self.times[number].append(answer["times"])
        self.processor[number].append(answer["processor"])
        self.found[number] = answer["found"]

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.engine} ended with status {self._process.wait()}")
        return json.loads(line)


def run(options: argparse.Namespace) -> None:
    """Run all settings of all engines in turn, and print the table."""
    pythons = {"memlab": sys.executable, "fast-plaid": options.fast_plaid, "xtr-warp-rs": options.xtr_warp,
               "pylate": options.pylate}
    with tempfile.TemporaryDirectory() as folder:
        vectors = Path(folder, "vectors.npz")
        export(options.file, options.turns, options.questions, vectors)
        with np.load(vectors) as file:
            exact = file["exact"]
        workers = []
        for engine, python in pythons.items():
            try:
                workers += [Worker(engine, python, vectors)] if python else []
            except RuntimeError as error:
                print(f"{error}: left out", file=sys.stderr, flush=True)
        turns = [(worker, number) for worker in workers for number in range(len(worker.builds))]
        for seed in range(options.rounds):
            for turn in np.random.default_rng(seed).permutation(len(turns)):
                worker, number = turns[turn]
                worker.run(number)
            print(f"\nRounds: {seed + 1}. Load: {os.getloadavg()[0]:.1f}.\n\n{table(turns, exact)}", flush=True)


def table(turns: list[tuple[Worker, int]], exact: np.ndarray[Any, Any]) -> str:
    """Return the rows of all settings; the first is memlab's exact search."""
    base = float(np.median(turns[0][0].times[0]))
    lines = ["| engine and setting | index, s | median, ms | medians of rounds | mean, ms | processor, ms | overlap | "
             "median / memlab exact |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for worker, number in turns:
        times = np.array(worker.times[number])
        medians = 1e3 * np.median(times, axis=1)
        processor = 1e3 * np.mean(worker.processor[number]) / len(exact)
        share = np.mean([np.isin(best, found).mean() for best, found in zip(exact, worker.found[number])])
        lines.append(f"| {worker.engine} {worker.version}: {SETTINGS[worker.engine][number].label} | "
                     f"{worker.builds[number]:.1f} | {1e3 * np.median(times):.1f} | {medians.min():.1f} to "
                     f"{medians.max():.1f} | {1e3 * times.mean():.1f} | {processor:.1f} | {share:.3f} | "
                     f"{np.median(times) / base:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("file", type=Path)
    running.add_argument("--turns", type=int, default=5000)
    running.add_argument("--questions", type=int, default=300)
    running.add_argument("--rounds", type=int, default=3)
    for engine in ("fast-plaid", "xtr-warp", "pylate"):
        running.add_argument(f"--{engine}", metavar="PYTHON")
    serving = commands.add_parser("serve")
    serving.add_argument("engine", choices=list(SETTINGS))
    serving.add_argument("vectors", type=Path)
    options = parser.parse_args()
    if options.command == "serve":
        serve(options.engine, options.vectors)
    else:
        run(options)


if __name__ == "__main__":
    main()
