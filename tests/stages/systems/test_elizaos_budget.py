from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.pipeline.tables import Tables
from memlab.stages.systems.elizaos import BudgetShares
from memlab.store import Store
from tests.stages.read.world import shown, tokens, world, worlds
from tests.stages.write.conversations import DAY

TALK = [[("user", "a0"), ("assistant", "a1"), ("user", "a2")], [("user", "b0")], [("user", "c0"), ("assistant", "c1")]]
# units: a0 = 0, a1 = 1, a2 = 2, b0 = 3, c0 = 4, c1 = 5
D0, D1, D2 = "[2023-05-20]\n", "[2023-05-21]\n", "[2023-05-22]\n"
HEAD, LINE = tokens(D0), tokens("user: a0")


def windows(room: int, history: float, retrieved: float, **more) -> BudgetShares:
    return BudgetShares(budget=room + 30, system=20, message=10, history=history, retrieved=retrieved, **more)


def context(stage: BudgetShares, tables: Tables) -> pl.DataFrame:
    return stage.run(tables.only(stage.reads), Store())["context"]


def packed(stage: BudgetShares, tables: Tables, question: int = 0) -> list[str]:
    return shown(tables.updated(stage.run(tables.only(stage.reads), Store())), question)


def test_retrieved_by_rank_then_the_last_turns_in_the_order_of_time() -> None:
    tables = world(TALK, [1, 0])
    stage = windows(100, .5, .5)
    found = [D0 + "assistant: a1", D0 + "user: a0"]
    talk = [D0 + "user: a0\n\nassistant: a1\n\nuser: a2", D1 + "user: b0", D2 + "user: c0\n\nassistant: c1"]
    assert packed(stage, tables) == found + talk
    rows = context(stage, tables)  # what must stay first: the oldest history gives way first
    assert rows["unit"].to_list() == [1, 0, 4, 3, 0]


def test_history_stops_at_the_first_turn_that_does_not_fit() -> None:
    tables = world([[("user", "a"), ("user", "long " * 30)], [("user", "b"), ("user", "c")]])
    newest = HEAD + 2 * tokens("user: b")
    assert packed(windows(newest, 1.0, 0.0), tables) == [D1 + "user: b\n\nuser: c"]
    assert packed(windows(newest + 20, 1.0, 0.0), tables) == [D1 + "user: b\n\nuser: c"]  # a would fit
    assert packed(windows(newest - 1, 1.0, 0.0), tables) == [D1 + "user: c"]
    assert packed(windows(HEAD, 1.0, 0.0), tables) == []
    all_of_it = HEAD * 2 + 3 * tokens("user: b") + tokens("user: " + "long " * 30)
    assert len(packed(windows(all_of_it, 1.0, 0.0), tables)) == 2
    assert packed(windows(all_of_it - 1, 1.0, 0.0), tables)[0] == D0 + "user: " + "long " * 30  # without a


def test_filling_with_what_was_retrieved_stops_or_passes_over() -> None:
    tables = world([[("user", "a"), ("user", "long " * 20), ("user", "c")]], [0, 1, 2])
    room = tokens(D0 + "user: a") * 2
    assert packed(windows(room, 0.0, 1.0), tables) == [D0 + "user: a"]
    assert packed(windows(room, 0.0, 1.0, stop_at_overflow=False), tables) == [D0 + "user: a", D0 + "user: c"]


def test_history_is_as_of_the_day_of_the_question() -> None:
    days = [DAY + timedelta(days=1, hours=-9), DAY - timedelta(days=1), None]
    tables = world(TALK, [], asked=[(f"{n}?", day) for n, day in enumerate(days)])
    stage = windows(100, 1.0, 0.0)
    assert packed(stage, tables, 0) == [D0 + "user: a0\n\nassistant: a1\n\nuser: a2", D1 + "user: b0"]
    assert packed(stage, tables, 1) == []
    assert len(packed(stage, tables, 2)) == 3


def test_shares_and_budget_must_leave_something() -> None:
    with pytest.raises(ValidationError, match="more than the whole"):
        BudgetShares(history=.8, retrieved=.3)
    with pytest.raises(ValidationError, match="spent on system prompt"):
        BudgetShares(budget=2500)


@given(worlds(), st.integers(1, 200), st.sampled_from([0.0, .3, .5]), st.booleans(), st.integers(-1, 5))
def test_no_share_is_overdrawn_and_history_has_no_holes(tables: Tables, room: int, share: float, stop: bool,
                                                        day: int) -> None:
    asked = tables["questions"].with_columns(pl.lit(DAY + timedelta(days=day)).alias("asked_on"))
    tables = tables.updated({"questions": asked})
    stage = windows(room, share, .5, stop_at_overflow=stop)
    assert sum(tokens(t) for t in packed(stage, tables)) <= room
    history = "\n\n".join(packed(windows(room, 1.0, 0.0), tables)).split()
    said = [w for w in history if w.startswith("word")]
    seen = tables["turns"].join(tables["sessions"], on=["corpus", "session"]).filter(
        pl.col("said_on").dt.date() <= (DAY + timedelta(days=day)).date()).sort("session", "turn")
    words = seen.join(tables["texts"], on="text_id")["text"].str.split(" ").list.first()
    order = list(dict.fromkeys(said))
    assert order == words.to_list()[len(words) - len(order):]
