"""Small worlds for the tests of reading: talks, their turns or sessions ranked, and questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl
from hypothesis import strategies as st

from memlab.pipeline.tables import Tables, empty, frame, text_hash, texts_frame
from memlab.pipeline.token_counter import count_tokens
from memlab.stages.query.classify import Rules
from memlab.stages.rank.units import session_units, turn_units
from memlab.store import Store
from tests.stages.write.conversations import DAY, talk

Talk = list[list[tuple[str, ...]]]


def world(sessions: Talk, ranking: Sequence[int] = (), *, level: str = "turn", selected: int = 10**6,
          asked: Sequence[tuple[str, datetime | None]] = (("Where?", DAY + timedelta(days=400)),)) -> Tables:
    """One corpus; every question ranks the units in the same order, and selects the first of them."""
    tables = talk(*sessions)
    units = turn_units(tables["turns"]) if level == "turn" else session_units(tables["sessions"], tables["turns"])
    n, q = len(ranking), len(asked)
    questions = frame("questions", {"question": range(q), "corpus": [0] * q,
                                    "text_id": [text_hash(t) for t, _ in asked], "asked_on": [d for _, d in asked]})
    ranked = frame("ranking", {
        "question": [i for i in range(q) for _ in range(n)], "unit": [*ranking] * q, "score": [0.0] * (n * q),
        "rank": [*range(1, n + 1)] * q, "selected": [r < selected for r in range(n)] * q})
    texts = pl.concat([tables["texts"], texts_frame(t for t, _ in asked)]).unique("text_id", maintain_order=True)
    worded = tables.updated({"questions": questions, "texts": texts})
    return worded.updated(Rules().run(worded, Store())).updated(
        {"units": units, "ranking": ranked, "memories": empty("memories"), "context": empty("context")})


def shown(tables: Tables, question: int = 0) -> list[str]:
    """The texts of a context, in the order in which they are shown."""
    texts = dict(tables["texts"].iter_rows())
    rows = tables["context"].filter(pl.col("question") == question).sort("position")
    assert rows["position"].to_list() == list(range(1, rows.height + 1))
    assert rows["tokens"].to_list() == [tokens(texts[t]) for t in rows["text_id"]]
    return [texts[t] for t in rows["text_id"]]


def tokens(text: str) -> int:
    """What the one counter says."""
    return int(count_tokens(pl.Series([text])).item())


@st.composite
def worlds(draw: st.DrawFn) -> Tables:
    """A few sessions of a few turns, in which all texts differ, their turns ranked in any order, some selected."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    sessions = [[("user", f"word{s}x{t} " * draw(st.integers(1, 6))) for t in range(n)] for s, n in enumerate(lengths)]
    ranking = draw(st.permutations(range(sum(lengths))))
    return world(sessions, ranking, selected=draw(st.integers(0, len(ranking))))  # type: ignore[arg-type]
