from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from memlab.data.mteb import MTEBSearch
from memlab.store import Store
from memlab.tables import Tables, frame
from tests.small import lexical

os.environ.setdefault("HF_HUB_OFFLINE", "1")
mteb = pytest.importorskip("mteb", reason="needs the extra: pip install memlab[mteb]")

DOCUMENTS = [{"id": "d1", "title": "Cats", "text": "cats purr softly"}, {"id": "d2", "title": "", "text": "dogs bark"},
             {"id": "d3", "title": "", "text": "fish are silent"}, {"id": "d4", "title": "", "text": "dogs swim"}]
QUERIES = [{"id": "q1", "text": "which purr"}, {"id": "q2", "text": "which dogs bark"}]


def by_shared_words(tables: Tables) -> Tables:
    """A ranker of two lines: turns by the number of words that they share with the question."""
    texts = dict(tables["texts"].iter_rows())
    turns = tables["turns"].with_row_index("unit").with_columns(pl.col("unit").cast(pl.Int64))
    rows = []
    for question, corpus, text, _ in tables["questions"].iter_rows():
        asked = set(texts[text].split())
        scored = [(len(asked & set(texts[t["text"]].split())), t["unit"])
                  for t in turns.filter(corpus=corpus).iter_rows(named=True)]
        for rank, (score, unit) in enumerate(sorted(scored, key=lambda s: (-s[0], s[1])), start=1):
            rows.append({"question": question, "unit": unit, "score": float(score), "rank": rank, "selected": False})
    units = frame("units", {"unit": turns["unit"], "corpus": turns["corpus"], "session": turns["session"],
                            "turns": [[t] for t in turns["turn"]], "level": ["turn"] * turns.height})
    return tables.updated({"units": units, "ranking": frame("ranking", pl.DataFrame(rows).to_dict())})


def datasets_of(rows):
    from datasets import Dataset

    return Dataset.from_list(rows)


def test_search_returns_documents_in_rank_order():
    model = MTEBSearch(by_shared_words)
    model.index(datasets_of(DOCUMENTS))
    found = model.search(datasets_of(QUERIES), top_k=2)
    assert found == {"q1": {"d1": 1.0, "d2": 0.5}, "q2": {"d2": 1.0, "d4": 0.5}}
    named = model.search(datasets_of(QUERIES), top_k=5, top_ranked={"q1": ["d3", "d4"], "q2": ["d4", "d2", "d1"]})
    assert {q: list(d) for q, d in named.items()} == {"q1": ["d3", "d4"], "q2": ["d2", "d4", "d1"]}


def test_a_real_pipeline_searches(tmp_path: Path) -> None:
    pipeline, store = lexical(), Store(tmp_path)
    model = MTEBSearch(lambda tables: pipeline.run(tables, store))
    model.index(datasets_of(DOCUMENTS))
    found = model.search(datasets_of(QUERIES), top_k=2)
    assert [next(iter(documents)) for documents in found.values()] == ["d1", "d2"]  # "purr"; "dogs" and "bark"


def test_a_ranker_runs_in_an_mteb_task():
    from mteb.abstasks import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models import SearchProtocol

    class Animals(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="Animals", description="A local task.", reference=None, type="Retrieval", category="t2t",
            modalities=["text"], eval_splits=["test"], eval_langs=["eng-Latn"], main_score="ndcg_at_10",
            dataset={"path": "memlab/animals", "revision": "1"}, date=("2024-01-01", "2024-01-02"), domains=["Written"],
            task_subtypes=[], license="mit", annotations_creators="derived", dialect=[], sample_creation="created",
            bibtex_citation="")

        def load_data(self, *_, **__):
            if not self.data_loaded:
                self.dataset = {"default": {"test": {
                    "corpus": datasets_of(DOCUMENTS), "queries": datasets_of(QUERIES), "top_ranked": None,
                    "relevant_docs": {"q1": {"d1": 1}, "q2": {"d4": 1, "d2": 0}}}}}
                self.data_loaded = True

    model = MTEBSearch(by_shared_words, name="memlab/words")
    assert isinstance(model, SearchProtocol)
    result = mteb.evaluate(model, Animals(), cache=None, co2_tracker=False)
    scores = result.task_results[0].scores["test"][0]
    assert result.model_name == "memlab/words"
    assert scores["recall_at_1"] == pytest.approx(0.5)  # d1 first for q1; d4 second for q2
    assert scores["mrr_at_10"] == pytest.approx((1 + 1 / 2) / 2)
