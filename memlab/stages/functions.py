"""Stages from functions: a search, a reranker or a fusion rule of one's own in ten lines.

    from memlab import fusion, reranker, retriever

    @reranker
    def overlap(question, texts, *, power: float = 1.0):      # a score for each text, and a setting
        return [len(set(question.split()) & set(text.split())) ** power for text in texts]

    pipeline = preset("system=best").replace(rerank=overlap(power=0.5, pool=20))

Each decorator makes a class of the function's name, with the settings of its base class and one for each keyword-only
parameter. In a plug-in a YAML file names it as any other technique (docs/cookbook). Arms are known by the source of the
function, so that a changed one runs again.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, ClassVar, get_type_hints

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.pipeline.stage import name_of, spec, stage
from memlab.pipeline.tables import Tables, empty, with_text
from memlab.stages.rank.rerank import PoolReranker, passages_of
from memlab.stages.rank.score import lanes_of
from memlab.stages.rank.units import Level, rank_units
from memlab.stages.search.hits import HitsBuilder, pools
from memlab.store import Store
from memlab.support.errors import MemlabError


class FromFunction:
    """What the stages of functions share: the call, its check, and an identity that changes with the source."""

    function: ClassVar[Callable[..., Any]]
    settings: ClassVar[tuple[str, ...]]

    def identity(self) -> dict[str, Any]:
        """Return the settings of the stage, and the digest of its function's source."""
        return {"is": name_of(type(self)), "source": _digest(type(self).function),
                **{field.name: spec(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type]

    def scores(self, count: int, *arguments: Any) -> NDArray[np.float64]:
        """Return what the function gives, (count,); raise MemlabError if that is not one number for each."""
        made = type(self).function(*arguments, **{name: getattr(self, name) for name in self.settings})
        scores = np.asarray(made, np.float64)
        if scores.shape != (count,):
            raise MemlabError(f"gave scores of the shape {scores.shape} for {count} texts", where=type(self).__name__,
                              fix="return one number for each")
        return scores


@stage
class SearchFunction(FromFunction):
    """A search by a function of the question and the texts that it may see, in order of their day."""

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    depth: Annotated[int, Field(ge=1)] = 1000  # most hits per query and kind
    name: str = "lexical"  # lanes are named lexical:<kind>

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the best ``depth`` memories of every kind for every query; one with NaN for a score is no hit."""
        memories, queries = (with_text(tables[name], tables["texts"], *key)["text"].to_numpy()
                             for name, *key in (("memories", "key_id"), ("queries",)))
        memory_ids, query_ids = tables["memories"]["memory"].to_numpy(), tables["queries"]["query"].to_numpy()
        hits = HitsBuilder()
        for pool in pools(tables["queries"], tables["questions"], tables["memories"]):
            for query, visible in zip(pool.queries, pool.visible):
                seen = pool.memories[:visible]
                scores = self.scores(len(seen), queries[query], memories[seen].tolist())
                hits.add(f"{self.name}:{pool.kind}", query_ids[query], memory_ids[seen], scores, self.depth)
        return Tables(hits=hits.frame())


@stage
class RerankFunction(FromFunction, PoolReranker):
    """A reranker by a function of the question and the passages of the first units; a unit has its best passage's."""

    reads: ClassVar = ("ranking", "units", "questions", "turns", "texts", "memories")
    writes: ClassVar = ("ranking",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with the new signal, the head of each list reordered."""
        head = self.head(tables["ranking"])
        passages = passages_of(head.select("unit").unique(), tables, self.roles).select("unit", "text")
        asked = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
        rows = head.select("question", "unit").join(passages, on="unit", how="left", maintain_order="left")
        parts = [rows.clear().with_columns(pl.lit(0.0).alias(self.name))]
        for (question,), part in rows.drop_nulls("text").group_by("question", maintain_order=True):
            scores = self.scores(part.height, asked[question], part["text"].to_list())
            parts.append(part.with_columns(pl.Series(self.name, scores)))
        best = pl.concat(parts).group_by("question", "unit").agg(pl.col(self.name).max())
        judged = head.join(best, on=["question", "unit"], how="left", maintain_order="left")
        return Tables(ranking=self.reorder(judged, tables["ranking"]))


@stage
class FusionFunction(FromFunction):
    """A first ranking by a function of the lanes of one question: name -> scores, (units,), NaN without a hit."""

    reads: ClassVar = ("hits", "queries", "memories", "sessions", "turns")
    writes: ClassVar = ("units", "ranking")

    level: Level = "auto"  # turn, session or memory; auto: the finest that the memories tell apart

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``units`` (all of the level) and ``ranking``; several queries of a question are one list per lane."""
        units, signals = lanes_of(tables, store, self.level, rrf_k=60)
        if signals.width == 2:
            return Tables(units=units, ranking=empty("ranking"))
        parts = [part.with_columns(pl.Series("score", self.scores(
            part.height, {lane: part[lane].to_numpy().astype(np.float64) for lane in signals.columns[2:]})))
            for _, part in signals.group_by("question", maintain_order=True)]
        return Tables(units=units, ranking=rank_units(pl.concat(parts)))


def retriever(function: Callable[..., Any]) -> Any:
    """Make a search of ``function(question, texts)``, which returns a score for each text, or NaN for no hit."""
    return _stage_of(function, SearchFunction)


def reranker(function: Callable[..., Any]) -> Any:
    """Make a reranker of ``function(question, texts)``, which returns a score for each text."""
    return _stage_of(function, RerankFunction)


def fusion(function: Callable[..., Any]) -> Any:
    """Make a first ranking of ``function(lanes)``: name -> scores (units,), NaN without a hit; it returns (units,)."""
    return _stage_of(function, FusionFunction)


def _stage_of(function: Callable[..., Any], base: type) -> Any:
    """Return the stage's class; raise MemlabError for a setting without a type."""
    hints = get_type_hints(function, include_extras=True)
    settings = {key: value for key, value in inspect.signature(function).parameters.items()
                if value.kind is inspect.Parameter.KEYWORD_ONLY}
    for key in settings:
        if key not in hints:
            raise MemlabError(f"the setting {key} has no type", where=function.__name__,
                              fix=f"write *, {key}: float = 0.5")
    body = {"function": staticmethod(function), "settings": tuple(settings), "__doc__": function.__doc__,
            "__module__": function.__module__, "__qualname__": function.__qualname__,
            "__annotations__": {key: hints[key] for key in settings},
            **{key: value.default for key, value in settings.items() if value.default is not value.empty}}
    return stage(type(function.__name__, (base,), body))


def _digest(function: Callable[..., Any]) -> str:
    try:
        source = inspect.getsource(function).encode()
    except OSError:  # typed at a prompt
        source = function.__code__.co_code + repr(function.__code__.co_names).encode()
    return hashlib.blake2b(source, digest_size=16).hexdigest()
