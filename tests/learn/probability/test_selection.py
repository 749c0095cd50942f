from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab import run
from memlab.errors import MemlabError
from memlab.learn.probability.__main__ import main
from memlab.learn.probability.model import save
from memlab.learn.probability.selection import Marginal, reliability
from memlab.learn.probability.stage import CrossFitProbability, LoadedProbability, fit_tables
from memlab.memory import Memory, Session
from memlab.store import Store
from memlab.tables import Tables, frame
from tests.learn.probability.worlds import world
from tests.small import lexical, lives

STORE = Store()
FITTED = CrossFitProbability(depth=12)


def chosen(tables: Tables, **options) -> pl.DataFrame:
    rule = Marginal(probability=FITTED, **options)
    return rule.run(tables.only(rule.reads), STORE)["ranking"]


@pytest.mark.parametrize("shown", ["threshold", "budget"])
@pytest.mark.parametrize("value", ["unit", "token", "share"])
def test_both_ways_spend_the_budget(value, shown) -> None:
    tables = world(questions=200)
    ranking = chosen(tables, tokens=150, value=value, shown=shown)
    spent = ranking.filter("selected").group_by("question").agg(pl.col("tokens").sum())["tokens"]
    assert len(spent) == 200  # at least one unit for every question
    assert spent.mean() == pytest.approx(150 if shown == "threshold" else 145, abs=12)
    assert (spent.max() > 200) == (shown == "threshold")
    assert ranking.select(tables["ranking"].columns).drop("selected").equals(tables["ranking"].drop("selected"))


def test_one_threshold_orders_the_units_of_all_questions_of_a_fold() -> None:
    ranking = chosen(world(), tokens=100, value="unit").drop_nulls("probability")
    skipped = ranking.filter(~pl.col("selected")).join(
        ranking.filter("selected").group_by("question").agg(pl.col("rank").max().alias("deepest")), on="question")
    assert skipped.filter(pl.col("rank") < pl.col("deepest")).height > 0  # units inside the ranking are skipped
    of_value = ranking.filter(pl.col("shown_from") > 0).sort("value", descending=True)
    assert of_value.group_by("question", maintain_order=True).agg(
        pl.col("shown_from").is_sorted())["shown_from"].all()


def test_min_k_units_are_shown_whatever_their_value() -> None:
    tables = world(questions=40)
    assert chosen(tables, tokens=1, min_k=3)["selected"].sum() == 40 * 3


def test_a_saved_fit_needs_no_gold_and_a_cross_fit_does(tmp_path: Path) -> None:
    save(fit_tables(world(), depth=12), tmp_path / "fit.json")
    assert {"gold", "evidence"} <= set(Marginal(probability=FITTED).reads)
    rule = Marginal(probability=LoadedProbability(path=tmp_path / "fit.json"), tokens=100)
    assert not {"gold", "evidence", "ids"} & set(rule.reads)
    other = world(seed=1)
    spent = rule.run(other.only(rule.reads), STORE)["ranking"].filter("selected")["tokens"].sum() / 80
    assert spent == pytest.approx(100, abs=15)  # data of the same kind


def test_reliability_by_hand() -> None:
    ranking = frame("ranking", {"question": [0, 0, 1, 1], "unit": [0, 1, 15, 16], "score": [2.0, 1.0, 2.0, 1.0],
                                "rank": [1, 2, 1, 2], "selected": [False] * 4, "probability": [.9, .2, .3, .7]})
    tables = world(questions=2).updated({"evidence": frame("evidence", {
        "question": [0, 1], "session": [0, 0], "turn": [0, 4]})})
    assert reliability(ranking, tables, bins=2).rows() == [
        (0.0, .5, 2, pytest.approx(.25), 0.0), (.5, 1.0, 2, pytest.approx(.8), .5)]
    assert reliability(ranking, tables, bins=2, deepest=1)["n"].to_list() == [1, 1]


def test_a_saved_fit_is_applied_by_the_command_that_names_it(tmp_path: Path) -> None:
    lives = ["data.lives=4", "data.questions=6", "data.sessions=8", "search/dense=none", f"store={tmp_path / 'store'}"]
    assert main([f"file={tmp_path / 'fit.json'}", *lives]) == 0
    assert run.main([*lives, "rank/select=marginal", "learn/probability=loaded", f"out={tmp_path}", "track=none",
                     f"learn.probability.path={tmp_path / 'fit.json'}", "name=transferred"]) == 0
    folder, = tmp_path.glob("single/*/transferred-*")
    assert {"probability", "value", "shown_from"} <= set(pl.read_parquet(folder / "ranking.parquet").columns)
    assert main(lives) == 2


def test_a_live_memory_selects_by_a_saved_fit_and_refuses_a_cross_fit(tmp_path: Path) -> None:
    save(fit_tables(lexical().run(lives(lives=4).load(), Store())), tmp_path / "fit.json")
    fitted = LoadedProbability(path=tmp_path / "fit.json")
    said = [[("user", f"I bought plant number {day}, a fern."), ("assistant", "Nice!")] for day in range(1, 20)]
    sessions = [Session(f"2023-05-{day:02}", turns) for day, turns in enumerate(said, 1)]
    shown = {}
    for tokens in (20, 500):
        with Memory(tmp_path / "memory", lexical(select=Marginal(probability=fitted, tokens=tokens))) as memory:
            for session in sessions if not len(memory) else ():
                memory.add(session)
            shown[tokens] = memory.search("Which plants did I buy?", now="2023-06-01")["text"].to_list()
    assert 1 <= len(shown[20]) < len(shown[500])
    assert "plant number" in shown[20][0]
    with pytest.raises(MemlabError, match="choose a technique there that needs no labels"):
        Memory(tmp_path / "other", lexical(select=Marginal(probability=FITTED)))
