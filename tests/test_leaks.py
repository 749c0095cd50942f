"""Nothing that tells the answer reaches a stage: not gold, not the benchmark's ids, not what is said later."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from omegaconf import OmegaConf

from memlab import pipeline as pipelines
from memlab.config.instantiate import CONF
from memlab.data.longmemeval import LongMemEval
from memlab.harness.build import PLACES
from memlab.harness.sweep import read
from memlab.learn.coverage.stage import CrossFitCoverage, LearnedK
from memlab.oracle.select import OracleSelect
from memlab.pipeline import AFTER_ANSWERS, MAY_SEE_GOLD, Pipeline
from memlab.query.shuffled import ShuffledQueries
from memlab.rank.baselines import LengthBaseline, RandomScore
from memlab.rank.rerank import Rerank
from memlab.rank.rollup import Rollup
from memlab.search.bm25 import BM25, BM25Okapi
from memlab.search.dense import Dense
from memlab.search.late_interaction import Late
from memlab.stage import Nothing, Stage
from memlab.store import Store
from memlab.tables import GOLD, SCHEMAS, Tables
from memlab.write.chunk.length import Recursive, Window
from memlab.write.chunk.turns import Levels, RoundChunker, SessionChunker, TurnChunker
from memlab.write.context.header import Header
from tests.data.official_records import record, write
from tests.search.world import Overlap, WordEmbedder
from tests.small import arm, lexical, lives

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
        folder = CONF.joinpath(*place.split("."))
        for path in sorted(folder.glob("*.yaml")):
            yield from of(OmegaConf.to_container(OmegaConf.load(path)), path.relative_to(CONF).as_posix())


@pytest.mark.parametrize(("file", "target"), sorted(set(targets())))
def test_no_technique_declares_gold(file: str, target: str) -> None:
    module, _, name = target.rpartition(".")
    reads = set(getattr(getattr(importlib.import_module(module), name), "reads", ()))
    behind = tuple(AFTER_ANSWERS.values()) if file.startswith(tuple(f"{slot}/" for slot in AFTER_ANSWERS)) else ()
    if not target.startswith((*MAY_SEE_GOLD, *behind)):
        assert not GOLD & reads
    assert ("ids" in reads) == (target == "memlab.oracle.tainted.ShownIds")  # the one tainted arm


NEEDS = ("memlab.oracle", "memlab.learn", "${embedder}", "${cross_encoder}", "${chat}", "dense:")
"""What a technique's file says that looks at gold, asks a model, or weighs a lane that is off here."""


@functools.cache
def techniques(slot: str) -> list[tuple[str, Pipeline]]:
    """All techniques of a slot that load no model and may not see gold, each in a pipeline of its own."""
    names = []
    for path in sorted(CONF.joinpath(*slot.split("/")).glob("*.yaml")):
        text = path.read_text()
        if not any(word in text for word in NEEDS):
            names.append(path.stem)
    made = []
    for name in names:
        (one,) = read(["search/dense=none", "track=none", f"{slot}={name}"]).arms
        made.append((name, one.pipeline))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("slot", ["rank/select", "rank/score", "rank/rollup", "write/chunk", "search/lexical",
                                  "query/classify", "query/expand"])
def test_shuffled_gold_changes_nothing(slot: str, tmp_path: Path) -> None:
    tables = lives().load()
    other = shuffled(tables)
    assert not other["evidence"].equals(tables["evidence"])
    known = techniques(slot)
    assert len(known) >= 3 or slot == "search/lexical"
    for name, pipeline in known:
        one, two = fresh(pipeline, tables, tmp_path), fresh(pipeline, other, tmp_path)
        for table in set(one) - GOLD:
            assert one[table].equals(two[table]), (name, table)
        assert one["ranking"]["selected"].any() or name == "none", name


def test_shuffled_gold_changes_nothing_with_models(tmp_path: Path) -> None:
    tables = lives().load()
    embedder, scorer = WordEmbedder(), Overlap()
    full = Pipeline(chunk=Levels(chunkers=[TurnChunker(), SessionChunker(roles=("user",))]), context=Header(),
                    dense=Dense(embedder=embedder), late=Late(scorer=scorer), rerank=Rerank(scorer=scorer, pool=20),
                    query=ShuffledQueries())
    one, two = fresh(full, tables, tmp_path / "1"), fresh(full, shuffled(tables), tmp_path / "2")
    for table in set(one) - GOLD:
        assert one[table].equals(two[table]), table


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
    "vectors": {"dense": Dense(embedder=WordEmbedder()), "lexical": Nothing(writes=("hits",))},
    "pairs": {"late": Late(scorer=Overlap()), "lexical": Nothing(writes=("hits",))},
    "all": {"dense": Dense(embedder=WordEmbedder()), "late": Late(scorer=Overlap()), "context": Header(),
            "rerank": Rerank(scorer=Overlap(), pool=20), "rollup": Rollup()},
    "random": {"score": RandomScore()},
    "longest": {"score": LengthBaseline()},
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


@pytest.mark.parametrize("way", ["words", "official", "vectors", "pairs"])
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


@pytest.mark.parametrize("way", [{"lexical": BM25()}, {"lexical": BM25Okapi()}], ids=["bm25", "official"])
def test_what_is_said_later_does_not_even_change_a_score(way: dict[str, Any], tmp_path: Path) -> None:
    tables = lives().load()
    one, two = (fresh(lexical(**way), t, tmp_path) for t in (tables, planted(tables, days=1)))
    score = ["question", "rank", "score"]
    assert one["ranking"].select(score).equals(two["ranking"].select(score))


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
    assert mark in (folder / "run.trec").read_text()  # for people and TREC tools, who are told the names again
    assert not [p for p in (tmp_path / "store").rglob("*") if p.is_file() and mark.encode() in p.read_bytes()]


@pytest.mark.slow
def test_no_id_of_longmemeval_is_in_any_table(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "longmemeval_oracle.dev.json.xz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    tables = LongMemEval(variant="oracle", path=path, limit=40).load()
    names = {n for n in tables["ids"]["name"] if n.startswith("answer_") or "_abs" in n}
    names |= set(tables["ids"].filter(kind="question")["name"])
    assert any(n.startswith("answer_") for n in names)
    made = fresh(lexical(context=Header()), tables, tmp_path)
    texts = "\n".join(s for name in set(made) - {"ids"} for s in strings(made[name]))
    assert not [n for n in names if n in texts]


def test_nothing_of_a_stage_is_a_way_to_gold() -> None:
    """No stage holds tables or a data set in its fields, so what it declares is all that it can see."""
    for slot, stage in lexical().stages():
        for field in fields(stage):
            assert not isinstance(getattr(stage, field.name), Tables | pl.DataFrame), (slot, field.name)
