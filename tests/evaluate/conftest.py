"""A small world whose metrics can be counted on the fingers, and a generator of random ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np
import polars as pl
import pytest

from memlab.pipeline.tables import Tables, empty, frame, text_hash, texts_frame
from memlab.stages.rank.units import memory_units, session_units, turn_units

DAY = datetime(2023, 5, 1)


def build(sessions: dict[int, list[list[str]]], evidence: dict[int, list[tuple[int, int | None]]],
          rankings: dict[int, list[int]], *, level: str = "turn", corpus_of: dict[int, int] | None = None,
          abstain: tuple[int, ...] = (), unscored: tuple[int, ...] = (), selected: int = 2,
          spans: list[tuple[int, int, list[int]]] | None = None) -> Tables:
    """Make tables: sessions = corpus -> roles of each session's turns; rankings = question -> units in order.

    A unit has (number + 1) * 10 tokens. spans = (corpus, session, turns) of the memories, for level memory.
    """
    corpus_of = corpus_of or {}
    places = [(c, s) for c, held in sessions.items() for s in range(len(held))]
    rows = [(c, s, t, role) for c, s in places for t, role in enumerate(sessions[c][s])]
    turns = frame("turns", {"corpus": [r[0] for r in rows], "session": [r[1] for r in rows],
                            "turn": [r[2] for r in rows], "role": [r[3] for r in rows],
                            "text_id": [text_hash("hello") for _ in rows]})
    said = frame("sessions", {"corpus": [c for c, _ in places], "session": [s for _, s in places],
                              "said_on": [DAY for _ in places]})
    if level == "memory":
        assert spans is not None
        memories = frame("memories", {"memory": list(range(len(spans))), "corpus": [m[0] for m in spans],
                                      "session": [m[1] for m in spans], "turns": [m[2] for m in spans]})
        units = memory_units(memories)
    else:
        units = turn_units(turns) if level == "turn" else session_units(said, turns)
    asked = sorted(rankings)
    ranked = [(q, unit, rank) for q in asked for rank, unit in enumerate(rankings[q], start=1)]
    ranking = frame("ranking", {
        "question": [r[0] for r in ranked], "unit": [r[1] for r in ranked], "score": [1.0 / r[2] for r in ranked],
        "rank": [r[2] for r in ranked], "selected": [r[2] <= selected for r in ranked],
        "tokens": pl.Series([10.0 * (r[1] + 1) for r in ranked], dtype=pl.Float64)})
    chosen = ranking.filter("selected")
    context = frame("context", {"question": chosen["question"], "position": chosen["rank"], "unit": chosen["unit"],
                                "text_id": [text_hash("hello")] * chosen.height,
                                "tokens": chosen["tokens"].cast(pl.Int32)})
    gold_rows = [(q, s, t) for q, held in evidence.items() for s, t in held]
    return Tables(
        texts=texts_frame(["hello", *(f"question {q}" for q in asked)]), ids=empty("ids"), sessions=said,
        turns=turns, units=units,
        ranking=ranking, context=context,
        questions=frame("questions", {"question": asked, "corpus": [corpus_of.get(q, 0) for q in asked],
                                      "text_id": [text_hash(f"question {q}") for q in asked],
                                      "asked_on": [DAY for _ in asked]}),
        evidence=frame("evidence", {"question": [r[0] for r in gold_rows], "session": [r[1] for r in gold_rows],
                                    "turn": [r[2] for r in gold_rows]}),
        gold=frame("gold", {"question": asked, "answer": ["a"] * len(asked),
                            "category": [("multi", "single")[q % 2] for q in asked],
                            "abstain": [q in abstain for q in asked],
                            "scored": [q not in unscored and q not in abstain for q in asked]}),
    )


def random_world(seed: int, questions: int = 30, level: str = "turn") -> Tables:
    """Make a world of 3 corpora with random evidence and random rankings."""
    rng = np.random.default_rng(seed)
    sessions = {c: [["user"] * int(rng.integers(1, 5)) for _ in range(6)] for c in range(3)}
    corpus_of = {q: int(rng.integers(3)) for q in range(questions)}
    offset, place, units = 0, {}, {}
    for c, held in sessions.items():
        place[c] = [(s, t) for s, turns in enumerate(held) for t in range(len(turns))]
        size = len(place[c]) if level == "turn" else len(held)
        units[c] = list(range(offset, offset + size))
        offset += size
    evidence, rankings = {}, {}
    for q in range(questions):
        c = corpus_of[q]
        picked = rng.choice(len(place[c]), size=min(int(rng.integers(0, 4)), len(place[c])), replace=False)
        evidence[q] = [place[c][i] if rng.random() < .9 else (place[c][i][0], None) for i in picked]
        order = rng.permutation(units[c])
        rankings[q] = [int(u) for u in order[: int(rng.integers(1, len(order) + 1))]]
    return build(sessions, evidence, rankings, level=level, corpus_of=corpus_of, selected=3)


@pytest.fixture(scope="session")
def make_world() -> Callable[..., Tables]:
    return build


@pytest.fixture(scope="session")
def make_random_world() -> Callable[..., Tables]:
    return random_world
