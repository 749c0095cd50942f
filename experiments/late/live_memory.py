"""Cost and quality of questions to a live memory of LoCoMo's sessions, with ``system=best`` or other words.

    python experiments/late/live_memory.py locomo10.dev.json [--sessions 272] [--turns N] [--questions 5]
        [--folder DIR] [--words system=best] [--threads 2] [--batches | --noise] [--each 20]

Sessions beyond those of the file are the same ones again, with a number added to every turn so that no text is known.
Prints the time to add the sessions that the folder lacks and the time of each question: of the clock, and of the
processor over all threads; then the resident memory and the size on disk. The first question also merges the sessions
and tokenises them for BM25. With ``--batches`` all turns are encoded together before they are added, which takes a
tenth of the time; then the additions say nothing about encoding. With ``--noise`` only the turns of the file are
encoded: a repeated one gets their token vectors with noise (cosine .93), and sessions are added 500 at a time. So
40,000 turns take half a minute. With neither the script uses the public interface alone.

``--each`` asks so many questions of each conversation and prints their turn nDCG@10 and time. The memory, of whole
sessions, holds every conversation many times, so there are two figures: only the first copy counts as evidence, or any
copy does, each turn once.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import tempfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from itertools import islice
from pathlib import Path

import numpy as np

from experiments.speed.live import Watch, resident, size
from memlab import Memory, Pipeline, Session, preset
from memlab.evaluate.retrieval import ndcg

REPEAT = re.compile(" [0-9]+$")
"""What ``sessions`` adds to a repeated turn."""

NOISE = 0.4
"""Length of the noise beside vectors of length 1."""


Place = tuple[int, int]
"""Number of a session among those of all conversations, and of a turn in it."""


def talks(conversation: dict) -> Iterator[list[dict]]:
    """Yield the turns of each session of a conversation."""
    yield from (turns for key, turns in conversation["conversation"].items()
                if key.startswith("session_") and isinstance(turns, list))


def sessions(conversations: list[dict], most: int | None) -> Iterator[Session]:
    """Yield the sessions of all conversations, one a day, again and again; of each at most its first turns."""
    day, repeat = date(2023, 1, 1), 0
    while True:
        for one in conversations:
            for talk in talks(one):
                day += timedelta(days=1)
                added = f" {repeat}" if repeat else ""
                turns = [("user", turn["text"] + added, turn["speaker"]) for turn in talk[:most]]
                yield Session(day.isoformat(), turns)
        repeat += 1


def print_time(what: str, work: Callable[[], object]) -> None:
    """Run some work and print its time."""
    watch = Watch()
    work()
    print(f"{what}: {watch}", flush=True)


def questions(conversations: list[dict], each: int) -> tuple[int, list[tuple[str, set[Place]]]]:
    """Return the number of sessions of all conversations, and questions with the places of their evidence."""
    sessions, chosen = 0, []
    for one in conversations:
        place_of: dict[str, Place] = {}
        for talk in talks(one):
            place_of |= {turn["dia_id"]: (sessions, number) for number, turn in enumerate(talk)}
            sessions += 1
        known = [qa for qa in one["qa"] if qa["category"] != 5 and qa["evidence"]  # 5: without an answer
                 and all(evidence in place_of for evidence in qa["evidence"])]
        chosen += [(qa["question"], {place_of[evidence] for evidence in qa["evidence"]})
                   for qa in known[::max(1, len(known) // each)][:each]]
    return sessions, chosen


def print_quality(memory: Memory, conversations: list[dict], each: int) -> None:
    """Print the mean of both figures, and the time of all questions but the first."""
    number, asked = questions(conversations, each)
    figures, seconds = [], []
    for question, gold in asked:
        watch = Watch()
        found = memory.search(question, "2100-01-01", k=10)
        seconds.append(watch.clock())
        places = [(session, turns[0]) for session, turns in found.select("session", "turns").iter_rows()]
        copies = [(session % number, turn) for session, turn in places]
        ranks = [[some.index(place) + 1 if place in some else np.inf for place in gold] for some in (places, copies)]
        figures.append(ndcg(np.array(ranks), 10))
    first, any_copy = np.mean(figures, axis=0)
    print(f"{len(asked)} questions: turn nDCG@10 {first:.4f}, with copies {any_copy:.4f}; seconds: median "
          f"{np.median(seconds[1:]):.3f}, most {max(seconds[1:]):.3f}")


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
    parser.add_argument("--each", type=int, help="print the quality of so many questions of each conversation")
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
        if options.each:
            print_quality(memory, conversations, options.each)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"resident {resident():.0f} MB, at most {peak:.0f} MB; on disk {size(folder):.1f} MB")


if __name__ == "__main__":
    main()
