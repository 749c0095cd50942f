"""Turn nDCG@10 and time of questions to a live memory that ``live_memory.py`` has filled with whole sessions.

    python experiments/late/live_memory.py locomo10.dev.json --sessions 4960 --questions 1 --batches --folder DIR \
        --words system=best search.late.precision=int8
    python experiments/late/live_quality.py locomo10.dev.json DIR [--each 20] --words system=best \
        search.late.precision=int8 [search.late.exact_below=100000000]

Asks some questions of each conversation. The memory holds every conversation many times, with a number added to each
turn, so two figures are printed: only the first copy counts as evidence, or any copy does, each turn once.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from pathlib import Path

import numpy as np
import psutil

from memlab import Memory, preset

Place = tuple[int, int]
"""Number of a session among those of all conversations, and of a turn in it."""


def questions(conversations: list[dict], each: int) -> tuple[int, list[tuple[str, set[Place]]]]:
    """Return the number of sessions of all conversations, and questions with the places of their evidence."""
    sessions, chosen = 0, []
    for one in conversations:
        talk, place_of = one["conversation"], {}
        for key in (k for k in talk if k.startswith("session_") and isinstance(talk[k], list)):
            place_of |= {turn["dia_id"]: (sessions, number) for number, turn in enumerate(talk[key])}
            sessions += 1
        known = [qa for qa in one["qa"] if qa["category"] != 5 and qa["evidence"]  # 5: without an answer
                 and all(evidence in place_of for evidence in qa["evidence"])]
        chosen += [(qa["question"], {place_of[evidence] for evidence in qa["evidence"]})
                   for qa in known[::max(1, len(known) // each)][:each]]
    return sessions, chosen


def ndcg(ranked: list[Place], gold: set[Place]) -> float:
    """Return nDCG@10 of turns, best first; each counts at its first place."""
    gains = [1 / math.log2(rank + 2) for rank, place in enumerate(ranked[:10])
             if place in gold and place not in ranked[:rank]]
    return sum(gains) / sum(1 / math.log2(rank + 2) for rank in range(min(10, len(gold))))


def main() -> None:
    """Print the means of both figures, and the time of all questions but the first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", type=int, default=20, help="questions of each conversation")
    parser.add_argument("--words", nargs="*", default=["system=best"], help="words of a configuration")
    options = parser.parse_args()
    sessions, asked = questions(json.loads(options.file.read_text()), options.each)
    figures, seconds = [], []
    with Memory(options.folder, preset(*options.words)) as memory:
        for question, gold in asked:
            start = time.perf_counter()
            found = memory.search(question, "2100-01-01", k=10)
            seconds.append(time.perf_counter() - start)
            places = [(session, turns[0]) for session, turns in found.select("session", "turns").iter_rows()]
            figures.append((ndcg(places, gold), ndcg([(session % sessions, turn) for session, turn in places], gold)))
    first, copies = np.mean(figures, axis=0)
    print(f"{len(asked)} questions: turn nDCG@10 {first:.4f}, with copies {copies:.4f}; seconds: median "
          f"{np.median(seconds[1:]):.3f}, most {max(seconds[1:]):.3f}; "
          f"resident {psutil.Process().memory_info().rss / 1e6:.0f} MB, at most "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
