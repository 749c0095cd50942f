"""ColBERT models: encoders trained for late interaction, with their own token vectors.

Sentence-transformers (6 and later) reads the files that PyLate and Stanford's ColBERT write, with their settings for
marker tokens, query expansion and skipped tokens. PyLate itself pins older versions of sentence-transformers and
transformers than memlab needs, so it is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from memlab.models.costs import CHARACTERS
from memlab.models.local.base import LocalModel
from memlab.models.local.batching import by_characters, run_batches
from memlab.models.local.maxsim import Block
from memlab.models.protocols import Role
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
    ) -> Iterator[Block]:
        """Yield blocks of one unit vector per token, without ids: queries are padded with tokens that mean no word."""
        import torch

        def work(model: Any, batch: list[str]) -> tuple[Any, Any]:
            encode = model.encode_query if role == "query" else model.encode_document
            rows = encode(batch, batch_size=len(batch), show_progress_bar=False)
            padded = torch.nn.utils.rnn.pad_sequence([row.float() for row in rows], batch_first=True)
            lengths = torch.tensor([len(row) for row in rows], device=padded.device)
            kept = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
            return torch.nn.functional.normalize(padded, dim=2), kept

        models = self._load("MultiVectorEncoder")
        budget = CHARACTERS * self._budget()
        for batch, (vectors, kept) in run_batches([texts], by_characters, budget, models, work):
            yield batch, vectors, kept, None
