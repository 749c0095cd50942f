"""A small world for the tests of ranking: two corpora, three sessions each, and hits over them."""

from __future__ import annotations

import polars as pl

from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame

# corpus 0: sessions of 2, 3 and 1 turns; corpus 1: one session of 2 turns
TURNS = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2), (0, 2, 0), (1, 0, 0), (1, 0, 1)]


def body(corpus: int, session: int, turn: int) -> str:
    return f"text {corpus} {session} {turn}"


def world() -> Tables:
    """Tables with a memory a turn (id 10 x corpus + row, kind turn) and a memory a session (id 100 + row)."""
    c, s, t = (list(x) for x in zip(*TURNS))
    places = sorted({(a, b) for a, b, _ in TURNS})
    asked = ["How many plants did I buy?", "Who is Ann?"]
    texts = texts_frame([body(*x) for x in TURNS] + asked)
    memories = [(i, a, b, [d], "turn", text_hash(body(a, b, d))) for i, (a, b, d) in enumerate(TURNS)]
    memories += [(100 + i, a, b, [d for x, y, d in TURNS if (x, y) == (a, b)], "session", text_hash(body(a, b, 0)))
                 for i, (a, b) in enumerate(places)]
    m = list(zip(*memories))
    return Tables(
        texts=texts,
        turns=frame("turns", {"corpus": c, "session": s, "turn": t, "role": ["user", "assistant"] * 4,
                              "speaker": ["Ann"] * 6 + [None] * 2, "text_id": [text_hash(body(*x)) for x in TURNS]}),
        sessions=frame("sessions", {"corpus": [a for a, _ in places], "session": [b for _, b in places]}),
        questions=frame("questions", {"question": [0, 1], "corpus": [0, 1], "text_id": [text_hash(x) for x in asked]}),
        queries=frame("queries", {"query": [0, 1], "question": [0, 1], "kind": ["original"] * 2,
                                  "text_id": [text_hash(x) for x in asked], "weight": [1.0, 1.0]}),
        classes=frame("classes", {"question": [0, 1], "class": ["counting", "factual"]}),
        memories=frame("memories", dict(zip(["memory", "corpus", "session", "turns", "kind", "key_id"], m))),
    )


def hits(*rows: tuple[int, str, int, float, int]) -> pl.DataFrame:
    return frame("hits", dict(zip(["query", "lane", "memory", "score", "rank"], zip(*rows))))


def ranking(*lists: list[float], **more: list[float]) -> pl.DataFrame:
    """A ranking of units 0, 1, ... a question, with these scores, best first."""
    return frame("ranking", {
        "question": [q for q, s in enumerate(lists) for _ in s], "unit": [u for s in lists for u in range(len(s))],
        "score": [x for s in lists for x in s], "rank": [u + 1 for s in lists for u in range(len(s))],
        "selected": [False for s in lists for _ in s], **more})


def shown(table: pl.DataFrame) -> list[list[int]]:
    """Ranks selected, a list a question."""
    return [part.filter("selected")["rank"].to_list() for part in table.partition_by("question", maintain_order=True)]
