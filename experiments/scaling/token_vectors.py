"""Cost of late interaction's token vectors: bytes and encoding per turn, and time per question by their number.

    python experiments/scaling/token_vectors.py bytes FILE     1,000 user turns, each number format, new stores
    python experiments/scaling/token_vectors.py search FILE    all user turns of the data, fp32, in $MEMLAB_HOME/store

On a busy machine set OMP_NUM_THREADS=1: threads that wait for each other count as processor time.

FILE is that of LongMemEval-S. A question is compared with more and more of all its user turns, and with 1,000 of them,
which stand for the candidates that a cheaper search would hand over. Times are those of the products and maxima alone.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from memlab.data.longmemeval import LongMemEval
from memlab.data.numbering import draw
from memlab.experiment.harness.sweep import preset
from memlab.pipeline.tables import distinct_texts
from memlab.stages.search.maxsim import best_matches
from memlab.store import Store

SAMPLE, QUESTIONS, CANDIDATES = 1000, 5, 1000


def user_turns(path: Path) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return the texts of distinct user turns and of questions, in the order of a hash, and the number of all turns."""
    tables = LongMemEval(path=path).load()
    said = tables["turns"].filter(pl.col("role") == "user")["text_id"]
    parts = [distinct_texts(tables["texts"], ids)[0] for ids in (said, tables["questions"]["text_id"])]
    turns, questions = (part.sort(pl.Series([draw(text, 0) for text in part["text_id"]])) for part in parts)
    return turns.filter(pl.col("text").str.strip_chars() != ""), questions, tables["turns"].height


def sizes(turns: pl.DataFrame) -> None:
    matcher, sample = preset("system=best").late.matcher, turns.head(SAMPLE)
    for precision in ("fp32", "fp16", "int8", "4bit", "2bit"):
        root = Path(tempfile.mkdtemp())
        start, cpu = time.perf_counter(), time.process_time()
        vectors = Store(root).token_vectors(matcher, sample, "document", precision)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        tokens = int(vectors.lengths.sum())
        stored = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        print(f"{precision}: {stored / len(sample):,.0f} bytes per turn, {stored / tokens:,.0f} per token, "
              f"{tokens / len(sample):.1f} tokens per turn; {len(sample) / wall:.1f} turns/s, "
              f"{1000 * cpu / len(sample):.1f} ms of processor time per turn", flush=True)
        shutil.rmtree(root)


def search(turns: pl.DataFrame, questions: pl.DataFrame) -> None:
    matcher, store = preset("system=best").late.matcher, Store()
    asked = store.token_vectors(matcher, questions.head(QUESTIONS), "query")
    vectors = store.token_vectors(matcher, turns, "document")
    rng = np.random.default_rng(0)
    as_stored = np.lexsort((vectors.begins, vectors.block_of))  # a scan reads them in this order, without copies
    parts = {f"{n:,} turns": as_stored[:n] for n in (len(turns) // 8, len(turns) // 4, len(turns) // 2, len(turns))}
    parts[f"{CANDIDATES:,} of {len(turns):,}"] = np.sort(rng.choice(len(turns), CANDIDATES, replace=False))
    for name, rows in parts.items():
        some = vectors.take(rows)
        best_matches(asked.text(0)[1], some)  # reads the file once
        walls, cpus = [], []
        for i in range(QUESTIONS):
            start, cpu = time.perf_counter(), time.process_time()
            best_matches(asked.text(i)[1], some)
            walls.append(time.perf_counter() - start)
            cpus.append(time.process_time() - cpu)
        tokens = int(some.lengths.sum())
        print(f"{name}, {tokens:,} token vectors: {1000 * np.median(walls):.1f} ms per question by the clock, "
              f"{1000 * np.median(cpus):.1f} of processor time, {1e6 * np.median(walls) / tokens:.3f} us per vector",
              flush=True)


if __name__ == "__main__":
    what, file = sys.argv[1], Path(sys.argv[2])
    texts, questions, total = user_turns(file)
    print(f"{total:,} turns, {len(texts):,} distinct user turns")
    if what == "bytes":
        sizes(texts)
    else:
        search(texts, questions)
