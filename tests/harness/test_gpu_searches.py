"""What is searched where, by numbers computed by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from memlab.harness import gpu_searches
from memlab.harness.gpu_searches import Search, searches
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import LateInteraction
from memlab.models.protocols import MARKERS
from memlab.pipeline import Pipeline
from memlab.search import exact
from memlab.search.dense import Dense
from memlab.search.exact import Flat
from memlab.search.faiss_index import HNSW, IVF, IVFPQ, SQ8
from memlab.search.late_interaction import WeightedLate
from memlab.stage import EmptyStage
from tests.search.world import WordEmbedder, day, world

MEMORIES = [(0, f"tea {i}", day(i)) for i in range(8)] + [(1, "cup", day(0)), (1, "red cup", day(0))]
QUESTIONS = [(0, "tea?", day(3)), (0, "tea and tea?", None), (1, "cup?", None)]
"""In the first pool of 8 one question sees the memories of days 0 to 3, and one all; in the second one sees both."""


@dataclass(frozen=True)
class Wide(WordEmbedder):
    dimensions: int = 100


def found(cards: bool = True, **stages) -> Search:
    one, = searches(Pipeline(**{"dense": EmptyStage(writes=("hits",)), **stages}), world(MEMORIES, QUESTIONS), cards)
    return one


def dense(index, cards: bool = True) -> Search:
    return found(cards, dense=Dense(embedder=Wide(), index=index))


@pytest.mark.parametrize(("least", "sent", "where"), [
    (1200, 0, "1 on the card, 1 on the CPU"),  # (4 + 8) x 100 products in the first pool, 2 x 100 in the second
    (1201, 0, "left to the CPU, which takes about 0.1 ms a question"), (200, 0, "on the card"), (0, 1, "on the card"),
    (401, 1, "left to the CPU, which takes about 0.1 ms a question")])  # 8 x 100 numbers are sent
def test_the_plan_decides_as_the_search_does(least: int, sent: int, where: str, monkeypatch: pytest.MonkeyPatch
                                             ) -> None:
    monkeypatch.setattr(exact, "GPU_PAYS", least)
    monkeypatch.setattr(exact, "SENT", sent)
    told = dense(Flat())
    assert told.text == (f"dense (Flat): 2 pools of up to 8 vectors x 100; exact on the card from "
                         f"{least + 800 * sent:.1e} multiply-adds, the largest search has 1.2e+03: {where}")
    assert told.held == (("vectors searched exactly", 8 * 100 * 4 / 1e9) if "on the card" in where else None)
    assert dense(Flat(device="cpu")).text.endswith("; exact on the CPU, about 0.1 ms a question")
    assert dense(Flat(), cards=False).held is None


def test_faiss_has_large_pools_alone_and_says_what_keeps_it_from_the_card() -> None:
    ivf = dense(IVF(exact_below=5))
    assert ("FAISS from 5 vectors a pool (exact_below), the largest has 8; FAISS on the card, if its build is one for "
            "GPUs; 1 of 2 questions are filtered by date, and stay on the CPU; exact on the card from") in ivf.text
    assert ivf.held == ("FAISS index", 8 * (4 * 100 + 8) / 1e9)
    assert dense(IVFPQ(exact_below=5)).held == ("FAISS index", 8 * (48 + 8) / 1e9)
    small = dense(IVF())
    assert "FAISS from 20,000 vectors a pool (exact_below), the largest has 8; exact on the card from" in small.text
    assert small.held is None
    for index, why in ((HNSW(exact_below=1), "FAISS has no such index"), (SQ8(exact_below=1), "FAISS has no such"),
                       (IVFPQ(exact_below=1, m=10), "m=10, and a GPU reads codes of"),
                       (IVF(exact_below=1, nprobe=4096), "nprobe=4096, and a GPU searches 2048 lists at most")):
        told = dense(index)
        assert f"FAISS on the CPU ({why}" in told.text
        assert told.held is None
    assert "FAISS on the CPU" in dense(IVF(exact_below=1), cards=False).text
    assert "FAISS on the CPU" in dense(IVF(exact_below=1, device="cpu")).text


def test_vectors_of_unknown_size_are_said_to_be_so() -> None:
    assert "how many numbers a vector has is not known" in found(dense=Dense(embedder=WordEmbedder())).text


@pytest.mark.parametrize(("width", "precision", "bytes_each"), [
    (384, "fp32", 384 * 4 + 4), (1024, "fp16", 1024 * 2 + 4)])
def test_token_vectors_and_their_disk(width: int, precision: str, bytes_each: int, monkeypatch: pytest.MonkeyPatch
                                      ) -> None:
    monkeypatch.setattr(SentenceEmbedder, "token_width", lambda self: width)
    monkeypatch.setattr(gpu_searches, "size", lambda model: (.1, width))
    told = found(late=WeightedLate(matcher=LateInteraction(embedder=SentenceEmbedder())))
    first, second = sum(len(f"tea {i}") / 4 + MARKERS for i in range(8)), 3 / 4 + 7 / 4 + 2 * MARKERS
    total = first + second
    assert told.text == (f"late (WeightedLate): about {total:,.0f} token vectors x {width:,} numbers in {precision}: "
                         "under 1 MB of disk in the store (tokens estimated, 4 characters each); matched on the card")
    assert told.held is not None
    assert told.held[1] == pytest.approx(first * bytes_each / 1e9)
    monkeypatch.setattr(gpu_searches, "tokens_read", lambda characters, limit: characters * 1e6)
    gb = sum(len(text) for _, text, _ in MEMORIES) * 1e6 * bytes_each / 1e9
    told = found(False, late=WeightedLate(matcher=LateInteraction(embedder=SentenceEmbedder())))
    assert f"numbers in {precision}: {gb:,.1f} GB of disk" in told.text
    assert told.text.endswith("matched on the CPU")
    assert told.held is None


def test_a_stated_precision_is_the_one_that_is_planned() -> None:
    late = WeightedLate(matcher=LateInteraction(embedder=SentenceEmbedder()), precision="int8")
    assert "x 384 numbers in int8" in found(late=late).text
