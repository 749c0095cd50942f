from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from memlab.learn.ranker.explain import SESSIONS, TOP, importances, reasons
from memlab.learn.ranker.model import apply, leads
from memlab.pipeline.tables import Tables
from memlab.store import Store
from tests.learn.ranker.worlds import RECIPE, learnable, learned, searched


def result(**settings: object) -> Tables:
    stage = learned(**settings)
    return stage.run(searched().only(stage.reads), Store())


def ranked(scores: np.ndarray, frame: pl.DataFrame) -> pl.DataFrame:
    place = pl.col("score").rank("ordinal", descending=True).over("question").cast(pl.Int32)
    return frame.select("question", "unit", pl.Series("score", scores)).with_columns(place.alias("rank"))


def units(frame: pl.DataFrame) -> pl.DataFrame:
    """Unit n is turn n of session n + 100."""
    return frame.select("unit", (pl.col("unit") + 100).cast(pl.Int32).alias("session"),
                        pl.concat_list(pl.col("unit").cast(pl.Int32)).alias("turns"))


def test_reasons_add_up_to_the_lead_of_the_first_turn() -> None:
    rows = learnable()
    frame = rows.frame.with_columns(pl.col("question", "unit").cast(pl.Int32))
    fits = rows.crossfit(20, RECIPE)
    scores = np.zeros(frame.height)
    for mine, model in fits:
        scores[mine] = apply(model, frame.filter(mine))
    ranking = ranked(scores, frame)
    table = reasons(ranking, units(frame), frame, fits)
    for question in (0, 1, 2, 59):
        mine = ranking.filter(pl.col("question") == question).sort("rank").head(2)
        one, two = mine["unit"].to_list()
        shown = table.filter(pl.col("question") == question)
        assert shown.select("session", "turn", "other_session", "other_turn").unique().rows() == [
            (one + 100, one, two + 100, two)]
        assert shown["contribution"].sum() == pytest.approx(mine["score"][0] - mine["score"][1], abs=1e-5)
        (model,) = (model for rows, model in fits if rows[one])
        parts = leads(model, frame[[one]], frame[[two]])[0]
        for feature, value, other, contribution in shown.drop_nulls("feature").select(
                "feature", "value", "other_value", "contribution").iter_rows():
            at = model.features.index(feature)
            assert (value, other) == (frame[feature][one], frame[feature][two])
            assert contribution == pytest.approx(parts[at], abs=1e-5)


def test_a_run_has_the_largest_five_of_each_question_then_the_rest() -> None:
    made = result()
    table, top = made["reasons"], made["ranking"].filter(pl.col("rank") == 1)
    assert set(table["question"]) == set(top["question"])
    places = top.join(made["units"], on="unit").select(
        "question", "session", pl.col("turns").list.first().alias("turn"))
    assert table.unique("question").join(places, on=["question", "session", "turn"]).height == places.height
    for _, rows in table.group_by("question"):
        assert 1 <= rows.height <= TOP + 1 + (rows["feature"][0] == SESSIONS)
        assert rows["feature"].is_null().to_list() == [False] * (rows.height - 1) + [True]
        sizes = rows.filter(pl.col("feature") != SESSIONS)["contribution"].abs().to_list()
        assert sizes == sorted(sizes, reverse=True)
        assert 0 not in sizes


def test_what_the_rule_for_the_first_session_adds_stands_first_and_all_rows_add_up_to_the_lead() -> None:
    made = result()
    moved = made["reasons"].filter(pl.col("feature") == SESSIONS)
    assert moved.height
    assert moved["contribution"].min() > 0  # type: ignore[operator]
    lead = made["ranking"].filter(pl.col("rank") <= 2).sort("question", "rank").group_by("question").agg(
        (pl.col("score").first() - pl.col("score").last()).alias("lead"))
    sums = made["reasons"].group_by("question").agg(pl.col("contribution").sum()).join(moved, on="question", how="semi")
    both = sums.join(lead, on="question")
    assert both["contribution"].to_list() == pytest.approx(both["lead"].to_list(), abs=1e-4)


def test_gains_are_summed_over_the_fits() -> None:
    fits = learnable().crossfit(20, RECIPE)
    expected = sum(model.gains[model.features.index("good")] for _, model in fits)
    table = importances(fits)
    assert table["feature"][0] == "good"
    assert table["gain"][0] == pytest.approx(expected)
    assert table["gain"].to_list() == sorted(table["gain"], reverse=True)
    none = dataclasses.replace(fits[0][1], gains=(0.0, 3.0))
    assert importances([(fits[0][0], none)]).rows() == [("noise", 3.0)]
