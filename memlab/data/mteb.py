"""A memlab pipeline as a search model of MTEB, so that it runs in MTEB's retrieval tasks (LongMemEval, LoCoMo, ...)::

    import mteb
    from memlab.data.mteb import MTEBSearch
    model = MTEBSearch(lambda tables: pipeline.run(tables, store))
    mteb.evaluate(model, mteb.get_tasks(tasks=["LoCoMo"]))

MTEB gives documents without dates and speakers: each becomes a session of one turn. Muennighoff et al., "MTEB:
Massive Text Embedding Benchmark" (EACL 2023), github.com/embeddings-benchmark/mteb (``SearchProtocol``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.data.beir import add_document
from memlab.data.benchmarks import Builder
from memlab.errors import MemlabError
from memlab.tables import Tables

if TYPE_CHECKING:
    from datasets import Dataset
    from mteb.models.model_meta import ModelMeta

Rank = Callable[[Tables], Tables]
"""From texts, sessions, turns and questions to (at least) ranking and units."""


class MTEBSearch:
    """Implementation of ``mteb.models.SearchProtocol``: ``index`` keeps the documents, ``search`` ranks them.

    A task with candidates for its queries (``top_ranked``) has one corpus for each set of candidates, any other task
    has one. Instructions that come with the queries are ignored.
    """

    def __init__(self, rank: Rank, name: str = "memlab/pipeline", revision: str = "1") -> None:
        self._rank, self._name, self._revision = rank, name, revision
        self._documents: dict[str, tuple[str, str]] = {}

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """Name and revision under which MTEB files the results."""
        from mteb.models.model_meta import ModelMeta

        return ModelMeta.create_empty(overwrites={"name": self._name, "revision": self._revision})

    def index(self, corpus: Dataset, **settings: Any) -> None:  # noqa: ARG002 - MTEB passes more than is needed
        """Keep the documents of a corpus with the columns id, text and perhaps title."""
        self._documents = {str(d["id"]): (d.get("title") or "", d["text"]) for d in corpus}

    def search(self, queries: Dataset, *, top_k: int, top_ranked: Mapping[str, list[str]] | None = None,
               **settings: Any) -> dict[str, dict[str, float]]:  # noqa: ARG002
        """Return query -> document -> score for at most ``top_k`` documents.

        The score is 1 / rank: MTEB sorts by it, and so keeps the order in which memlab broke ties.
        """
        if not self._documents:
            raise MemlabError("there is nothing to search", fix="call index first")
        names = [str(q["id"]) for q in queries]
        pools = [tuple(sorted(top_ranked.get(n, ()))) if top_ranked is not None else tuple(self._documents)
                 for n in names]
        out: dict[str, dict[str, float]] = {name: {} for name in names}
        corpora = {pool: i for i, pool in enumerate(dict.fromkeys(pools))}
        tables = self._tables(corpora, [(n, str(q["text"]), corpora[p]) for n, q, p in zip(names, queries, pools)])
        ranked = self._rank(tables)
        best = (
            ranked["ranking"].join(ranked["units"].select("unit", "corpus", "session"), on="unit")
            .group_by("question", "corpus", "session").agg(pl.col("rank").min()).sort("question", "rank", "session")
        )
        documents = {i: pool for pool, i in corpora.items()}
        for question, corpus, session, _ in best.iter_rows():
            scores = out[names[question]]
            if len(scores) < top_k:
                scores[documents[corpus][session]] = 1.0 / (len(scores) + 1)
        return out

    def _tables(self, corpora: Mapping[tuple[str, ...], int], queries: Sequence[tuple[str, str, int]]) -> Tables:
        build = Builder()
        for pool, corpus in corpora.items():
            build.corpus(corpus=corpus, name=str(corpus))
            for session, name in enumerate(pool):
                title, text = self._documents[name]
                add_document(build, corpus, session, name, title, text)
        for number, (name, text, corpus) in enumerate(queries):
            build.question(question=number, corpus=corpus, text=text, asked_on=None, name=name, answer=None,
                           category="all", abstain=False, scored=False)
        return build.tables().only(("texts", "sessions", "turns", "questions"))
