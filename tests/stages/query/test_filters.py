"""Filters of an experiment: an arm finds what it finds in data of nothing but the fitting sessions and turns."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memlab.data.custom import Custom
from memlab.data.numbering import corpora_by_content
from memlab.experiment.cluster import shards
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.tables import Tables
from memlab.stages.query.filters import Filter, OwnFilter
from memlab.stages.search.dense import Dense
from memlab.stages.search.neighbours import Neighbours
from memlab.stages.systems.memorystack.relations import MemoryStack
from memlab.stages.write.chunk import SessionChunker
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.small import arm, lexical
from tests.stages.query.test_where import ASKED, PIPELINES, WORDS, drawn_filter, fits, sessions

ALL = {**PIPELINES,
       "neighbours": Pipeline(dense=Dense(embedder=WORDS, depth=5), relate=MemoryStack(embedder=WORDS, related=0.3),
                              neighbours=Neighbours(entities=0.0)),
       "whole_sessions": lexical(chunk=SessionChunker())}
ASKED_ON = "2023-05-20"


def data(folder: Path, told: list[Any], questions: list[dict[str, Any]] | None = None, corpora: int = 1) -> Custom:
    """A folder of these sessions, dealt out to corpora, and its questions."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"corpus": f"c{n % corpora}", "session": one.name, "said_on": one.said_on and one.said_on.isoformat(),
              "turns": [{"role": turn.role, "text": turn.text} for turn in one.turns], **one.fields(),
              **({"metadata": dict(one.metadata)} if one.metadata else {})} for n, one in enumerate(told)]
    asked = questions or [{"text": ASKED}]
    rows = [{"question": f"q{n}", "corpus": "c0", "asked_on": ASKED_ON, **one} for n, one in enumerate(asked)]
    for name, written in (("sessions", lines), ("questions", rows)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in written), "utf-8")
    return Custom(path=folder)


def found(pipeline: Pipeline, of: Custom, store: Store, question: int = 0) -> pl.DataFrame:
    """What a question finds, by the names of sessions."""
    tables = of.load()
    names = dict(tables["ids"].filter(kind="session").select("session", "name").iter_rows())
    after = pipeline.run(tables, store)
    ranking = after["ranking"].filter(question=question).join(after["units"], on="unit", maintain_order="left")
    signals = [name for name in ranking.columns if ":" in name]
    return ranking.select(pl.col("session").replace_strict(names, return_dtype=pl.String), "turns", "rank", "score",
                          *sorted(signals), "selected")


@pytest.mark.parametrize("count", [5, pytest.param(125, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", ALL)
def test_an_arm_finds_what_it_finds_in_data_of_the_fitting_sessions(tmp_path: Path, name: str, count: int) -> None:
    told, draw, sizes, store = sessions(), random.Random(11), [], Store(tmp_path / "store")
    whole, tried = data(tmp_path / "whole", told), 0
    while tried < count:
        where = drawn_filter(draw)
        fitting = [session for session in told if fits(session, where)]
        if not fitting:
            continue
        tried += 1
        alone = found(ALL[name], data(tmp_path / f"{tried}", fitting), store)
        assert_frame_equal(found(ALL[name].replace(where=Filter(only=where)), whole, store), alone)
        sizes.append(alone.height)
    assert any(0 < size < found(ALL[name], whole, store).height for size in sizes)


def test_each_question_has_its_own_filter_and_the_others_search_all(tmp_path: Path) -> None:
    told, store, pipeline = sessions(), Store(tmp_path / "store"), PIPELINES["dense"]
    filters: list[dict[str, Any]] = [{"user": "ann"}, {}, {"user": "ben", "after": "2023-05-03"}, {"user": "ann"}]
    asked = [{"text": f"{ASKED} {n}", **({"where": where} if where else {})} for n, where in enumerate(filters)]
    whole = data(tmp_path / "whole", told, asked)
    own = pipeline.replace(where=OwnFilter())
    for number, where in enumerate(filters):
        alone = data(tmp_path / f"{number}", [one for one in told if fits(one, where)], [asked[number]])
        assert_frame_equal(found(own, whole, store, number), found(pipeline, alone, store))


@pytest.mark.parametrize("where", [OwnFilter(), Filter(only={"user": "ann"})])
def test_shards_find_the_same_and_figures_are_those_of_all_data(tmp_path: Path, where: Any) -> None:
    told, store = sessions(), Store(tmp_path / "store")
    asked = [{"text": ASKED, "corpus": f"c{corpus}", "where": {"user": user}, "evidence": [
        {"session": next(one.name for one in told[corpus::2] if one.user == user)}]}
             for corpus in (0, 1) for user in ("ann", "ben")]
    whole = data(tmp_path / "whole", told, asked, corpora=2)
    one = arm(tmp_path / "one", lexical(where=where), whole)
    questions = pl.read_parquet(one.run(store) / "questions.parquet")
    free = pl.read_parquet(arm(tmp_path / "one", lexical(), whole, name="free").run(store) / "questions.parquet")
    about = ["question", "corpus", "group", "text", "scored"]
    assert_frame_equal(questions.select(about), free.select(about))
    lost = isinstance(where, Filter)  # what ben said is filtered out, and missed
    assert questions["session/recall_all@50"].to_list() == 2 * [1.0, 0.0 if lost else 1.0]
    split = arm(tmp_path / "split", lexical(where=where), whole)
    folder = split.run(store, ranked=shards.run_all(split, store, 2))
    for name in ("ranking", "questions", "context"):
        parts, together = (pl.read_parquet(of / f"{name}.parquet").drop("unit", strict=False)
                           for of in (folder, one.folder()))  # corpora of filters have other places among all
        assert_frame_equal(parts, together, check_column_order=False)


def test_fields_go_where_their_sessions_go(tmp_path: Path) -> None:
    told = sessions(6)
    whole = data(tmp_path, told)
    tables = whole.load()
    pooled = Custom(path=tmp_path, pool=True).load()
    name = pl.col("name").str.split("/").list.last()
    by_name = [dict(t["ids"].filter(kind="session").select(name, "session").iter_rows()) for t in (tables, pooled)]
    contents = [dict(t["fields"].select("session", "content").iter_rows()) for t in (tables, pooled)]
    for one in told:
        assert contents[0].get(by_name[0][one.name]) == contents[1].get(by_name[1][one.name])
    assert corpora_by_content(tables)["fields"].height == tables["fields"].height > 0


def test_what_cannot_be_filtered_is_named(tmp_path: Path) -> None:
    for only, said in (({"usr": "ann"}, "did you mean 'user'"), ({}, "at least one condition"),
                       ({"name": "s1"}, "have no names")):
        with pytest.raises(MemlabError, match=said):
            Filter(only=only)
    bare = data(tmp_path / "bare", [type(one)(one.said_on, one.turns, one.name) for one in sessions(4)])
    store = Store(tmp_path / "store")
    with pytest.raises(MemlabError, match="no session has fields"):
        lexical(where=Filter(only={"user": "ann"})).run(bare.load(), store)
    with pytest.raises(MemlabError, match="no question has a filter of its own"):
        lexical(where=OwnFilter()).run(bare.load(), store)
    nobody = lexical(where=Filter(only={"after": "2030-01-01"})).run(bare.load(), store)
    assert isinstance(nobody, Tables)
    assert nobody["ranking"].is_empty()
