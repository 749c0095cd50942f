"""MaxSim by a small encoder, against the library's own token vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import CELLS, LateInteraction, Room
from memlab.models.protocols import PairScorer
from tests.examples import fewer
from tests.models.scores import pair_scores

pytestmark = pytest.mark.slow

QUERIES = ["where did Anna move?", "who stayed in oslo", "dog", "?"]
PASSAGES = ["Anna moved to Lisbon.", "Bob stayed in Oslo, with his dog!", "...", "the weather was good. " * 30, "a dog"]
GRID = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])


@pytest.fixture
def late(tiny: SentenceEmbedder) -> LateInteraction:
    return LateInteraction(embedder=tiny)


def scores(scorer: LateInteraction, pairs: np.ndarray = GRID) -> np.ndarray:
    return pair_scores(scorer, QUERIES, PASSAGES, pairs)


def test_equals_the_formula(late: LateInteraction, base: Path) -> None:
    """By the library's token vectors, without those of [CLS], [SEP] and punctuation; a text of nothing else has all."""
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(base), device="cpu")

    def vectors(text: str) -> np.ndarray:
        out = model.encode(text, output_value="token_embeddings")
        ids = model.tokenizer(text, truncation=True, max_length=64)["input_ids"]
        words = model.tokenizer.convert_ids_to_tokens(ids)
        kept = [word not in ("[CLS]", "[SEP]", "?", ".", ",", "!") for word in words]
        unit = torch.nn.functional.normalize(out, dim=1).cpu().numpy()
        return unit[kept] if any(kept) else unit

    expected = [(vectors(QUERIES[q]) @ vectors(PASSAGES[p]).T).max(axis=1).mean() for q, p in GRID]
    np.testing.assert_allclose(scores(late), expected, atol=1e-4)
    assert isinstance(late, PairScorer)
    assert scores(late, np.zeros((0, 2), np.int64)).size == 0


@pytest.fixture(scope="module")
def whole(tiny: SentenceEmbedder) -> np.ndarray:
    return scores(LateInteraction(embedder=tiny))


@fewer(10)
@given(st.data())
def test_any_list_of_pairs_scores_as_the_full_grid(whole: np.ndarray, base: Path, data: st.DataObject) -> None:
    scorer = LateInteraction(embedder=SentenceEmbedder(path=base, name="tiny", token_budget=256))
    rows = data.draw(st.lists(st.integers(0, len(GRID) - 1), max_size=12))  # repeats and any order
    np.testing.assert_allclose(scores(scorer, GRID[rows]), whole[rows], atol=1e-5)


def test_token_vectors_come_with_the_ids_of_their_tokens(late: LateInteraction, tiny: SentenceEmbedder) -> None:
    texts, tokenizer = ["yes, a big dog!", "a dog.", "..."], tiny._encoders()[0].tokenizer
    found = {}
    for at, ids, matrices in late.token_vectors(texts, "document"):
        assert [matrix.shape for matrix in matrices] == [(len(row), 32) for row in ids]
        found |= {texts[i]: tokenizer.convert_ids_to_tokens(row) for i, row in zip(at, ids)}
    assert found == {"yes, a big dog!": ["yes", "a", "big", "dog"], "a dog.": ["a", "dog"],
                     "...": ["[CLS]", ".", ".", ".", "[SEP]"]}  # nothing but punctuation: all of it counts


def test_every_passage_is_encoded_once(late: LateInteraction, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = SentenceEmbedder.token_vectors
    monkeypatch.setattr(SentenceEmbedder, "token_vectors",
                        lambda self, texts, role: seen.extend(texts) or real(self, texts, role))
    assert np.isfinite(scores(late, np.array([(0, 1), (1, 1), (2, 1), (0, 4)]))).all()
    assert sorted(seen) == sorted([*QUERIES[:3], PASSAGES[1], PASSAGES[4]])


def test_products_that_do_not_fit_are_computed_in_smaller_steps(
    late: LateInteraction, whole: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    real, sizes, room = torch.Tensor.amax, list[int](), Room(CELLS)

    def amax(tensor: torch.Tensor, *args: int, **kwargs: int) -> torch.Tensor:
        sizes.append(tensor.numel())
        if tensor.numel() > 1600:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "amax", amax)
    monkeypatch.setattr("memlab.models.local.late_interaction.room_of", lambda device: room)
    np.testing.assert_allclose(scores(late), whole, atol=1e-6)
    first = len(sizes)
    assert max(sizes) > 1600
    np.testing.assert_allclose(scores(late), whole, atol=1e-6)
    assert max(sizes[first:]) <= 1600  # remembered
