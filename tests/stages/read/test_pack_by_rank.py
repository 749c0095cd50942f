"""Every pack: what is shown, in which order, and within which budget."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import Tables
from memlab.stages.read.pack import ByDate, ByRank, FullContext
from memlab.stages.read.prompt import render_units
from memlab.stages.write.chunk import RoundChunker
from memlab.store import Store
from tests.stages.read.world import shown, tokens, world, worlds
from tests.stages.write.conversations import DAY, talk

STORE = Store()
TALK = [[("user", "a0"), ("assistant", "a1"), ("user", "a2")], [("user", "b0")], [("user", "c0"), ("assistant", "c1")]]
# units: a0 = 0, a1 = 1, a2 = 2, b0 = 3, c0 = 4, c1 = 5
D0, D1, D2 = "[2023-05-20]\n", "[2023-05-21]\n", "[2023-05-22]\n"
PACKS = [ByRank, lambda **more: ByRank(stop_at_overflow=True, **more), ByDate]


def packed(pack, tables: Tables, question: int = 0) -> list[str]:
    out = pack.run(tables.only(pack.reads), STORE)
    return shown(tables.updated(out), question)


def test_by_date_is_the_order_of_the_talk() -> None:
    tables = world(TALK, [5, 0, 3, 2], selected=3)
    assert packed(ByRank(), tables) == [D2 + "assistant: c1", D0 + "user: a0", D1 + "user: b0"]
    assert packed(ByRank(), tables.updated({"ranking": tables["ranking"].reverse()})) == packed(ByRank(), tables)
    assert packed(ByDate(), tables) == [D0 + "user: a0", D1 + "user: b0", D2 + "assistant: c1"]
    assert ByDate().run(tables, STORE)["context"]["unit"].to_list() == [5, 0, 3]  # rows: best first


def test_by_date_sets_what_has_no_date_first() -> None:
    tables = world(TALK, [0, 3])
    blank = tables["sessions"].with_columns(pl.when(pl.col("session") != 1).then("said_on").alias("said_on"))
    assert packed(ByDate(), tables.updated({"sessions": blank})) == ["user: b0", D0 + "user: a0"]


def test_filling_passes_over_what_does_not_fit_or_stops_there() -> None:
    tables = world([[("user", "a"), ("user", "long " * 20), ("user", "c"), ("user", "d")]], [0, 1, 2, 3])
    room = tokens(D0 + "user: a") * 2
    assert packed(ByRank(max_tokens=room), tables) == [D0 + "user: a", D0 + "user: c"]
    assert packed(ByRank(max_tokens=room, stop_at_overflow=True), tables) == [D0 + "user: a"]
    assert packed(ByRank(max_tokens=room * 9, stop_at_overflow=True), tables) == packed(ByRank(), tables)
    assert packed(ByRank(max_tokens=1, stop_at_overflow=True), tables) == []


def test_rounds_are_those_of_the_chunker() -> None:
    sessions = [[("assistant", "z"), ("user", "a"), ("assistant", "b"), ("assistant", "c"), ("user", "d")],
                [("user", "e", "Ann"), ("user", "f", "Bob"), ("user", "g", "Ann")], [("assistant", "h")]]
    tables = world(sessions, range(9))  # type: ignore[arg-type]
    made = RoundChunker().run(talk(*sessions), STORE)  # type: ignore[arg-type]
    of_turn = made["memories"].explode("turns").join(made["texts"], left_on="value_id", right_on="text_id")
    ours = render_units(tables["units"], tables, "round").sort("unit")["text"].str.split_exact("]\n", 1).struct[1]
    assert ours.to_list() == of_turn.sort("session", "turns")["text"].to_list()
    assert len(packed(ByRank(value="round"), tables)) == made["memories"].height  # each round once
    assert packed(ByRank(value="round"), world(TALK, [5, 4])) == [D2 + "user: c0\n\nassistant: c1"]


def test_everything_is_all_sessions_up_to_the_day() -> None:
    tables = world(TALK, [], asked=[("A?", DAY + timedelta(days=1, hours=-9)), ("B?", DAY + timedelta(days=9)),
                                    ("C?", None), ("D?", DAY - timedelta(days=1))])
    a, b, c = D0 + "user: a0\n\nassistant: a1\n\nuser: a2", D1 + "user: b0", D2 + "user: c0\n\nassistant: c1"
    assert packed(FullContext(), tables, 0) == [a, b]  # said later on the day of the question: seen
    assert packed(FullContext(), tables, 1) == packed(FullContext(), tables, 2) == [a, b, c]
    assert packed(FullContext(), tables, 3) == []
    rows = FullContext().run(tables.only(FullContext.reads), STORE)["context"].filter(pl.col("question") == 1)
    assert rows["unit"].to_list() == [4, 3, 0]  # rows: the newest first; a session is named by its first unit
    no_units = tables.updated({"units": tables["units"].filter(pl.col("session") != 1)})
    rows = FullContext().run(no_units, STORE)["context"].filter(pl.col("question") == 1)
    assert rows["unit"].to_list() == [4, None, 0]


def test_everything_keeps_the_newest() -> None:
    tables = world(TALK)
    cost = [tokens(t) for t in packed(FullContext(), tables)]
    a, b, c = packed(FullContext(), tables)
    assert packed(FullContext(max_tokens=sum(cost)), tables) == [a, b, c]
    assert packed(FullContext(max_tokens=sum(cost) - 1), tables) == [b, c]
    assert packed(FullContext(max_tokens=cost[2] + cost[1] - 1), tables) == [c]  # not even where a later one would fit
    assert packed(FullContext(max_tokens=cost[2] - 1), tables) == [D2 + "assistant: c1"]
    assert FullContext(max_tokens=cost[2] - 1).run(tables, STORE)["context"]["unit"].to_list() == [5]
    assert packed(FullContext(max_tokens=tokens(D2)), tables) == []


@given(worlds(), st.integers(1, 120) | st.none(), st.sampled_from(PACKS), st.sampled_from(["turn", "round", "session"]))
def test_no_unit_twice_and_never_above_the_budget(tables: Tables, most: int | None, pack, value: str) -> None:
    out = pack(value=value, max_tokens=most).run(tables, STORE)
    context, selected = out["context"], tables["ranking"].filter("selected")
    texts = shown(tables.updated(out))
    assert context["unit"].n_unique() == context.height == len(set(texts))
    assert set(context["unit"]) <= set(selected["unit"])
    assert most is None or context["tokens"].sum() <= most
    if most is None:
        whole = "\n".join(texts)
        said = {f"word{s}x{t}" for s, t in tables["units"].join(selected, on="unit").select(
            "session", pl.col("turns").list.first()).iter_rows()}
        assert all(word in whole for word in said)
        assert all(whole.count(line) == 1 for line in {t.removeprefix(D0) for t in texts})


@given(worlds(), st.integers(-1, 6), st.integers(1, 150) | st.none())
def test_everything_respects_day_and_budget(tables: Tables, day: int, most: int | None) -> None:
    asked = tables["questions"].with_columns(pl.lit(DAY + timedelta(days=day)).alias("asked_on"))
    out = FullContext(max_tokens=most).run(tables.updated({"questions": asked}), STORE)
    context = out["context"]
    placed = context.join(tables["units"], on="unit").join(tables["sessions"], on=["corpus", "session"])
    assert placed.sort("position")["session"].is_sorted()
    assert all(said.date() <= (DAY + timedelta(days=day)).date() for said in placed["said_on"])
    assert placed["session"].n_unique() == context.height
    seen = min(max(day + 1, 0), tables["sessions"].height)
    if most is None:
        assert context.height == seen
    else:
        assert context["tokens"].sum() <= most
        assert placed["session"].sort().to_list() == list(range(seen - context.height, seen))  # the newest, no gap
