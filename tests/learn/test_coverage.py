"""The learned K: the estimate and the cut as one stage."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from memlab import run
from memlab.errors import MemlabError
from memlab.learn.__main__ import main as train
from memlab.learn.coverage import (
    FEATURES,
    CrossFitCoverage,
    LearnedK,
    LoadedCoverage,
    apply,
    features,
    fit,
    labels,
    load,
    reliability,
)
from memlab.learn.fits import save
from memlab.rank.select import Fixed
from memlab.stage import spec_digest
from memlab.store import Store
from memlab.tables import Tables, frame, text_hash, texts_frame


def ranked_pair():
    classes = frame("classes", {"question": [4, 4, 2], "class": ["counting", "factual", "factual"]})
    units = frame("units", {"unit": [0, 1, 2], "corpus": [0] * 3, "session": [0, 0, 1], "turns": [[0], [1], [0]],
                            "level": ["turn"] * 3})
    ranking = frame("ranking", {
        "question": [4, 4, 4, 2], "unit": [0, 1, 2, 2], "score": [3.0, 1.0, -1.0, 5.0], "rank": [1, 2, 3, 1],
        "selected": [False] * 4, "a": [3.0, 1.0, 2.0, 1.0], "b": [None, 2.0, None, None], "tokens": [1.0] * 4})
    return ranking, units, classes


def test_features_by_hand() -> None:
    table = features(*ranked_pair(), depth=5)
    assert table.columns == ["question", "rank", *FEATURES]
    two = table.filter(question=4)
    z = [2 / math.sqrt(8 / 3), 0, -2 / math.sqrt(8 / 3)]
    mass = [math.exp(x) / sum(map(math.exp, z)) for x in z]
    expected = {
        "log_k": [0, math.log(2), math.log(3)], "log_units": [math.log(3)] * 3, "score": z, "below_top": [0, .5, 1],
        "gap": [.5, .5, 0], "top_gap": [.5] * 3, "mass": [mass[0], mass[0] + mass[1], 1],
        "entropy": [-sum(m * math.log(m) for m in mass) / math.log(3)] * 3, "sessions": [1, 1 / 2, 2 / 3],
        # lane a orders units 0, 2, 1: shares 1 of 1, 1 of 2, 3 of 3; lane b knows unit 1 alone: 0, 1 of 2, 1 of 3
        "agreement": [(1 + 0) / 2, (1 / 2 + 1 / 2) / 2, (1 + 1 / 3) / 2], "is_counting": [1] * 3,
        "is_counting_depth": [0, math.log(2), math.log(3)], "is_factual": [0] * 3,
    }
    for name, values in expected.items():
        assert two[name].to_list() == pytest.approx(values), name


def test_a_list_of_one_and_a_constant_list_are_finite() -> None:
    ranking, *rest = ranked_pair()
    flat = features(ranking.with_columns(score=pl.lit(1.0)), *rest, depth=2)
    assert flat.select(pl.all().is_finite().all()).row(0) == (True,) * flat.width
    assert flat.filter(question=2)["is_factual"].to_list() == [1]
    assert flat["rank"].max() == 2


def test_scale_and_shift_of_scores_do_not_matter() -> None:
    ranking, *rest = ranked_pair()
    moved = ranking.with_columns(pl.col("score") * 7 - 3)
    one, two = features(ranking, *rest, depth=3), features(moved, *rest, depth=3)
    assert one.to_numpy() == pytest.approx(two.to_numpy())


def test_a_question_over_several_sessions_counts_and_a_class_without_a_flag_sets_none() -> None:
    ranking, units, classes = ranked_pair()
    flags = [f for f in FEATURES if f.startswith("is_")]
    asked = features(ranking, units, classes, depth=3)
    several = features(ranking, units, classes.with_columns(pl.col("class").replace({"counting": "multi_session"})), 3)
    assert several.equals(asked)
    other = features(ranking, units, classes.with_columns(pl.lit("procedural").alias("class")), 3)
    assert other.select(flags).sum().sum_horizontal().item() == 0
    assert other.drop(flags).equals(asked.drop(flags))


STORE = Store()
UNITS = 12


def world(seed: int = 0, questions: int = 120) -> Tables:
    """A corpus a question, a session a unit; the evidence lies at a random rank, low where the top score is high."""
    rng = np.random.default_rng(seed)
    sure = rng.uniform(size=questions)
    at = np.minimum(rng.geometric(.15 + .8 * sure), UNITS + 2)  # beyond UNITS: not in the pool
    scores = np.sort(rng.normal(size=(questions, UNITS)), axis=1)[:, ::-1].copy()
    scores[:, 0] += 8 * sure
    q, s = np.divmod(np.arange(questions * UNITS), UNITS)
    texts = texts_frame(["Who is Ann?", *(f"session {i}" for i in range(questions * UNITS))])
    return Tables(
        texts=texts,
        questions=frame("questions", {"question": range(questions), "corpus": range(questions),
                                      "text_id": [text_hash("Who is Ann?")] * questions}),
        turns=frame("turns", {"corpus": q, "session": s, "turn": [0] * len(q), "role": ["user"] * len(q),
                              "text_id": texts["text_id"][1:]}),
        units=frame("units", {"unit": range(len(q)), "corpus": q, "session": s, "turns": [[0]] * len(q),
                              "level": ["session"] * len(q)}),
        ranking=frame("ranking", {"question": q, "unit": range(len(q)), "score": scores.ravel(), "rank": s + 1,
                                  "selected": [False] * len(q), "lane": scores.ravel()}),
        classes=frame("classes", {"question": range(questions), "class": ["factual"] * questions}),
        evidence=frame("evidence", {"question": range(questions), "session": at - 1}),
        gold=frame("gold", {"question": range(questions), "answer": [""] * questions, "category": ["x"] * questions,
                            "abstain": [False] * questions, "scored": [True] * questions}),
    )


def covered(tables: Tables, **options: object) -> pl.DataFrame:
    stage = CrossFitCoverage(depth=10, **options)
    return stage.run(tables.only(stage.reads), STORE)["ranking"]


def test_coverage_is_a_probability_that_never_falls_with_rank() -> None:
    tables = world()
    made = covered(tables)
    assert made.drop("coverage").equals(tables["ranking"])
    assert made["coverage"].is_between(0, 1).all()
    assert made.group_by("question").agg(pl.col("coverage").diff().min() >= 0)["coverage"].all()
    deep = made.filter(pl.col("rank") >= 10).group_by("question").agg(pl.col("coverage").n_unique())
    assert deep["coverage"].unique().to_list() == [1]  # beyond its depth the model says no more


def test_estimates_follow_what_is_true() -> None:
    tables = world(questions=400)
    curve = reliability(covered(tables), labels(tables, "session"), bins=5, ranks=(1, 3, 5, 10))
    big = curve.filter(pl.col("n") >= 100)
    assert big.height >= 3
    assert (big["estimated"] - big["observed"]).abs().max() < .1


def test_a_questions_own_label_never_changes_its_estimate() -> None:
    tables = world(questions=60)
    before = covered(tables)
    for mine in (0, 7, 31):
        here = pl.col("question") == mine
        moved = tables["evidence"].with_columns(pl.when(here).then(UNITS - pl.col("session")).otherwise("session")
                                                .cast(pl.Int32).alias("session"))
        after = covered(tables.updated({"evidence": moved}))
        assert after.filter(here).equals(before.filter(here))
        assert not after.equals(before)  # but it does change those of other folds


def test_questions_that_do_not_count_are_estimated_but_not_fitted_on() -> None:
    tables = world(questions=60)
    unscored = tables["gold"].with_columns(scored=pl.col("question") > 9)
    gone = tables.updated({"gold": unscored})
    moved = gone["evidence"].with_columns(session=pl.when(pl.col("question") <= 9).then(0).otherwise("session")
                                          .cast(pl.Int32))
    one, two = covered(gone), covered(gone.updated({"evidence": moved}))
    assert one.equals(two)
    assert one["coverage"].null_count() == 0


def test_the_fit_is_at_the_minimum_of_its_loss() -> None:
    tables = world(questions=50)
    shape = features(tables["ranking"], tables["units"], tables["classes"], 10)
    needed = labels(tables, "session")
    model = fit(shape, needed, "session", 10, l2=2.0)
    rows = shape.join(needed, on="question")
    x = (rows.select(FEATURES).to_numpy() - np.array(model.mean)) / np.array(model.scale)
    y = (rows["rank"] >= rows["complete"].fill_null(99)).to_numpy()

    def loss(w: np.ndarray, b: float) -> float:
        p = 1 / (1 + np.exp(-(x @ w + b)))
        share = 1 / rows["rank"].to_numpy() / sum(1 / k for k in range(1, 11))
        return -(share * np.where(y, np.log(p), np.log(1 - p))).sum() + w @ w

    w = np.array(model.weights)
    best = loss(w, model.bias)
    for step in np.random.default_rng(0).normal(scale=.05, size=(20, len(w))):
        assert loss(w + step, model.bias) > best - 1e-6
    assert loss(w, model.bias + .05) > best


def test_reliability_by_hand() -> None:
    ranking = frame("ranking", {"question": [0, 0, 1, 1], "unit": [0, 1, 0, 1], "score": [2.0, 1.0, 2.0, 1.0],
                                "rank": [1, 2, 1, 2], "selected": [False] * 4, "coverage": [.2, .8, .3, 1.0]})
    needed = pl.DataFrame({"question": [0, 1], "complete": [2, None]}, schema_overrides={"question": pl.Int32})
    curve = reliability(ranking, needed, bins=2, ranks=(1, 2))
    assert curve.rows() == [(0.0, .5, 2, pytest.approx(.25), 0.0), (.5, 1.0, 2, pytest.approx(.9), .5)]


def test_a_saved_fit_gives_the_same_estimates_wherever_it_lies(tmp_path: Path) -> None:
    tables = world(questions=50)
    shape = features(tables["ranking"], tables["units"], tables["classes"], 10)
    model = fit(shape, labels(tables, "session"), "session", 10)
    save(model, tmp_path / "a.json")
    save(model, tmp_path / "b.json")
    assert load(tmp_path / "a.json") == model
    stage = LoadedCoverage(path=str(tmp_path / "a.json"))
    assert not {"evidence", "gold"} & set(stage.reads)
    made = stage.run(tables.only(stage.reads), STORE)["ranking"]
    assert made.filter(pl.col("rank") <= 10)["coverage"].to_list() == apply(model, shape)["coverage"].to_list()
    assert spec_digest(stage) == spec_digest(LoadedCoverage(path=tmp_path / "b.json"))


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda d: d.update(format="memlab-coverage-0"), "made by another version"),
    (lambda d: d.pop("bias"), "Field required"),
    (lambda d: d.update(weights=d["weights"][1:]), "numbers each"),
    (lambda d: d.update(features=[*d["features"][1:], "other"]), "made by another version"),
    (lambda d: d.update(scale=[0.0, *d["scale"][1:]]), "impossible number"),
    (lambda d: d.update(mean=[float("nan"), *d["mean"][1:]]), "impossible number"),
    (lambda d: d.update(weights=[1e400, *d["weights"][1:]]), "impossible number"),
    (lambda d: d.update(bias=float("inf")), "impossible number"),
])
def test_a_damaged_fit_is_refused_when_the_stage_is_made(tmp_path: Path, spoil, message: str) -> None:
    tables = world(questions=20)
    shape = features(tables["ranking"], tables["units"], tables["classes"], 10)
    path = tmp_path / "fit.json"
    save(fit(shape, labels(tables, "session"), "session", 10), path)
    damaged = json.loads(path.read_text())
    spoil(damaged)
    path.write_text(json.dumps(damaged))
    with pytest.raises(MemlabError, match=message):
        LoadedCoverage(path=path)


def test_missing_truncated_and_unlabelled(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="No such file"):
        LoadedCoverage(path=tmp_path / "none.json")
    (tmp_path / "cut.json").write_text('{"format": "memlab')
    with pytest.raises(MemlabError, match="is not a coverage fit"):
        LoadedCoverage(path=tmp_path / "cut.json")
    with pytest.raises(MemlabError, match="no ranked question has evidence"):
        covered(world(questions=20).updated({"evidence": world()["evidence"].head(0)}))
    with pytest.raises(ValidationError):
        CrossFitCoverage(folds=1)


def test_a_saved_fit_is_applied_by_the_command_that_names_it(tmp_path: Path) -> None:
    lives = ["data.lives=4", "data.questions=6", "data.sessions=8", "search/dense=none", f"store={tmp_path / 'store'}"]
    assert train(["coverage", f"file={tmp_path / 'fit.json'}", *lives]) == 0
    assert run.main([*lives, "rank/select=calibrated", "learn/coverage=loaded", f"out={tmp_path}", "track=none",
                     f"learn.coverage.path={tmp_path / 'fit.json'}", "name=transferred"]) == 0
    folder, = tmp_path.glob("single/*/transferred-*")
    assert "coverage" in pl.read_parquet(folder / "ranking.parquet").columns
    assert train(["coverage", *lives]) == 2


def test_k_is_the_first_rank_whose_estimate_reaches_the_target(tmp_path):
    tables = world(questions=60)
    coverage = CrossFitCoverage(level="session", depth=10)
    estimated = coverage.run(tables, Store(tmp_path))["ranking"]
    chosen = LearnedK(coverage=coverage, target=0.8, max_k=6).run(tables, Store(tmp_path))["ranking"]
    for (question,), rows in estimated.group_by("question"):
        reached = rows.filter(pl.col("coverage") >= 0.8, pl.col("rank") <= 6)["rank"].min()
        here = chosen.filter(pl.col("question") == question)
        assert here["selected"].sum() == (reached or 6)
        assert here["unreachable"].unique().to_list() == [0.0 if reached else 1.0]


def test_it_asks_for_gold_and_for_a_token_matched_baseline():
    learned = LearnedK(coverage=CrossFitCoverage())
    assert {"gold", "evidence"} <= set(learned.reads)
    assert learned.adaptive
    assert not getattr(Fixed(), "adaptive", False)
