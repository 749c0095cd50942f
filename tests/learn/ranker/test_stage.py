from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab import run
from memlab.data.numbering import renumber
from memlab.errors import MemlabError
from memlab.harness.arm import refusal
from memlab.harness.results import read_arm
from memlab.learn.folds import folds
from memlab.learn.ranker.model import apply, fit, load, save
from memlab.learn.ranker.stage import LearnedScore, candidates, rescored
from memlab.rank.score import Score
from memlab.stage import spec_digest
from memlab.store import Store
from memlab.tables import GOLD, Tables
from tests.learn.ranker.worlds import LEXICAL, RECIPE, first, learned, lives, searched
from tests.small import words

STORE = Store()


def result(stage: LearnedScore, tables: Tables) -> pl.DataFrame:
    return stage.run(tables.only(stage.reads), STORE)["ranking"]


def test_the_linear_score_and_every_lane_stay_as_signals_and_no_turn_is_lost() -> None:
    before = Score().run(searched(), STORE)["ranking"]
    after = result(learned(), searched())
    assert set(after.columns) == {*before.columns, "linear"}
    key = ["question", "unit"]
    kept = after.select(*key, pl.col("linear").alias("score"), "lexical:turn").sort(key)
    assert kept.equals(before.select(*key, "score", "lexical:turn").sort(key))


def test_turns_beyond_the_depth_keep_their_order_behind_the_head() -> None:
    after = result(learned(), searched())
    deep = after.filter(pl.col("rank") > 40).with_columns(
        pl.col("linear").rank("ordinal", descending=True).over("question").alias("was"))
    assert deep.height
    assert deep.group_by("question", maintain_order=True).agg(pl.col("linear").diff().max() <= 0)["linear"].all()
    head = after.filter(pl.col("rank") <= 40).group_by("question").agg(pl.col("linear").min().alias("lowest"))
    assert deep.join(head, on="question").select((pl.col("linear") <= pl.col("lowest")).all()).item()
    assert after.group_by("question", maintain_order=True).agg(pl.col("score").diff().max() <= 0)["score"].all()


def test_equal_scores_keep_the_order_of_the_linear_score() -> None:
    ranking = first()["ranking"]
    frame = ranking.filter(pl.col("rank") <= 40).select("question", "unit")
    same = rescored(ranking, frame, np.zeros(frame.height), 40)
    assert same.select("question", "unit", "rank").equals(ranking.select("question", "unit", "rank"))


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


def test_a_saved_fit_reads_no_gold_and_gives_the_scores_of_its_model(tmp_path: Path) -> None:
    frame, label = candidates(first(), 40)
    model = fit(frame, label, 40, RECIPE)
    save(model, tmp_path / "fit.json")
    stage = learned(model=tmp_path / "fit.json", depth=7)
    assert not GOLD & set(stage.reads)
    assert set(learned().reads) & GOLD == {"evidence", "gold"}
    after = result(stage, searched())
    expected = rescored(first()["ranking"], frame, apply(load(tmp_path / "fit.json"), frame), 40)
    assert after.equals(expected)


def test_the_identity_is_that_of_the_fits_content(tmp_path: Path) -> None:
    frame, label = candidates(first(), 40)
    for name, depth in (("a", 40), ("b", 40), ("c", 39)):
        save(fit(frame, label, depth, RECIPE), tmp_path / name)
    a, b, c = (spec_digest(learned(model=tmp_path / name)) for name in "abc")
    assert a == b != c
    assert spec_digest(learned()) not in (a, c)


def test_a_damaged_fit_is_named_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "fit.json").write_text("{}")
    with pytest.raises(MemlabError, match="is not a ranking model"):
        LearnedScore(model=tmp_path / "fit.json")


def test_shards_have_not_all_questions() -> None:
    assert "learns from all questions" in str(refusal(LEXICAL.replace(score=LearnedScore())))


def test_the_command_cross_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(words(tmp_path, "rank/score=learned", "rank.score.recipe.trees=3", "rank.score.depth=20")) == 0
    manifests = list((tmp_path / "runs").rglob("ranking.parquet"))
    assert "linear" in pl.read_parquet(manifests[0]).columns
    folder = manifests[0].parent
    shown = json.loads((folder / "manifest.json").read_text())["importances"]
    assert 0 < len(shown) <= 20
    assert set(shown[0]) == {"feature", "gain", "share"}
    assert 0 < sum(row["share"] for row in shown) <= 1.001
    reasons = read_arm(folder).reasons
    assert reasons is not None
    assert set(reasons["question"]) == set(pl.read_parquet(manifests[0])["question"])


def test_lives_have_labels() -> None:
    frame, label = candidates(first(), 40)
    evidence = lives()["evidence"].filter(pl.col("turn").is_not_null())
    assert 0 < label.sum() <= evidence.height
    assert frame.group_by("question").len()["len"].max() == 40
