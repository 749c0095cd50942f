from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.local.backend import resolve
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import CELLS, LateInteraction, Room
from memlab.models.protocols import PairScorer
from memlab.search.hits import digits_of
from tests.examples import fewer

pytestmark = pytest.mark.slow

QUERIES = ["where did Anna move?", "who stayed in oslo", "dog", "?"]
PASSAGES = ["Anna moved to Lisbon.", "Bob stayed in Oslo, with his dog!", "...", "the weather was good. " * 30, "a dog"]


@pytest.fixture(scope="module")
def embedder() -> SentenceEmbedder:
    return SentenceEmbedder()


@pytest.fixture(scope="module")
def reference(embedder: SentenceEmbedder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(embedder._folder()), device="cpu")


def vectors(model, text: str, punctuation: bool, special: bool) -> np.ndarray:
    """Token vectors of one text, by sentence-transformers' own modules."""
    import torch

    out = model.encode(text, output_value="token_embeddings")
    ids = model.tokenizer(text, truncation=True, max_length=256)["input_ids"]
    words = model.tokenizer.convert_ids_to_tokens(ids)
    kept = [(special or w not in ("[CLS]", "[SEP]")) and (punctuation or w not in ("?", ".", ",", "!")) for w in words]
    unit = torch.nn.functional.normalize(out, dim=1).cpu().numpy()
    return unit[kept] if any(kept) else unit


def scores(scorer: LateInteraction, pairs: np.ndarray) -> np.ndarray:
    out = np.full(len(pairs), np.nan)
    for at, block in scorer.score(QUERIES, PASSAGES, pairs):
        assert np.isnan(out[at]).all(), "a pair was given twice"
        out[at] = block
    return out


@pytest.mark.parametrize("fields", [{}, {"special": True}, {"query_punctuation": True, "passage_punctuation": True}])
def test_equals_the_formula(embedder: SentenceEmbedder, reference, fields: dict) -> None:
    scorer = LateInteraction(embedder=embedder, **fields)
    pairs = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])
    asked = [vectors(reference, q, scorer.query_punctuation, scorer.special) for q in QUERIES]
    told = [vectors(reference, p, scorer.passage_punctuation, scorer.special) for p in PASSAGES]
    expected = [(asked[q] @ told[p].T).max(axis=1).mean() for q, p in pairs]
    np.testing.assert_allclose(scores(scorer, pairs), expected, atol=1e-4)


@fewer(10)  # each example encodes with the real model
@given(st.data())
def test_any_list_of_pairs_scores_as_the_full_grid(data: st.DataObject) -> None:
    scorer = LateInteraction(embedder=SentenceEmbedder(token_budget=256, max_length=32))
    grid = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])
    rows = data.draw(st.lists(st.integers(0, len(grid) - 1), max_size=12))  # repeats and any order
    np.testing.assert_allclose(scores(scorer, grid[rows]), scores(scorer, grid)[rows], atol=1e-5)


def test_token_vectors_come_with_the_ids_of_their_tokens(embedder: SentenceEmbedder) -> None:
    given, tokenizer = ["yes, a big dog!", "a dog.", "..."], embedder._encoders()[0].tokenizer
    found = {}
    for at, ids, matrices in LateInteraction(embedder=embedder).token_vectors(given, "document"):
        assert [matrix.shape for matrix in matrices] == [(len(row), 384) for row in ids]
        found |= {given[i]: tokenizer.convert_ids_to_tokens(row) for i, row in zip(at, ids)}
    assert found == {"yes, a big dog!": ["yes", "a", "big", "dog"], "a dog.": ["a", "dog"],
                     "...": ["[CLS]", ".", ".", ".", "[SEP]"]}  # nothing but punctuation: all of it counts


def test_every_passage_is_encoded_once(embedder: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = SentenceEmbedder.token_vectors

    def spy(self: SentenceEmbedder, texts: list[str], role: str, **flags: bool):
        seen.extend(texts)
        return real(self, texts, role, **flags)

    monkeypatch.setattr(SentenceEmbedder, "token_vectors", spy)
    pairs = np.array([(0, 1), (1, 1), (2, 1), (0, 4)])
    assert np.isfinite(scores(LateInteraction(embedder=embedder), pairs)).all()
    assert sorted(seen) == sorted([*QUERIES[:3], PASSAGES[1], PASSAGES[4]])


def test_blocks_of_products_are_split_when_memory_is_short(
    embedder: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])
    whole = scores(LateInteraction(embedder=embedder), pairs)
    monkeypatch.setattr("memlab.models.local.late_interaction.room_of", lambda device: Room(1))
    np.testing.assert_allclose(scores(LateInteraction(embedder=embedder), pairs), whole, atol=1e-6)


def test_a_word_in_common_wins(embedder: SentenceEmbedder) -> None:
    draw = random.Random(0)
    order = draw.sample(range(len(PASSAGES)), len(PASSAGES))
    best = scores(LateInteraction(embedder=embedder), np.array([(2, p) for p in order]))
    assert order[int(best.argmax())] == 4
    assert (best >= -1.0001).all()
    assert (best <= 1.0001).all()


def test_identity_holds_the_embedder_and_the_options(embedder: SentenceEmbedder) -> None:
    base = LateInteraction(embedder=embedder).identity()
    assert base["embedder"] == embedder.identity()
    for field in ("special", "query_punctuation", "passage_punctuation"):
        assert LateInteraction(embedder=embedder, **{field: not base[field]}).identity() != base
    assert isinstance(LateInteraction(embedder=embedder), PairScorer)


def test_no_pairs_no_scores(embedder: SentenceEmbedder) -> None:
    assert list(LateInteraction(embedder=embedder).score(QUERIES, PASSAGES, np.zeros((0, 2), np.int64))) == []


def test_products_that_do_not_fit_are_computed_in_smaller_steps(
    embedder: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    pairs = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])
    whole, real, sizes = scores(LateInteraction(embedder=embedder), pairs), torch.Tensor.amax, []

    def amax(tensor: torch.Tensor, *args: int, **kwargs: int) -> torch.Tensor:
        sizes.append(tensor.numel())
        if tensor.numel() > 1600:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "amax", amax)
    room = Room(CELLS)
    monkeypatch.setattr("memlab.models.local.late_interaction.room_of", lambda device: room)
    np.testing.assert_allclose(scores(LateInteraction(embedder=embedder), pairs), whole, atol=1e-6)
    first = len(sizes)
    assert max(sizes) > 1600
    np.testing.assert_allclose(scores(LateInteraction(embedder=embedder), pairs), whole, atol=1e-6)
    assert max(sizes[first:]) <= 1600  # remembered


def test_every_local_model_halves_its_batches(monkeypatch: pytest.MonkeyPatch, embedder: SentenceEmbedder) -> None:
    """The encoder's own batches: vectors are the same after a lack of memory."""
    import torch

    from memlab.models.local.backend import Encoder

    def encoded() -> np.ndarray:
        out = np.zeros((len(PASSAGES), 384), np.float32)
        for at, vectors in SentenceEmbedder(token_budget=512).encode(PASSAGES, "document"):
            out[at] = vectors
        return out

    whole, real = encoded(), Encoder._forward

    def forward(self: Encoder, ids: np.ndarray, mask: np.ndarray):
        if len(ids) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(self, ids, mask)

    monkeypatch.setattr(Encoder, "_forward", forward)
    np.testing.assert_allclose(encoded(), whole, atol=1e-5)
    late = scores(LateInteraction(embedder=embedder), np.array([(0, 0), (1, 1), (2, 4)]))
    assert np.isfinite(late).all()


def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    for name, value in {"is_available": True, "device_count": 2, "get_device_capability": (9, 0)}.items():
        monkeypatch.setattr(torch.cuda, name, lambda *device, value=value: value)
    resolve.cache_clear()


@pytest.mark.parametrize(("fields", "products"), [({}, "fp16"), ({"dtype": "bf16"}, "fp16"), ({"dtype": "fp32"}, None),
                                                  ({"device": "cpu"}, None)])
def test_on_a_gpu_products_are_in_half_where_the_encoder_is(
    fields: dict, products: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The identity says so, and scores are rounded as coarsely as the coarser of the two formats."""
    gpus(monkeypatch)
    late = LateInteraction(embedder=SentenceEmbedder(**fields))
    assert late.identity().get("products") == products
    assert LateInteraction(embedder=late.embedder, products="fp32").identity().get("products") is None
    assert digits_of(late) == (6 if products is None else 2 if "dtype" in fields else 3)
    resolve.cache_clear()


def test_the_identity_on_a_cpu_is_what_it_was(embedder: SentenceEmbedder) -> None:
    """Cached scores are found by it."""
    assert list(LateInteraction(embedder=embedder).identity()) == [
        "is", "version", "embedder", "special", "query_punctuation", "passage_punctuation", "query_tokens"]


@pytest.mark.parametrize(("products", "dtype"), [("auto", "float32"), ("fp32", "float32"), ("fp16", "float16")])
def test_products_are_computed_in_the_format_that_is_set(
    products: str, dtype: str, embedder: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    pairs = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])
    whole, real, used = scores(LateInteraction(embedder=embedder), pairs), torch.Tensor.amax, set()
    monkeypatch.setattr(torch.Tensor, "amax", lambda tensor, **kwargs: used.add(str(tensor.dtype)) or
                        real(tensor, **kwargs))
    late = LateInteraction(embedder=embedder, products=products)
    got = scores(late, pairs)
    assert used == {f"torch.{dtype}"}
    np.testing.assert_allclose(got, whole, atol=0 if dtype == "float32" else 1e-3)
    assert digits_of(late) == (6 if dtype == "float32" else 3)
