"""Guards against accidents: gold, the benchmark's ids and what is said later reach no stage unnoticed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.data import numbering
from memlab.data.longmemeval import LongMemEval
from memlab.experiment.config.instantiate import choice_settings
from memlab.experiment.harness.sweep import PLACES
from memlab.learn.coverage import CrossFitCoverage, LearnedK
from memlab.pipeline import pipeline as pipelines
from memlab.pipeline.pipeline import HIDDEN, Pipeline
from memlab.pipeline.slots import AFTER_ANSWERS
from memlab.pipeline.stage import Declaration, EmptyStage, Stage
from memlab.pipeline.tables import GOLD, SCHEMAS, Tables
from memlab.stages.oracle.upper_bounds import OracleSelect
from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.score import RandomScore
from memlab.stages.rank.units import Rollup
from memlab.stages.search.bm25 import BM25Okapi
from memlab.stages.search.dense import Dense
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.write.chunk import Levels, Recursive, RoundChunker, SessionChunker, TurnChunker, Window
from memlab.stages.write.context import Header
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.choices import choices_of
from tests.data.official_records import record, write
from tests.examples import rest_at_night
from tests.leak_worker import digests, in_a_fresh_process, of_technique, techniques
from tests.peeks import ByNumber, Look
from tests.small import arm, lexical, lives
from tests.stages.search.world import Overlap, WordEmbedder
from tests.token_words import TokenWords

RESULTS = ("ranking", "context")


def fresh(pipeline: Pipeline, tables: Tables, root: Path) -> Tables:
    """Run with nothing remembered, so that a leak shows."""
    pipelines._MEMO.clear()
    return pipeline.run(tables, Store(root))


def shuffled(tables: Tables, seed: int = 0) -> Tables:
    """The same conversations and questions; answers, types, evidence and ids dealt out anew."""
    deal = np.random.default_rng(seed)
    gold, ids, evidence = tables["gold"], tables["ids"], tables["evidence"]
    places = evidence.select("session", "turn")[deal.permutation(evidence.height)]
    labels = gold.drop("question")[deal.permutation(gold.height)]
    return tables.updated({
        "gold": pl.concat([gold.select("question"), labels], how="horizontal"),
        "evidence": evidence.with_columns(places["session"], places["turn"]),
        "ids": ids.with_columns(ids["name"].gather(deal.permutation(ids.height)).alias("name")),
    })


def targets() -> Iterator[tuple[str, str]]:
    """Every class that a file of a pipeline's slot names, nested ones too."""

    def of(node: Any, name: str) -> Iterator[tuple[str, str]]:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            if key == "_target_":
                yield name, value
            yield from of(value, name)

    for place in PLACES.values():
        for choice in choices_of(place.replace(".", "/")):
            yield from of(choice_settings(choice), choice)


def test_no_technique_declares_gold() -> None:
    for file, target in sorted(set(targets())):
        module, _, name = target.rpartition(".")
        cls = getattr(importlib.import_module(module), name)
        declared = getattr(cls, "reads", ())
        if isinstance(declared, property):  # what it reads depends on its settings
            slot, _, option = file.removesuffix(".yaml").rpartition("/")
            stages = of_technique(slot, option).stages()
            (declared,) = (stage.reads for _, stage in stages if type(stage).__name__ == name)
        reads = set(declared)
        if not file.startswith(tuple(f"{slot}/" for slot in AFTER_ANSWERS)):
            sees = vars(cls).get("__declaration__", Declaration()).sees
            assert reads & GOLD <= frozenset().union(*(HIDDEN[what] for what in sees)), file
        assert ("ids" in reads) == (target == "memlab.stages.oracle.upper_bounds.ShownIds")  # the one tainted arm


@pytest.mark.slow
@pytest.mark.parametrize("what", rest_at_night(
    ["rank/select", "rank/score", "rank/rollup", "write/chunk", "search/lexical", "query/classify", "query/expand"],
    {"rank/select", "search/lexical"}))
def test_shuffled_gold_changes_nothing(what: str, tmp_path: Path) -> None:
    tables = lives().load()
    other = shuffled(tables)
    assert not other["evidence"].equals(tables["evidence"])
    assert len(techniques(what)) >= 3 or what == "search/lexical"
    one = digests(what, tables, tmp_path / "1")
    assert one == in_a_fresh_process(what, other, tmp_path / "2")
    for name, tables_of in one.items():
        assert int(tables_of["selected"]) or name == "none", name


def test_shuffled_gold_changes_nothing_with_models(tmp_path: Path) -> None:
    tables = lives().load()
    assert digests("models", tables, tmp_path / "1") == in_a_fresh_process("models", shuffled(tables), tmp_path / "2")


@pytest.mark.slow
def test_the_shuffle_alone_notices_a_stage_that_finds_gold_in_its_process(tmp_path: Path) -> None:
    tables = lives().load()
    one, two = (in_a_fresh_process("peek", t, tmp_path / f"{at}")
                for at, t in enumerate((tables, shuffled(tables))))
    assert one != two
    assert {int(made["selected"]) for made in (*one.values(), *two.values())} != {0}


@pytest.mark.parametrize("select", [OracleSelect(), LearnedK(coverage=CrossFitCoverage(level="turn", folds=2))],
                         ids=["oracle", "learn"])
def test_the_shuffle_would_show_in_those_that_may_look(select: Stage, tmp_path: Path) -> None:
    tables = lives(lives=4).load()
    one, two = (fresh(lexical(select=select), t, tmp_path) for t in (tables, shuffled(tables)))
    assert not one["ranking"]["selected"].equals(two["ranking"]["selected"])


def planted(tables: Tables, days: int, hours: int = 0) -> Tables:
    """Add to each corpus a session that repeats its first question word for word, so long after it was asked."""
    first = tables["questions"].group_by("corpus", maintain_order=True).first()
    number = tables["sessions"]["session"].max() + 1
    place = first.select("corpus", pl.lit(number, pl.Int32).alias("session"))
    late = pl.col("asked_on") + timedelta(days=days, hours=hours)
    sessions = place.hstack(first.select(late.alias("said_on")))
    turns = place.hstack(first.select("text_id")).with_columns(
        turn=pl.lit(0, pl.Int32), role=pl.lit("user"), speaker=pl.lit(None, pl.String)).select(
        tables["turns"].columns)
    return tables.updated({"sessions": pl.concat([tables["sessions"], sessions]).sort("corpus", "session"),
                           "turns": pl.concat([tables["turns"], turns]).sort("corpus", "session", "turn")})


CHUNKS = {"turn": TurnChunker(), "round": RoundChunker(), "session": SessionChunker(), "window": Window(),
          "recursive": Recursive(),
          "levels": Levels(chunkers=[TurnChunker(), SessionChunker()])}
WAYS: dict[str, dict[str, Any]] = {
    "words": {},
    "official": {"lexical": BM25Okapi()},
    "vectors": {"dense": Dense(embedder=WordEmbedder()), "lexical": EmptyStage(writes=("hits",))},
    "tokens": {"late": WeightedLate(matcher=TokenWords()), "lexical": EmptyStage(writes=("hits",))},
    "all": {"dense": Dense(embedder=WordEmbedder()), "late": WeightedLate(matcher=TokenWords()), "context": Header(),
            "rerank": Rerank(scorer=Overlap(), pool=20), "rollup": Rollup()},
    "random": {"score": RandomScore()},
}


def found_sessions(tables: Tables) -> set[int]:
    ranked = tables["ranking"].join(tables["units"], on="unit")
    packed = tables["context"].join(tables["units"], on="unit")
    hit = tables["hits"].join(tables["memories"], on="memory")
    return {*ranked["session"], *packed["session"], *hit["session"]}


@pytest.mark.parametrize("way", WAYS)
def test_a_session_of_a_later_day_is_never_found(way: str, tmp_path: Path) -> None:
    tables = lives().load()
    future = planted(tables, days=1)
    last = future["sessions"]["session"].max()
    for name, chunk in CHUNKS.items():
        if way in ("random", "longest") and name == "levels":
            continue
        made = fresh(lexical(**{"chunk": chunk, **WAYS[way]}), future, tmp_path / name)
        assert last in set(made["memories"]["session"])  # it was written
        assert last not in found_sessions(made), name


@pytest.mark.parametrize("way", ["words", "official", "vectors", "tokens"])
def test_the_same_session_later_on_the_same_day_is_found_first(way: str, tmp_path: Path) -> None:
    """The guard must not cost evidence: benchmarks stamp some of it hours after the question, on its day."""
    tables = lives().load()
    asked = tables["questions"].group_by("corpus").first()["asked_on"]
    assert set(asked.dt.hour()) <= set(range(23))
    made = fresh(lexical(**WAYS[way]), planted(tables, days=0, hours=23 - max(asked.dt.hour())), tmp_path)
    last = made["sessions"]["session"].max()
    top = made["ranking"].filter(pl.col("rank") == 1).join(made["units"], on="unit")
    firsts = made["questions"].group_by("corpus").first()["question"]
    assert set(top.filter(pl.col("question").is_in(firsts.implode()))["session"]) == {last}


def test_ids_are_integers_in_all_tables_but_ids() -> None:
    for name, schema in SCHEMAS.items():
        for column in ("corpus", "session", "turn", "question", "memory", "unit", "query"):
            assert column not in schema or schema[column].is_integer(), (name, column)


def strings(table: pl.DataFrame) -> set[str]:
    return {v for c in table.columns if table.schema[c] == pl.String for v in table[c].drop_nulls().unique()}


def test_a_benchmarks_ids_reach_no_stage_and_no_result(tmp_path: Path) -> None:
    mark = "MARKER"
    one = record(f"gpt4_{mark}_abs") | {"answer_session_ids": [f"answer_{mark}_1", f"answer_{mark}_2"],
                                        "haystack_session_ids": ["f1", f"answer_{mark}_1", f"answer_{mark}_2", "f1"]}
    two = record("q2")
    data = LongMemEval(variant="s", path=write(tmp_path / "o.json", [one, two]))
    full = lexical(chunk=Levels(chunkers=[TurnChunker(), SessionChunker()]), context=Header(),
                   dense=Dense(embedder=WordEmbedder()))
    tables = data.load()
    assert any(mark in s for s in strings(tables["ids"]))
    made = fresh(full, tables, tmp_path / "store")
    for name in set(made) - {"ids"}:
        assert not [s for s in strings(made[name]) if mark in s], name
    folder = arm(tmp_path, full, data).run(Store(tmp_path / "store"))
    for name in (*RESULTS, "shown"):
        assert not [s for s in strings(pl.read_parquet(folder / f"{name}.parquet")) if mark in s], name
    assert mark in (folder / "run.unjudged.trec").read_text()  # people and TREC tools get the names again
    assert not [p for p in (tmp_path / "store").rglob("*") if p.is_file() and mark.encode() in p.read_bytes()]


def test_nothing_of_a_stage_is_a_way_to_gold() -> None:
    """No stage holds tables or a data set in its fields, so what it declares is all that it can see."""
    for slot, one in lexical().stages():
        for field in fields(one):
            assert not isinstance(getattr(one, field.name), Tables | pl.DataFrame), (slot, field.name)


# What got past these tests once: each way to gold must be caught (tests/pipeline/test_pipeline.py has declared tables).


@pytest.mark.parametrize(("way", "file"), [
    ("parquet", "ranking.parquet"), ("scan", "questions.parquet"), ("csv", "qrels.trec"), ("text", "qrels.trec"),
    ("descriptor", "metrics.json"), ("record", "manifest.json"), ("in_a_thread", "qrels.trec")])
@pytest.mark.parametrize("swallow", [False, True])
def test_a_stage_that_reads_an_earlier_arms_folder_is_named(
        way: str, file: str, swallow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = arm(tmp_path, lexical(select=OracleSelect())).run(Store(tmp_path / "store"))
    monkeypatch.setattr(Look, "folder", folder)
    with pytest.raises(MemlabError, match=f"tests.peeks.Look opens .*{file}"):
        fresh(lexical(select=Look(way=way, path=file, swallow=swallow)), lives().load(), tmp_path)


@pytest.mark.parametrize("way", ["record", "text", "benchmark"])
def test_a_stage_that_reads_the_benchmark_is_named(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = LongMemEval(variant="s", path=write(tmp_path / "data.json", [record("q1"), record("q2")]))
    monkeypatch.setattr(Look, "folder", tmp_path)
    with pytest.raises(MemlabError, match="tests.peeks.Look opens .*data.json"):
        fresh(lexical(select=Look(way=way, path="data.json")), data.load(), tmp_path / "store")


def test_a_stage_that_goes_by_the_questions_number_gets_another_figure(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``test_numbering`` asks of all techniques fails for it; and the number says nothing of the type."""
    made = []
    for seed in (0, 1):
        monkeypatch.setattr(numbering, "SEED", seed)
        folder = arm(tmp_path / f"{seed}", lexical(select=ByNumber())).run(Store(tmp_path / "store"))
        made.append((folder / "metrics.json").read_text())
    assert made[0] != made[1]
