"""Cost of a question to a live memory of LoCoMo's sessions, with ``system=best`` or other words of a configuration.

    python experiments/late/live_memory.py locomo10.dev.json [--sessions 272] [--turns N] [--questions 5]
        [--folder DIR] [--words system=best] [--threads 2] [--batches | --noise]

Sessions beyond those of the file are the same ones again, with a number added to every turn so that no text is known.
Prints the time to add the sessions that the folder lacks and the time of each question: of the clock, and of the
processor over all threads; then the resident memory and the size on disk. The first question also merges the sessions
and tokenises them for BM25. With ``--batches`` all turns are encoded together before they are added, which takes a
tenth of the time; then the additions say nothing about encoding. With ``--noise`` only the turns of the file are
encoded: a repeated one gets their token vectors with noise (cosine .93), and sessions are added 500 at a time. So
40,000 turns take half a minute. With neither the script uses the public interface alone.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from itertools import islice
from pathlib import Path

import numpy as np
import psutil

from memlab import Memory, Pipeline, Session, preset

REPEAT = re.compile(" [0-9]+$")
"""What ``sessions`` adds to a repeated turn."""

NOISE = 0.4
"""Length of the noise beside vectors of length 1."""


def sessions(conversations: list[dict], most: int | None) -> Iterator[Session]:
    """Yield the sessions of all conversations, one a day, again and again; of each at most its first turns."""
    day, repeat = date(2023, 1, 1), 0
    while True:
        for one in conversations:
            talk = one["conversation"]
            for key in (k for k in talk if k.startswith("session_") and isinstance(talk[k], list)):
                day += timedelta(days=1)
                added = f" {repeat}" if repeat else ""
                turns = [("user", turn["text"] + added, turn["speaker"]) for turn in talk[key][:most]]
                yield Session(day.isoformat(), turns)
        repeat += 1


def print_time(what: str, work: Callable[[], object]) -> None:
    """Run some work and print its time."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    print(f"{what}: {time.perf_counter() - clock:.2f} s, processor {time.process_time() - processor:.2f} s", flush=True)


def pipeline_of_stored_tokens(pipeline: Pipeline, some: list[Session], folder: Path, noise: bool) -> Pipeline:
    """Return a pipeline whose late interaction takes the token vectors of all turns from a store that is filled
    first; with ``noise``, those of repeated turns from the first ones."""
    from memlab.memory.session_tables import write
    from memlab.memory.sessions import Entry
    from memlab.pipeline.tables import add_texts, distinct_texts
    from memlab.stages.search.hits import of_kinds
    from memlab.store import Store
    from memlab.support.clock import Clock

    store, late = Store(folder), pipeline.late
    matcher = late.matcher  # type: ignore[attr-defined]  # late interaction has one
    tables = write(map(Entry.new, range(len(some)), some), pipeline, store, Clock())
    searched = of_kinds(tables["memories"], late.kinds)  # type: ignore[attr-defined]
    texts, _ = distinct_texts(tables["texts"], searched["key_id"])
    first = (lambda text: REPEAT.sub("", text)) if noise else str
    _, texts = add_texts(texts.clear(), sorted({first(text) for text in texts["text"]}))
    vectors = store.token_vectors(matcher, texts, "document")
    row_of = dict(zip(texts["text"], range(texts.height)))

    class Stored:
        """The matcher, which looks documents up."""

        query_tokens = matcher.query_tokens

        def identity(self) -> dict:
            return matcher.identity()

        def token_identity(self, role: str) -> dict:
            return matcher.token_identity(role)

        def token_vectors(self, texts: list[str], _role: str) -> Iterator[tuple[np.ndarray, list, list]]:
            ids, matrices = zip(*(vectors.text(row_of[first(text)]) for text in texts))
            yield np.arange(len(texts)), list(ids), [
                matrix if first(text) == text else with_noise(matrix, zlib.crc32(text.encode()))
                for text, matrix in zip(texts, matrices)]

    return pipeline.replace(late=replace(pipeline.late, matcher=Stored()))


def with_noise(matrix: np.ndarray, seed: int) -> np.ndarray:
    """Return unit vectors near those of a matrix."""
    noise = np.random.default_rng(seed).standard_normal(matrix.shape, dtype=np.float32)
    moved = matrix + NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def main() -> None:
    """Fill a memory and ask."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--sessions", type=int, default=272)
    parser.add_argument("--turns", type=int, help="at most so many turns of each session")
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="filled once, and asked again later")
    parser.add_argument("--threads", type=int, help="ask the same questions again, one by one and from so many threads")
    parser.add_argument("--batches", action="store_true", help="encode all turns together first")
    parser.add_argument("--noise", action="store_true", help="encode the turns of the file alone")
    parser.add_argument("--words", nargs="*", default=["system=best"], help="words of a configuration")
    options = parser.parse_args()
    conversations = json.loads(options.file.read_text())
    folder = options.folder or Path(tempfile.mkdtemp()) / "memory"
    some = list(islice(sessions(conversations, options.turns), options.sessions))
    asked = [qa["question"] for qa in conversations[0]["qa"]][: options.questions]
    pipeline = filling = preset(*options.words)
    with Memory(folder, pipeline) as memory:
        some = some[len(memory):]
    if some:
        if options.batches or options.noise:
            filling = pipeline_of_stored_tokens(
                pipeline, some, folder.with_name(f"{folder.name}-encoded"), options.noise)
        at_once = 500 if options.noise else 1
        with Memory(folder, filling) as memory:
            print_time(f"add {len(some)} sessions of {sum(len(s.turns) for s in some)} turns",
                  lambda: [memory.add_many(some[start:start + at_once]) for start in range(0, len(some), at_once)])
    with Memory(folder, pipeline) as memory:
        for number, question in enumerate(asked, 1):
            print_time(f"question {number}", lambda question=question: memory.search(question, "2100-01-01"))
        for threads in (1, options.threads, 1, options.threads) if options.threads else ():
            with ThreadPoolExecutor(threads) as pool:
                print_time(f"{len(asked)} questions from {threads} threads",
                      lambda pool=pool: list(pool.map(lambda question: memory.search(question, "2100-01-01"), asked)))
    print(f"resident {psutil.Process().memory_info().rss / 1e6:.0f} MB")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"on disk {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
