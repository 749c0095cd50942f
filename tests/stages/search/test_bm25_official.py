"""The benchmark's BM25 against rank_bm25, which the benchmark runs."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import rank_bm25
from hypothesis import given
from hypothesis import strategies as st

from memlab.stages.search.bm25 import BM25Okapi
from tests.stages.search.test_bm25 import scores_by_corpus

texts = st.lists(st.text(alphabet="aAb ", max_size=12), min_size=1, max_size=8)


def okapi(corpus: list[str], query: str, **options: float) -> list[float]:
    return rank_bm25.BM25Okapi([t.split(" ") for t in corpus], **options).get_scores(query.split(" ")).tolist()


@given(texts, texts, st.text(alphabet="aAb ", max_size=8))
def test_equals_rank_bm25(one: list[str], two: list[str], query: str) -> None:
    """Words in most texts have a negative idf, so that its floor is at work all the time here."""
    got = scores_by_corpus(BM25Okapi(), [one, two], [query, query])
    assert got[0] == pytest.approx(okapi(one, query), abs=1e-6)
    assert got[1] == pytest.approx(okapi(two, query), abs=1e-6)


def test_equals_rank_bm25_on_longmemeval(shared_data: Path) -> None:
    with lzma.open(shared_data / "longmemeval_oracle.dev.json.xz") as file:
        records = json.load(file)
    corpora = [[t["content"] for session in r["haystack_sessions"] for t in session] for r in records]
    asked = [r["question"] for r in records]
    got = scores_by_corpus(BM25Okapi(), corpora, asked)
    worst = max(np.abs(np.array(mine) - okapi(corpus, query)).max()
                for mine, corpus, query in zip(got, corpora, asked))
    assert worst < 1e-6
