"""Search by graph: neighbours of the hits and of the question's entities become hits themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables, as_of, with_text
from memlab.stages.entity_graph import Graph, graphs
from memlab.stages.search.hits import HitsBuilder, first_queries, reciprocal_ranks
from memlab.store import Store

Kind = Literal["FOLLOWS", "RELATED_TO", "SAME_TOPIC", "ELABORATES", "CONTRADICTS", "SUPERSEDES"]
Weight = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


def _weights() -> dict[Kind, Weight]:
    return {"FOLLOWS": 0.2, "RELATED_TO": 0.5, "SAME_TOPIC": 0.5, "ELABORATES": 0.6, "CONTRADICTS": 0.3,
            "SUPERSEDES": 0.8}


@stage
class Neighbours:
    """Hits by graph: the neighbours of other lanes' best hits, and the memories that name entities near the question.

    * Relations (``write/relate``): a memory scores the sum over its edges to the ``seeds`` best hits of type weight x
      confidence / rank of the hit. Edges are followed both ways. Ranks come from all lanes and queries by RRF.
    * Entities (``write/extract``): a memory scores the sum over the entities that its key names of 1 / (1 + hops),
      where hops is the distance from the entities that the question names, at most ``hops``.

    Both are divided by their largest value for the question, weighted by ``relations`` and ``entities``, and added.
    Without edges and entities the lane is empty. It obeys the as-of rule: a memory said on a later day than the
    question is no neighbour. Lanes are named ``<name>:<kind>``, and belong to the first query of a question.
    """

    reads: ClassVar = ("hits", "queries", "questions", "memories", "texts", "edges", "entities", "links", "sessions")
    writes: ClassVar = ("hits",)

    relations: Weight = 1.0  # share of the neighbours of hits; 0: not looked for
    entities: Weight = 1.0  # share of the question's entities; 0: not looked for
    seeds: Count = 10  # best hits whose neighbours are taken
    hops: Annotated[int, Field(ge=0)] = 1  # relationships between an entity of the question and one that is looked up
    weights: dict[Kind, Weight] = Field(default_factory=_weights)  # of the kinds of edges; not published, ours
    depth: Count = 10  # hits per question: few, since most neighbours are no answers
    name: str = "neighbours"  # lanes are named neighbours:<kind>

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the neighbours of every question as hits."""
        visible = _visible(tables)
        parts = [(self.relations, self._edge_scores(tables)), (self.entities, self._entity_scores(tables, visible))]
        hits = HitsBuilder()
        kinds = dict(tables["memories"].select("memory", "kind").iter_rows())
        for question, query in first_queries(tables["queries"]).items():
            total: dict[int, float] = defaultdict(float)
            for weight, scores in parts:
                own = {memory: score for memory, score in scores.get(question, {}).items()
                       if weight and score > 0 and memory in visible[question]}
                most = max(own.values(), default=1.0)
                for memory, score in own.items():
                    total[memory] += weight * score / most
            hits.add_by_kind(self.name, query, total, kinds, self.depth)
        return Tables(hits=hits.frame())

    def _edge_scores(self, tables: Tables) -> dict[int, dict[int, float]]:
        """Return question -> neighbour of its best hits -> score."""
        beside: dict[int, list[tuple[int, float]]] = defaultdict(list)
        if self.relations:
            for source, target, kind, confidence in tables["edges"].iter_rows():
                worth = self.weights.get(kind, 0.0) * confidence
                beside[source].append((target, worth))
                beside[target].append((source, worth))
        scores: dict[int, dict[int, float]] = {}
        for question, seeds in best_hits(tables, self.seeds if beside else 0).items():
            own = scores.setdefault(question, defaultdict(float))
            for rank, seed in enumerate(seeds, 1):
                for other, worth in beside[seed]:
                    own[other] += worth / rank
        return scores

    def _entity_scores(self, tables: Tables, visible: dict[int, set[int]]) -> dict[int, dict[int, float]]:
        """Return question -> memory that names an entity near the question -> score."""
        if not self.entities or tables["entities"].is_empty():
            return {}
        asked = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
        keys = with_text(tables["memories"], tables["texts"], "key_id").select("corpus", "memory", "text")
        corpora = dict(tables["questions"].select("question", "corpus").iter_rows())
        texts = {corpus: list(rows.select("memory", "text").iter_rows())
                 for (corpus,), rows in keys.partition_by("corpus", as_dict=True).items()}
        scores: dict[int, dict[int, float]] = {}
        found: dict[tuple[int, int], list[str]] = {}
        for question, graph in graphs(*(tables[name] for name in ("entities", "links", "sessions", "questions"))):
            near = graph.distances(asked[question], self.hops)
            own = scores.setdefault(question, {})
            for memory, text in texts.get(corpora[question], ()) if near else ():
                if memory in visible[question]:
                    own[memory] = sum(1 / (1 + near[key]) for key in _entities(graph, memory, text, found)
                                      if key in near)
        return scores


def _entities(graph: Graph, memory: int, text: str, found: dict[tuple[int, int], list[str]]) -> list[str]:
    """Return the entities that a memory names; each is looked up once per graph."""
    at = (id(graph), memory)
    if at not in found:
        found[at] = graph.names_in(text)
    return found[at]


def best_hits(tables: Tables, count: int) -> dict[int, list[int]]:
    """Return question -> its best memories over all lanes and queries, by RRF; ties go to the lower id."""
    best = reciprocal_ranks(tables["hits"], tables["queries"]).sort(
        "question", "score", "memory", descending=[False, True, False]).group_by(
        "question", maintain_order=True).agg(pl.col("memory").head(count))
    return dict(best.iter_rows())


def _visible(tables: Tables) -> dict[int, set[int]]:
    """Return question -> the memories of its corpus that were said by its day."""
    memories = tables["memories"].select("corpus", "memory", "said_on")
    days: Iterator[tuple[int, int, object]] = tables["questions"].select("question", "corpus", "asked_on").iter_rows()
    seen: dict[tuple[int, object], set[int]] = {}
    out = {}
    for question, corpus, asked in days:
        if (corpus, asked) not in seen:
            own = memories.filter(pl.col("corpus") == corpus, as_of(asked=pl.lit(asked, pl.Datetime("us"))))
            seen[corpus, asked] = set(own["memory"])
        out[question] = seen[corpus, asked]
    return out
