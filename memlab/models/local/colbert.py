"""ColBERT models: encoders trained for late interaction, with their own token vectors.

Sentence-transformers (6 and later) reads the files that PyLate and Stanford's ColBERT write, with their settings for
marker tokens, query expansion and skipped tokens. PyLate itself pins older versions of sentence-transformers and
transformers than memlab needs, so it is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from memlab.errors import MemlabError
from memlab.models.local.base import LocalModel
from memlab.models.local.batching import pack, run_batches
from memlab.models.protocols import Ints, Role
from memlab.stage import stage


@stage
class ColbertEncoder(LocalModel):
    """A ColBERT model, for ``LateInteraction(embedder=ColbertEncoder(path=...))``, loaded at the first call.

    The model itself defines lengths, prefixes and skipped tokens, so the options of ``LateInteraction`` for special
    tokens and punctuation have no effect.
    """

    name: str = "colbert"

    path_option: ClassVar = "cross_encoder.embedder.path"

    def identity(self) -> dict[str, Any]:
        """Return all that can change a token vector."""
        return self._identity("ColbertEncoder")

    def token_vectors(
        self, texts: Sequence[str], role: Role, *, special: bool, punctuation: bool  # noqa: ARG002
    ) -> Iterator[tuple[Ints, Any, Any]]:
        """Yield positions (b,), unit vectors (b, length, dim) and which of them count (b, length), as tensors."""
        import torch

        def work(model: Any, batch: Ints) -> tuple[Any, Any]:
            encode = model.encode_query if role == "query" else model.encode_document
            rows = encode([texts[i] for i in batch], batch_size=len(batch), show_progress_bar=False)
            padded = torch.nn.utils.rnn.pad_sequence([row.float() for row in rows], batch_first=True)
            lengths = torch.tensor([len(row) for row in rows], device=padded.device)
            kept = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
            return torch.nn.functional.normalize(padded, dim=2), kept

        models = self._load("MultiVectorEncoder")
        characters = np.array([len(text) for text in texts], np.int64)
        batches = pack(characters, 4 * self._budget())  # about 4 characters per token
        for batch, (vectors, kept) in run_batches(batches, characters, models, work):
            yield batch, vectors, kept

    def token_ids(self, texts: Sequence[str], role: Role, *, special: bool, punctuation: bool) -> list[Ints]:  # noqa: ARG002
        """Raise MemlabError: a ColBERT model pads queries with tokens that stand for no word, which have no weight."""
        raise MemlabError("token weights need an ordinary encoder, not a ColBERT model", fix="weight no tokens")
