from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from memlab.experiment.harness.sweep import run_pipeline
from memlab.learn import probability
from memlab.learn.fits import save
from memlab.learn.folds import folds
from memlab.memory.memory import Memory, Session
from memlab.pipeline.tables import Tables, frame
from memlab.stages.rank.score import Score
from memlab.stages.read.tokens import TokenCost
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.paths import shipped_path
from tests.learn.ranker.worlds import learned, searched
from tests.learn.worlds import world
from tests.small import lexical, lives

STORE = Store()


def estimated(tables: Tables, **options) -> pl.DataFrame:
    stage = probability.CrossFitProbability(**{"depth": 12, **options})
    return stage.run(tables.only(stage.reads), STORE)["ranking"]


def test_each_unit_up_to_the_depth_has_a_probability_that_follows_the_chance_that_was_drawn_with() -> None:
    tables = world(questions=400)
    ranking = estimated(tables)
    assert ranking.drop("probability").equals(tables["ranking"])
    near = ranking.filter(pl.col("rank") <= 12)
    truth = 1 / (1 + np.exp(3 - 2 * near["score"].to_numpy()))
    assert np.abs(near["probability"].to_numpy() - truth).mean() < .05
    assert ranking.filter(pl.col("rank") > 12)["probability"].null_count() == 400 * 3


def test_labels_are_known_turns_of_questions_that_count() -> None:
    tables = world(questions=6)
    tables = tables.updated({"gold": tables["gold"].with_columns(scored=pl.col("question") != 2)})
    rows = probability.labels(tables["ranking"].select("question", "unit"), tables)
    held = set(rows.filter(pl.col("held") == 1).select("question", "unit").rows())
    expected = {(q, 15 * q + 5 * s + t) for q, s, t in tables["evidence"].rows() if q != 2}
    assert held == expected
    assert 2 not in rows["question"]
    whole = tables.updated({"evidence": tables["evidence"].with_columns(turn=pl.lit(None, pl.Int32))})
    held = probability.labels(tables["ranking"].select("question", "unit"), whole).filter(pl.col("held") == 1)
    assert set(held["unit"] // 5) == {unit // 5 for _, unit in expected}


def test_a_ranking_that_is_not_measured_or_has_no_evidence_is_refused_and_an_empty_one_is_empty() -> None:
    tables = world(questions=20)
    with pytest.raises(MemlabError, match="no ranked unit is evidence"):
        estimated(tables.updated({"evidence": tables["evidence"].head(0)}))
    with pytest.raises(MemlabError, match="no column 'tokens'"):
        estimated(tables.updated({"ranking": tables["ranking"].drop("tokens")}))
    assert estimated(tables.updated({"ranking": tables["ranking"].head(0)})).height == 0


def test_a_questions_own_label_changes_neither_its_probability_nor_its_threshold() -> None:
    tables = world(questions=30)
    tables = tables.updated({"gold": tables["gold"].with_columns(scored=pl.col("question") != 20)})
    stage = probability.CrossFitProbability(depth=12)
    assert estimated(tables).filter(question=20, rank=1)["probability"].null_count() == 0  # estimated, not fitted on
    before = stage.value_units(tables, "share", 1).sort("question", "rank")
    for mine in tables["evidence"]["question"].unique().sort()[:2]:
        own = pl.col("question") == mine
        moved = tables["evidence"].with_columns(pl.when(own).then((pl.col("turn") + 1) % 5).otherwise("turn")
                                                .cast(pl.Int32).alias("turn"))
        after = stage.value_units(tables.updated({"evidence": moved}), "share", 1).sort("question", "rank")
        columns = ["unit", "probability", "value", "shown_from"]
        assert after.filter(own).select(columns).equals(before.filter(own).select(columns))
        assert not after.equals(before)  # but it does change those of other folds


pytest.importorskip("lightgbm")

RANKER = learned(folds=4)
NESTED = probability.NestedProbability(ranker=RANKER, folds=4, depth=30)


def ranked(tables: Tables) -> Tables:
    """The ranking of the learned fusion, with its tokens."""
    whole = tables.updated(RANKER.run(tables.only(RANKER.reads), STORE))
    return whole.updated(TokenCost().run(whole.only(TokenCost.reads), STORE))


def estimates(stage: probability.CrossFitProbability, tables: Tables) -> pl.DataFrame:
    return stage.run(tables.only(stage.reads), STORE)["ranking"].select("question", "unit", "probability")


def test_no_label_of_a_fold_reaches_its_estimates_and_without_nesting_they_do() -> None:
    tables = searched()
    fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], 4)
    own = fold_of.filter(pl.col("fold") == 1)
    here = pl.col("question").is_in(own["question"].implode())
    moved = tables.updated({"evidence": tables["evidence"].with_columns(
        pl.when(here).then(0).otherwise("turn").cast(pl.Int32).alias("turn"))})
    one, two = ranked(tables), ranked(moved)
    plain = probability.CrossFitProbability(folds=4, depth=30)
    assert estimates(NESTED, one).filter(here).equals(estimates(NESTED, two).filter(here))
    assert not estimates(plain, one).filter(here).equals(estimates(plain, two).filter(here))
    assert not estimates(NESTED, one).equals(estimates(NESTED, two))  # other folds do learn from it


def test_other_folds_a_saved_ranker_and_other_rankings_are_refused() -> None:
    with pytest.raises(ValidationError, match="folds, by and seed differ"):
        probability.NestedProbability(ranker=RANKER, folds=3)
    with pytest.raises(ValidationError, match="LearnedScore"):
        probability.NestedProbability(ranker=Score(), folds=4)
    tables = searched()
    linear = tables.updated(Score().run(tables, STORE))
    measured = linear.updated(TokenCost().run(linear.only(TokenCost.reads), STORE))
    with pytest.raises(MemlabError, match="no column 'linear'"):
        estimates(NESTED, measured)
    few = probability.NestedProbability(ranker=learned(folds=2), folds=2)
    with pytest.raises(MemlabError, match="2 folds leave no data"):
        estimates(few, ranked(tables))


FITTED = probability.CrossFitProbability(depth=12)


def chosen(tables: Tables, **options) -> pl.DataFrame:
    rule = probability.Marginal(probability=FITTED, **options)
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


def test_behind_the_gate_a_question_without_a_likely_unit_shows_nothing_and_others_as_before() -> None:
    tables = world(questions=40)
    open_, shut = chosen(tables, tokens=100), chosen(tables, tokens=100, gate=.5)
    likely = pl.col("probability").max().over("question") > .5
    assert 0 < open_.filter(likely)["question"].n_unique() < 40
    assert shut["selected"].equals(open_.select(pl.col("selected") & likely).to_series())


def test_reliability_by_hand() -> None:
    ranking = frame("ranking", {"question": [0, 0, 1, 1], "unit": [0, 1, 15, 16], "score": [2.0, 1.0, 2.0, 1.0],
                                "rank": [1, 2, 1, 2], "selected": [False] * 4, "probability": [.9, .2, .3, .7]})
    tables = world(questions=2).updated({"evidence": frame("evidence", {
        "question": [0, 1], "session": [0, 0], "turn": [0, 4]})})
    assert probability.reliability(ranking, tables, bins=2).rows() == [
        (0.0, .5, 2, pytest.approx(.25), 0.0), (.5, 1.0, 2, pytest.approx(.8), .5)]
    assert probability.reliability(ranking, tables, bins=2, deepest=1)["n"].to_list() == [1, 1]


def test_a_live_memory_selects_by_a_saved_fit_and_by_the_shipped_one_in_place_of_a_cross_fit(tmp_path: Path) -> None:
    save(probability.fit_tables(lexical().run(lives(lives=4).load(), Store())), tmp_path / "fit.json")
    said = [[("user", f"I bought plant number {day}, a fern."), ("assistant", "Nice!")] for day in range(1, 20)]
    sessions = [Session(f"2023-05-{day:02}", turns) for day, turns in enumerate(said, 1)]
    for estimate in (probability.LoadedProbability(path=tmp_path / "fit.json"), FITTED):
        shown = {}
        for tokens in (20, 500):
            rule = probability.Marginal(probability=estimate, tokens=tokens)
            with Memory(tmp_path / type(estimate).__name__, lexical(select=rule)) as memory:
                memory.add_many(sessions if not len(memory) else ())
                shown[tokens] = memory.search("Which plants did I buy?", now="2023-06-01")["text"].to_list()
        assert 1 <= len(shown[20]) < len(shown[500])
        assert "plant number" in shown[20][0]
        with Memory(memory.folder, lexical(select=probability.Marginal(probability=estimate, gate=.99))) as memory:
            assert str(memory.search("Which plants did I buy?", now="2023-06-01", k=3)) == "nothing relevant was found"


def test_the_shipped_fits_refuse_another_ranking_with_the_line_that_makes_a_fit() -> None:
    tables = world()
    own = probability.LoadedProbability()
    assert all(own.fit_of(model.kind) == model for model in own.fits())
    assert own.fit_of(["dense:turn", "lexical:turn", "units of level turn"]) != own.fit_of(["late:turn.user"])
    for file in own.files():
        assert hashlib.sha256(file.read_bytes()).hexdigest() in (shipped_path("docs") / "marginal_fit.md").read_text()
    with pytest.raises(MemlabError, match=r"no saved fit here is of a ranking by .*units of level turn.*\(memlab train "
                                          r"probability file=FIT.json\), then give learn/probability=loaded"):
        own.run(tables.updated({"ranking": tables["ranking"].with_columns(walks=1.0)}), STORE)


def test_a_fit_of_several_data_sets_is_that_of_all_their_questions(tmp_path: Path) -> None:
    one, other = world(questions=30), world(questions=30, seed=1)
    both, first, second = (probability.fit_tables(*parts, depth=12) for parts in ((one, other), (one,), (other,)))
    assert set(both.learnt) == {*first.learnt, *second.learnt}
    assert both.weights != pytest.approx(first.weights)
    assert probability.fit_tables(other, one, depth=12).weights == pytest.approx(both.weights)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_with_a_fit_of_its_own_questions_is_marked_and_no_candidate(tmp_path: Path, seed: int) -> None:
    small = lives(lives=2)
    save(probability.fit_tables(lexical().run(small.load(), Store()), depth=12), tmp_path / "fit.json")
    rule = probability.Marginal(probability=probability.LoadedProbability(path=tmp_path / "fit.json"))
    folder = run_pipeline(lexical(select=rule), replace(small, seed=small.seed + seed), "loaded", out=tmp_path,
                          store=Store(tmp_path / "store"))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["tainted"] == (seed == 0)
    assert any("learned by a saved fit" in what for what in manifest["told"]) == (seed == 0)


@pytest.mark.parametrize("p", [.3, .6, .9])
def test_the_shown_units_hold_the_share_of_expected_evidence(p) -> None:
    tables = world()
    rule = probability.CalibratedTopP(probability=probability.CrossFitProbability(depth=12), p=p)
    ranking = rule.run(tables.only(rule.reads), STORE)["ranking"].drop_nulls("probability")
    chance = pl.col("probability")
    rows = ranking.group_by("question").agg(
        chance.sum().alias("expected"), chance.filter("selected").sum().alias("held"),
        chance.filter("selected").min().alias("least"), chance.filter(~pl.col("selected")).max().alias("best_left_out"))
    assert rows.select((pl.col("held") >= p * pl.col("expected") - 1e-6).all()).item()
    assert rows.select((pl.col("held") - pl.col("least") < p * pl.col("expected") + 1e-6).all()).item()
    assert rows.select((pl.col("least") >= pl.col("best_left_out")).all()).item()
