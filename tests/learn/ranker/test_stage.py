from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.data.numbering import renumber
from memlab.data.subset import pool_corpora
from memlab.experiment.harness.sweep import preset
from memlab.learn.fits import evidence_keys, save
from memlab.learn.folds import folds
from memlab.learn.ranker import stage
from memlab.learn.ranker.features import features
from memlab.learn.ranker.model import apply, fit, load
from memlab.learn.ranker.rescore import leading_turns, rescore, session_numbers
from memlab.learn.ranker.stage import LearnedScore, candidates, encoder_digest
from memlab.pipeline.stage import spec_digest
from memlab.pipeline.tables import GOLD, Tables
from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.score import Score
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.learn.ranker.worlds import LEXICAL, RECIPE, first, learned, lives, searched
from tests.stages.search.world import Overlap, WordEmbedder

STORE = Store()


def result(score: LearnedScore, tables: Tables) -> pl.DataFrame:
    return score.run(tables.only(score.reads), STORE)["ranking"]


def test_the_control_of_turns_alone_compares_no_words_of_turns() -> None:
    assert not any("likeness" in name for name in features(first(), 40, alone=True).columns)
    assert not result(learned(alone=True), searched()).equals(result(learned(), searched()))


@pytest.mark.parametrize("depth", [1, 7, 40, 10**6])
def test_a_ranking_is_rescored_as_by_a_join_and_a_sort_whatever_the_order_of_the_scores(depth: int) -> None:
    ranking = first()["ranking"]
    frame = ranking.filter(pl.col("rank") <= depth).select("question", "unit").sample(fraction=1, shuffle=True, seed=3)
    scores = np.random.default_rng(4).normal(size=frame.height).round(1)
    after = rescore(ranking, frame, scores, depth)
    leads = frame["unit"].is_first_distinct().to_numpy() & (frame["question"].to_numpy() == 3)
    leads &= leads.cumsum() == 1
    led = rescore(ranking, frame, scores, depth, leads).filter(question=3)
    assert led["unit"][0] == frame.filter(pl.Series(leads))["unit"][0]
    assert led["unit"][1:].to_list() == [unit for unit in after.filter(question=3)["unit"] if unit != led["unit"][0]]
    assert led["score"][0] > led["score"][1]
    learned_score = ranking.join(frame.with_columns(pl.Series("learned", scores)), on=["question", "unit"], how="left")
    order = learned_score.sort("question", "learned", "rank", descending=[False, True, False], nulls_last=True)
    assert after.select("question", "unit").equals(order.select("question", "unit"))
    assert after["rank"].equals(ranking["rank"])
    assert after.select("question", "unit", "linear").sort("question", "unit").equals(
        ranking.select("question", "unit", "linear").sort("question", "unit"))
    assert after.columns == ranking.columns
    assert after["score"].to_list() == after["score"].round(6).to_list()


def test_a_questions_labels_and_those_of_its_fold_do_not_reach_it() -> None:
    tables = searched()
    fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], 5)
    here = fold_of.filter(pl.col("fold") == 0)["question"]
    ranked = first()["ranking"].filter(pl.col("rank") == 3).join(first()["units"], on="unit")
    moved = tables["evidence"].join(ranked.select("question", pl.col("session").alias("s"),
                                                  pl.col("turns").list.first().alias("t")), on="question", how="left")
    mine = pl.col("question").is_in(here.implode())
    moved = moved.with_columns(pl.when(mine).then("s").otherwise("session").alias("session"),
                               pl.when(mine).then("t").otherwise("turn").alias("turn"))
    moved = moved.select("question", "session", "turn")
    before, after = result(learned(), tables), result(learned(), tables.updated({"evidence": moved}))
    inside = pl.col("question").is_in(here.implode())
    assert before.filter(inside).equals(after.filter(inside))
    assert not before.filter(~inside).equals(after.filter(~inside))


def test_another_numbering_of_questions_changes_nothing() -> None:
    tables = searched()
    numbers = tables["questions"].select("question", number=(pl.col("question") * 7 + 3) % tables["questions"].height)
    swapped = tables.updated({name: renumber(table, "question", numbers).sort("question", maintain_order=True)
                              for name, table in tables.items() if "question" in table.columns})
    before = renumber(result(learned(), tables), "question", numbers).sort("question", "rank")
    assert before.equals(result(learned(), swapped))


def test_in_a_pool_nothing_is_learned_and_the_ranking_by_weights_stays() -> None:
    """Each session is in the haystacks of all folds, so that no fit has a turn to rank evidence against."""
    pool = LEXICAL.run(pool_corpora(lives()), STORE, until="score")
    with pytest.warns(UserWarning, match="4 of 4 fits have nothing to rank evidence against"):
        made = learned(folds=4, by="evidence").run(pool, STORE)
    assert made["notes"]["number"].to_list() == [4]
    assert made["ranking"].select("question", "unit", "rank").equals(
        Score().run(pool, STORE)["ranking"].select("question", "unit", "rank"))


def test_a_saved_fit_reads_no_gold_and_gives_the_scores_of_its_model(tmp_path: Path) -> None:
    frame, label = candidates(first(), 40)
    model = fit(frame, label, 40, RECIPE)
    save(model, tmp_path / "fit.json")
    saved = learned(model=tmp_path / "fit.json", depth=7)
    assert not GOLD & set(saved.reads)
    assert set(learned().reads) & GOLD == {"evidence", "gold"}
    after = result(saved, searched())
    scores = apply(load(tmp_path / "fit.json"), frame)
    leads = leading_turns(frame, session_numbers(frame, first()["units"]), scores)
    expected = rescore(first()["ranking"], frame, scores, 40, leads)
    assert after.equals(expected)


def test_the_score_of_a_reranker_is_a_signal_that_moves_nothing_by_itself_and_that_trees_may_learn_from() -> None:
    reranking = learned(reranker=Rerank(scorer=Overlap(), pool=10, name="judged"))
    with_it, without = reranking.first(searched(), STORE)["ranking"], first()["ranking"]
    assert with_it.drop("judged").equals(without)
    assert with_it.filter(pl.col("judged").is_not_null()).equals(with_it.filter(pl.col("rank") <= 10))
    frame = features(first().updated({"ranking": with_it}), 40)
    assert {"z judged", "rank judged", "below judged", "z judged -1"} <= set(frame.columns)
    made = reranking.run(searched().only(reranking.reads), STORE)
    assert made["importances"]["feature"].str.contains("judged").any()


def test_the_identity_is_that_of_the_fits_content(tmp_path: Path) -> None:
    frame, label = candidates(first(), 40)
    for name, depth in (("a", 40), ("b", 40), ("c", 39)):
        save(fit(frame, label, depth, RECIPE), tmp_path / name)
    a, b, c = (spec_digest(learned(model=tmp_path / name)) for name in "abc")
    assert a == b != c
    assert spec_digest(learned()) not in (a, c)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small fit on the questions of the first two lives, in the place of the one that memlab ships."""
    frame, label = candidates(first(), 40)
    file = tmp_path / "shipped.json"
    learnt = tuple(evidence_keys(first())["key"][:5])
    save(dataclasses.replace(fit(frame, label, 40, RECIPE), learnt=learnt, encoder=encoder_digest(WordEmbedder()),
                             weights={"lexical:turn": 1.0}), file)
    stage.log_once.cache_clear()
    monkeypatch.setattr(stage, "SHIPPED", file)
    return file


def test_the_shipped_fit_is_that_of_its_file_and_says_what_it_has_learned(shipped: Path) -> None:
    mine, loaded = (learned(model=model, encoder=WordEmbedder()) for model in ("shipped", shipped))
    assert result(mine, searched()).equals(result(loaded, searched()))
    assert spec_digest(mine) == spec_digest(loaded)
    assert mine.number_seen(first()) == 5
    assert learned().number_seen(first()) == 0
    assert learned().without_labels() == dataclasses.replace(learned(), model="shipped")


@pytest.mark.parametrize(("settings", "reason"), [
    ({"encoder": WordEmbedder(size=8)}, "another encoder"), ({"level": "session"}, "another unit"),
    ({"weights": {"lexical": 2.0}}, "another set of weights")])
def test_with_what_the_shipped_fit_is_not_of_the_weights_rank_and_a_saved_fit_is_refused(
        settings: dict[str, Any], reason: str, shipped: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = learned(model="shipped", **settings).run(searched(), STORE)
    assert caplog.messages == [f"questions are ranked by weights: the shipped fit is of {reason}"]
    assert made["ranking"].drop("linear").equals(learned(**settings).linear().run(searched(), STORE)["ranking"])
    assert made["notes"].height == 1
    with pytest.raises(MemlabError, match=f"the fit is of {reason}"):
        learned(model=shipped, **settings).run(searched(), STORE)


def test_a_fit_of_other_searches_does_not_rank(shipped: Path, caplog: pytest.LogCaptureFixture) -> None:
    hits = searched()["hits"].with_columns(pl.col("lane").str.replace("turn", "round"))
    learned(model="shipped").run(searched().updated({"hits": hits}), STORE)
    assert "another set of searches" in caplog.text


def test_memlabs_own_fit_is_of_the_searches_and_the_encoder_of_best() -> None:
    score, own = preset("system=best").score, load(stage.SHIPPED)
    here = score.encoder(), score.weights, False  # type: ignore[attr-defined]
    assert (own.encoder, own.weights, own.recipe.home) == here
    assert stage.SHIPPED.stat().st_size < 2**20
    card = (Path(__file__).parents[3] / "docs" / "ranking_fit.md").read_text(encoding="utf-8")
    assert hashlib.sha256(stage.SHIPPED.read_bytes()).hexdigest() in card
