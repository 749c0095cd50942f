from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import Tables, frame
from memlab.pipeline.token_counter import TOKEN, count_tokens
from memlab.stages.read.pack import fit_costs
from memlab.stages.read.prompt import render_units
from memlab.stages.read.tokens import TokenCost
from memlab.stages.write.chunk import TurnChunker
from memlab.store import Store
from tests.stages.write.conversations import talk

CHAT = talk([("user", "I ate figs"), ("assistant", "Nice."), ("user", "Bye")], [("user", "Hello", "Ann")])
ONE = "[2023-05-20]\nuser: I ate figs"
ALL = "[2023-05-20]\nuser: I ate figs\n\nassistant: Nice.\n\nuser: Bye"


def ranked(level: str, rows: list[tuple[int, int, bool]]) -> Tables:
    """Rank units (question, unit, selected) in the order given; units are the four turns or the two sessions."""
    tables = CHAT.updated(TurnChunker().run(CHAT, Store()))
    turns = CHAT["turns"]
    if level == "session":
        units = {"unit": [0, 1], "session": [0, 1], "turns": [[0, 1, 2], [0]]}
    else:
        units = {"unit": range(4), "session": turns["session"], "turns": [[t] for t in turns["turn"]]}
    n = len(units["unit"])
    frames = {
        "units": frame("units", units | {"corpus": [0] * n, "level": [level] * n}),
        "ranking": frame("ranking", {
            "question": [r[0] for r in rows], "unit": [r[1] for r in rows], "score": [0.0] * len(rows),
            "rank": [[q for q, *_ in rows[:i + 1]].count(r[0]) for i, r in enumerate(rows)],
            "selected": [r[2] for r in rows]}),
    }
    return tables.updated(frames)


@pytest.mark.parametrize(("level", "value", "text"), [
    ("memory", "unit", ONE), ("turn", "unit", ONE), ("turn", "turn", ONE), ("memory", "turn", ONE),
    ("session", "unit", ALL), ("session", "turn", ALL), ("turn", "session", ALL), ("memory", "session", ALL)])
def test_what_a_unit_shows(level, value, text):
    tables = ranked(level, [])
    shown = dict(render_units(tables["units"], tables, value).iter_rows())
    assert shown[0] == text
    assert shown[max(shown)] == "[2023-05-21]\nAnn: Hello"
    assert len(shown) == tables["units"].height


def test_turns_are_shown_in_the_order_of_the_talk():
    tables = ranked("session", [])
    backwards = pl.Series([[2, 0]], dtype=pl.List(pl.Int32))
    units = tables["units"].head(1).with_columns(level=pl.lit("memory"), turns=backwards)
    assert render_units(units, tables, "turn")["text"].to_list() == [ONE + "\n\nuser: Bye"]


def test_measure_counts_the_shown_text_down_to_a_depth():
    tables = ranked("turn", [(0, 0, False), (0, 1, False), (1, 1, False)])
    out = TokenCost(depth=1).run(tables, Store())["ranking"]
    counts = [len(re.findall(TOKEN, text)) for text in (ONE, "[2023-05-20]\nassistant: Nice.")]
    assert out["tokens"].to_list() == [counts[0], None, counts[1]]  # unit 1 is near for question 1 only
    assert out["tokens"].dtype == pl.Float64
    assert out.drop("tokens").equals(tables["ranking"])
    again = TokenCost().run(tables.updated({"ranking": out}), Store())["ranking"]
    assert again["tokens"].null_count() == 0


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 60))
def test_fitting_fills_the_room_and_could_add_nothing(costs, room):
    kept = fit_costs(costs, room)
    left = room - sum(c for c, k in zip(costs, kept) if k)
    assert left >= 0
    assert all(c > left for c, k in zip(costs, kept) if not k)


@given(st.text(alphabet="ab1 _.,'\n-é", max_size=40))
def test_count_tokens_counts_words_and_marks(text):
    assert count_tokens(pl.Series([text])).to_list() == [len(re.findall(TOKEN, text))]
