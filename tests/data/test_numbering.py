"""Stages see questions and corpora under numbers that tell nothing, and no figure depends on these numbers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from memlab.data import numbering
from memlab.data.numbering import Numbering, draws
from memlab.experiment.harness.arm import Arm, load
from memlab.learn.coverage import CrossFitCoverage, LearnedK
from memlab.pipeline import pipeline as pipelines
from memlab.pipeline.stage import EmptyStage, stage
from memlab.pipeline.tables import Tables
from memlab.stages.query.decompose import RuleDecompose
from memlab.stages.query.original import ShuffledQueries
from memlab.stages.rank.adaptive_k import TokenMatchedK
from memlab.stages.rank.boost import TimeWindowBoost
from memlab.stages.rank.score import RandomScore
from memlab.stages.rank.select import Gap
from memlab.stages.search.dense import Dense
from memlab.store import Store
from tests.small import Given, arm, lexical, lives
from tests.stages.search.world import WordEmbedder


@stage
class Spy:
    """A selection of everything that notes the questions and corpora that it is shown."""

    reads: ClassVar = ("ranking", "questions", "texts", "turns")
    writes: ClassVar = ("ranking",)
    seen: ClassVar[list[Tables]] = []

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        self.seen.append(tables)
        return Tables(ranking=tables["ranking"].with_columns(selected=True))


def seen(tables: Tables, root: Path) -> tuple[Tables, Tables]:
    """The tables as a stage sees them, and the result of the pipeline."""
    Spy.seen.clear()
    pipelines._MEMO.clear()
    result = lexical(select=Spy()).run(tables, Store(root))
    return Spy.seen[0], result


def rank_correlation(one: pl.Series, two: pl.Series) -> float:
    return float(np.corrcoef(one.rank(), two.rank())[0, 1])


def test_a_stage_sees_no_order_of_the_file(tmp_path: Path) -> None:
    tables = lives(lives=12, questions=10).load()
    inside, _ = seen(tables, tmp_path)
    file_order = tables["questions"].sort("question").with_row_index("at").select("at", "text_id", "corpus")
    met = inside["questions"].with_row_index("row").join(
        file_order.unique("text_id", keep="none"), on="text_id").select("row", "question", "at")
    assert met.height > 50
    for column in ("row", "question"):
        assert abs(rank_correlation(met[column], met["at"])) < 0.4, column
    assert abs(rank_correlation(met["row"], met["question"])) < 0.4
    assert sorted(inside["questions"]["question"]) == list(range(120))
    texts = inside["texts"].with_row_index("row").join(file_order, on="text_id")
    assert abs(rank_correlation(texts["row"], texts["at"])) < 0.4
    said = inside["turns"].unique("corpus", maintain_order=True).select("corpus", "text_id")
    assert said["corpus"].to_list() == list(range(12))
    first = tables["turns"].filter(session=0, turn=0).select("corpus", "text_id")
    assert said["text_id"].to_list() != first.sort("corpus")["text_id"].to_list()


def test_the_result_has_the_numbers_of_the_data(tmp_path: Path) -> None:
    tables = lives().load()
    inside, result = seen(tables, tmp_path)
    assert not inside["questions"]["question"].equals(tables["questions"]["question"])
    for name in tables:
        assert name == "texts" or result[name].equals(tables[name]), name
    assert result["ranking"]["question"].is_sorted()
    corpus_of = dict(tables["questions"].select("question", "corpus").iter_rows())
    ranked = result["ranking"].join(result["units"], on="unit")
    assert {corpus_of[q] == c for q, c in ranked.select("question", "corpus").iter_rows()} == {True}


def test_a_question_among_others_has_the_content_that_it_had(tmp_path: Path) -> None:
    """Inside, each question still stands beside its own corpus, evidence and answer."""
    tables = lives().load()
    hidden = Numbering.of(tables).hide(tables)

    def facts(tables: Tables) -> set[tuple[Any, ...]]:
        rows = (tables["questions"].join(tables["gold"], on="question").join(tables["evidence"], on="question")
                .join(tables["turns"], on=["corpus", "session", "turn"], suffix="_said"))
        return set(rows.select("text_id", "answer", "category", "session", "turn", "text_id_said").iter_rows())

    assert facts(hidden) == facts(tables)
    assert Numbering.of(tables).show(hidden, hidden, tables)["gold"].equals(tables["gold"])


def test_one_question_asked_twice_has_two_numbers(tmp_path: Path) -> None:
    tables = lives().load()
    one = tables["questions"].head(1)
    again = one.with_columns(question=pl.lit(99, pl.Int32))
    twice = tables.updated({"questions": pl.concat([tables["questions"], again])})
    inside, result = seen(twice, tmp_path)
    assert inside["questions"]["question"].n_unique() == 17
    assert set(result["ranking"]["question"]) == {*range(16), 99}


def test_draws_depend_on_content_alone() -> None:
    tables = lives().load()
    one = draws(tables["questions"], tables["turns"], seed=1)
    hidden = Numbering.of(tables).hide(tables)
    two = draws(hidden["questions"], hidden["turns"], seed=1)
    assert sorted(one["draw"]) == sorted(two["draw"])
    assert one["draw"].n_unique() > 14
    assert one["draw"].is_between(0, 1, closed="left").all()
    assert not one.equals(draws(tables["questions"], tables["turns"], seed=2))


ARMS: dict[str, dict[str, Any]] = {
    "twin": {"select": Gap()},
    "matched": {"select": TokenMatchedK(k=3.5, seed=2)},
    "random": {"score": RandomScore(seed=3)},
    "wrong": {"query": ShuffledQueries()},
    "folds": {"select": LearnedK(coverage=CrossFitCoverage(level="turn", folds=2))},
    "evidence": {"select": LearnedK(coverage=CrossFitCoverage(level="turn", folds=3, by="evidence"))},
    "several": {"decompose": RuleDecompose(), "time": EmptyStage(), "window": TimeWindowBoost(),
                "dense": Dense(embedder=WordEmbedder())},
}


def figures(one: Arm, root: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All metrics of an arm, and of its twin, with its questions under the numbers of a seed."""
    monkeypatch.setattr(numbering, "SEED", seed)
    pipelines._MEMO.clear()
    dataclasses.replace(one, out=root / f"{seed}").run(Store(root / f"store-{seed}"))
    made = {file.parent.name: file.read_text() for file in sorted((root / f"{seed}").rglob("metrics.json"))}
    assert made
    assert all(json.loads(text) for text in made.values())
    return made


@pytest.mark.parametrize("name", ARMS)
def test_another_permutation_changes_no_figure(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = arm(tmp_path, lexical(**ARMS[name]), lives(lives=5, questions=10))
    made = [figures(one, tmp_path, seed, monkeypatch) for seed in (0, 1)]
    assert made[0] == made[1]
    assert len(made[0]) == 1 + one.adaptive()


def test_the_file_order_changes_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same benchmark with its questions and corpora in another order of the file."""
    tables = lives(lives=5, questions=10).load()
    backwards = {"question": 49, "corpus": 4}
    turned = tables.updated({name: table.with_columns([(last - pl.col(c)).alias(c) for c, last in backwards.items()
                                                       if c in table.columns]) for name, table in tables.items()})
    turned = turned.updated({name: turned[name].sort(*keys) for name, keys in {
        "questions": ["question"], "sessions": ["corpus", "session"], "turns": ["corpus", "session", "turn"]}.items()})
    for pipeline in (lexical(**ARMS["matched"]), lexical(**ARMS["random"]), lexical(**ARMS["wrong"])):
        made = []
        for at, given in enumerate((tables, turned)):
            pipelines._MEMO.clear()
            result = pipeline.run(load(Given(given)), Store(tmp_path / f"{at}"))
            shown = result["ranking"].filter("selected").join(result["questions"], on="question").join(
                result["units"].explode("turns"), on="unit").select("text_id", "session", "turns", "rank", "score")
            made.append(shown.sort(shown.columns))
        assert made[0].equals(made[1])
