"""Late interaction: a passage is scored by its best matching token for each token of the query (MaxSim).

It needs an encoder only. The formula and the products are in ``maxsim``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.local.colbert import ColbertEncoder
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.maxsim import Block, Products, choose_products, mean_matches
from memlab.models.protocols import Floats, Ints, Role
from memlab.stage import stage


@stage
class LateInteraction:
    """MaxSim over the token vectors of an encoder; every passage is encoded once per call and scored at once."""

    embedder: SentenceEmbedder | ColbertEncoder
    special: bool = False
    query_punctuation: bool = False  # a question mark carries no meaning and is rare in turns
    passage_punctuation: bool = False
    query_tokens: Annotated[int, Field(ge=1)] = 48  # of a longer question the first 48 tokens count
    # number format of the inner products; auto: fp16 on a GPU where the encoder runs in half precision, else fp32
    products: Literal["auto", "fp32", "fp16"] = "auto"

    version: ClassVar[int] = 1
    encodes_passages: ClassVar[bool] = True  # once each, whatever the number of pairs

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        halved = {} if self._products() == "fp32" else {"products": self._products()}
        return {"is": "LateInteraction", "version": self.version, "embedder": self.embedder.identity(),
                "special": self.special, "query_punctuation": self.query_punctuation,
                "passage_punctuation": self.passage_punctuation, "query_tokens": self.query_tokens, **halved}

    def on_gpu(self) -> bool:
        """Return whether the encoder runs on a GPU."""
        return self.embedder.on_gpu()

    def matches_on(self) -> tuple[str, Products]:
        """Return the device that stored token vectors are matched on, and the number format of their products."""
        return (self.embedder.first_device(), self._products()) if self.on_gpu() else ("cpu", "fp32")

    def token_width(self) -> int | None:
        """Return the numbers of a token's vector; None if the encoder's own configuration does not say."""
        return self.embedder.token_width()

    def origin(self) -> dict[str, Any]:
        """Return where the encoder came from."""
        return self.embedder.origin()

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        return mean_matches(queries, passages, pairs, self._encode, self._products())

    def token_identity(self, role: Role) -> dict[str, Any]:
        """Return all that can change a token vector of a text in this role."""
        return {"is": "LateInteraction", "version": self.version, "embedder": self.embedder.identity(),
                "special": self.special, "punctuation": self._punctuation(role)}

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        """Yield (positions (b,), per text the ids (tokens,) of the tokens that count, and their fp32 vectors).

        Raises MemlabError for a ColBERT model.
        """
        for positions, vectors, kept, ids in self._encode(texts, role):
            if ids is None:
                raise MemlabError("token weights need an ordinary encoder, not a ColBERT model", fix="weight no tokens")
            counted, flat = kept.cpu().numpy(), vectors[kept].float().cpu().numpy()
            ends = np.cumsum(counted.sum(axis=1))[:-1]
            yield np.asarray(positions, np.int64), np.split(ids[counted], ends), np.split(flat, ends)

    def token_limit(self) -> int | None:
        """Return the number of tokens that the encoder reads of a text; None if its model alone knows."""
        return self.embedder.token_limit() if isinstance(self.embedder, SentenceEmbedder) else None

    def _punctuation(self, role: Role) -> bool:
        return self.query_punctuation if role == "query" else self.passage_punctuation

    def _products(self) -> Products:
        if self.products != "auto":
            return self.products
        return choose_products(self.on_gpu(), self.embedder.identity()["dtype"])

    def _encode(self, texts: Sequence[str], role: Role) -> Iterator[Block]:
        """Yield the token vectors of texts, in blocks on the encoder's device."""
        return self.embedder.token_vectors(texts, role, special=self.special, punctuation=self._punctuation(role))
