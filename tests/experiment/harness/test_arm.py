"""An arm: its digest, its run folder, and the twin of an adaptive one."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from omegaconf import OmegaConf

from memlab.data.custom import Custom
from memlab.evaluate.summary import ABOUT
from memlab.experiment.harness import arm as arms
from memlab.learn.coverage import CrossFitCoverage, LearnedK
from memlab.pipeline.slots import SLOTS
from memlab.pipeline.tables import SCHEMAS
from memlab.report.build import build
from memlab.stages.rank.score import Score
from memlab.stages.rank.select import Budget, ByType, Fixed, Gap
from memlab.stages.search.dense import Dense
from memlab.stages.write.chunk import SessionChunker
from memlab.store import Store
from memlab.support.foreign import read_json
from tests.data.test_custom import QUESTIONS, SESSIONS
from tests.data.test_custom import folder as data_folder
from tests.small import arm, lexical, lives
from tests.store.worker import DigestEmbedder

FILES = {"classes.parquet", "config.yaml", "context.parquet", "ids.parquet", "manifest.json", "metrics.json",
         "questions.parquet", "qrels.sessions.trec", "qrels.trec", "ranking.parquet", "run.sessions.trec", "run.trec",
         "run.unjudged.trec", "shown.parquet"}


def test_a_run_folder_holds_the_whole_record(tmp_path: Path, store: Store) -> None:
    one = arm(tmp_path, lexical(select=Fixed(k=5)))
    folder = one.run(store)
    assert folder == tmp_path / "runs" / "single" / "synthetic" / f"one-{one.digest()[:10]}"
    assert {p.name for p in folder.iterdir()} == FILES
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]
    ranking = pl.read_parquet(folder / "ranking.parquet")
    assert ranking.columns == ["question", "unit", "score", "rank", "selected", "lexical:turn", "tokens", "level",
                               "session", "turns"]
    assert ranking["selected"].sum() == 5 * 16
    assert pl.read_parquet(folder / "context.parquet").schema == SCHEMAS["context"]
    assert pl.read_parquet(folder / "ids.parquet").schema == SCHEMAS["ids"]
    questions = pl.read_parquet(folder / "questions.parquet")
    assert questions.columns[: len(ABOUT)] == list(ABOUT)
    assert questions["question"].to_list() == list(range(16))
    assert pl.read_parquet(folder / "shown.parquet")["rank"].max() == 20
    metrics = json.loads((folder / "metrics.json").read_text())
    assert all(type(v) in (int, float) for v in metrics.values())
    mean = questions["session/recall_all@5"].mean()
    assert metrics["session/recall_all@5"] == pytest.approx(mean)
    assert metrics["selected/k_mean"] == 5
    assert {"context/tokens_mean", "turn/ndcg@10", "type=multi-session/session/mrr"} <= set(metrics)
    lines = [line for name in ("run", "run.unjudged") for line in (folder / f"{name}.trec").read_text().splitlines()]
    assert len(lines) == ranking.height
    assert lines[0].split()[0].startswith("life-")
    assert (folder / "config.yaml").read_text() == one.config


def test_the_manifest_says_what_a_reviewer_asks(tmp_path: Path, store: Store) -> None:
    folder = arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder()))).run(store)
    said = read_json(folder / "manifest.json")
    assert said["made"] == {"vectors": store.made["vectors"]}
    assert (said["truncated"], said["told"]) == ({"turn": 0.0}, {})
    assert said["data"] == lives().identity() | {"evidence": [2, 3]}
    assert said["oracle"] is False
    assert set(said["seconds"]) >= {"data", "chunk", "dense", "lexical", "score", "select", "pack", "evaluate"}
    assert said["hardware"]["cores"] >= 1
    assert said["peak_memory_gb"] > 0
    assert {"python", "numpy", "polars", "torch"} <= set(said["versions"])
    assert {"commit", "dirty", "source", "digest", "seed", "finished", "notes", "pipeline", "constant_k"} <= set(said)
    assert [p["k"] for p in said["constant_k"]["selected/turn/recall_all"]] == list(range(1, 51))
    assert [*said["costs"]] == [slot.name for slot in SLOTS]
    tables = lives().load()
    for what in ("sessions", "turns"):  # a question counts the haystack that it is asked about
        pairs = tables["questions"].join(tables[what], on="corpus").height
        assert said["haystack"][what] == round(pairs / tables["questions"].height, 1)


def test_a_finished_arm_returns_at_once(tmp_path: Path, store: Store) -> None:
    embedder = DigestEmbedder()
    one = arm(tmp_path, lexical(dense=Dense(embedder=embedder)))
    folder = one.run(store)
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    made, found, asked = store.made.copy(), store.found.copy(), len(embedder.asked)
    assert one.run(store) == folder
    assert (store.made, store.found, len(embedder.asked)) == (made, found, asked)
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before


def test_the_digest_is_that_of_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = arm(tmp_path)
    assert one.digest() == arm(tmp_path).digest()
    elsewhere = replace(one, name="other", experiment="x", out=tmp_path / "y", seed=5, settings={})
    assert elsewhere.digest() == one.digest()
    others = [arm(tmp_path, lexical(select=Fixed(k=11))), arm(tmp_path, data=lives(seed=1)),
              arm(tmp_path, lexical(chunk=SessionChunker()))]
    assert len({one.digest(), *(o.digest() for o in others)}) == 4
    before = one.digest()
    monkeypatch.setattr(arms, "source_digest", lambda: "changed")
    assert arm(tmp_path).digest() != before


@pytest.mark.parametrize("select", [ByType(), Gap(), Budget(tokens=300),
                                    LearnedK(coverage=CrossFitCoverage(level="turn", folds=2))],
                         ids=["by_type", "gap", "budget", "calibrated"])
def test_an_adaptive_arm_has_a_twin_of_the_same_mean_tokens(tmp_path: Path, store: Store, select) -> None:
    folder = arm(tmp_path, lexical(select=select), lives(lives=4)).run(store)
    said = read_json(folder / "manifest.json")
    assert bool(said["reliability"]) == isinstance(select, LearnedK)  # what was estimated against what came true
    twin = folder.parent / said["twin"]
    assert said["twin"].startswith("one.twin-")
    assert {p.name for p in twin.iterdir()} == FILES
    of_twin = read_json(twin / "manifest.json")
    assert (of_twin["arm"], of_twin["twin"]) == ("one.twin", None)
    tokens = [json.loads((f / "metrics.json").read_text())["context/tokens_mean"] for f in (folder, twin)]
    longest = pl.read_parquet(folder / "ranking.parquet")["tokens"].max()
    assert abs(tokens[0] - tokens[1]) <= max(.005 * tokens[0], longest / 2 / 32)
    counts = pl.read_parquet(twin / "ranking.parquet").group_by("question").agg(pl.col("selected").sum())["selected"]
    assert counts.max() - counts.min() <= 1
    # the twin's configuration is its own, so that it can be run from it
    chosen = OmegaConf.load(twin / "config.yaml").rank.select
    assert chosen == {"_target_": "memlab.stages.rank.adaptive_k.TokenMatchedK",
                      "k": of_twin["pipeline"]["select"]["k"], "seed": 0}


def test_an_arm_that_finds_nothing_ends_without_a_twin(tmp_path: Path, store: Store) -> None:
    nothing = lexical(score=Score(method="rrf", normaliser="none", threshold=1.0), select=Budget(tokens=100))
    folder = arm(tmp_path, nothing).run(store)
    assert read_json(folder / "manifest.json")["twin"] is None
    assert read_json(folder / "metrics.json")["session/recall_any@5"] == 0


@pytest.mark.parametrize("name", ["é" * 120, "a[1]"])
def test_a_data_set_of_any_name_has_its_runs_and_its_report(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    data = Custom(path=data_folder(tmp_path / name, SESSIONS, QUESTIONS))
    made = arm(tmp_path, data=data).run(Store(tmp_path / "store"))
    assert len(os.fsencode(made.parent.name)) <= 150
    assert build(made.parent).html.is_file()
