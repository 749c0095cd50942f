"""Learned sparse encoders whose queries need no model: passages by a transformer, queries by a table of token weights.

Geng et al., Towards Competitive Search Relevance For Inference-Free Learned Sparse Retrievers (arXiv:2411.04403). A
passage gets a weight for each token of the vocabulary, also for tokens that it does not contain. A question gets the
idf of each of its own tokens. The score is the inner product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.costs import CHARACTERS
from memlab.models.local.base import LocalModel
from memlab.models.local.batching import by_characters, run_batches, tokenise
from memlab.models.protocols import Floats, Ints, Role
from memlab.stage import LocalPath, stage


@stage
class SparseTermEncoder(LocalModel):
    """A ``SparseEncoder`` of sentence-transformers, from a folder or the hub, loaded at the first call.

    A vector is stored as the numbers of its heaviest ``terms`` tokens and then their weights (``term_matrix`` reads
    it), so that the store keeps it as it keeps any vector; empty places have weight 0. Numbers up to 2^24 are exact.
    """

    path: str | LocalPath | None = None  # search.lexical.encoder.path=FOLDER, or the name of a model on the hub
    name: str = "sparse"
    terms: Annotated[int, Field(ge=8)] = 512  # heaviest tokens of a text that are kept

    path_option: ClassVar = "search.lexical.encoder.path"

    def identity(self) -> dict[str, Any]:
        """Return all that can change a weight."""
        return self._identity("SparseTermEncoder", terms=self.terms)

    def dim(self) -> int:
        """Return the length of a stored vector: a number and a weight for each kept token."""
        return 2 * self.terms

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        """Yield (positions (b,), token numbers and weights (b, 2 terms)), longest texts first."""
        def work(model: Any, batch: list[str]) -> Floats:
            encode = model.encode_query if role == "query" else model.encode_document
            return self._heaviest(encode(batch, batch_size=len(batch), show_progress_bar=False,
                                         convert_to_sparse_tensor=False))

        models = self._load("SparseEncoder")
        yield from run_batches([texts], by_characters, CHARACTERS * self._budget(), models, work)

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether the model sees only its beginning: shape (n,); a query is read whole."""
        if role == "query":
            return np.zeros(len(texts), np.bool_)
        limit = self.token_limit()
        return tokenise(self._load("SparseEncoder")[0].tokenizer, texts, limit + 1).lengths > limit

    def token_limit(self) -> int:
        """Return the number of tokens that the model reads of a text."""
        return int(self._load("SparseEncoder")[0].max_seq_length or 512)

    def _heaviest(self, weights: Any) -> Floats:
        """Return the heaviest tokens of weights (b, vocabulary), a tensor, as numbers and weights (b, 2 terms)."""
        top = weights.float().topk(min(self.terms, weights.shape[1]), dim=1)
        rows = np.zeros((len(weights), 2, self.terms), np.float32)
        rows[:, 0, :top.indices.shape[1]] = top.indices.cpu().numpy()
        rows[:, 1, :top.values.shape[1]] = top.values.clamp(min=0).cpu().numpy()
        return rows.reshape(len(rows), -1)


def term_matrix(vectors: Floats) -> scipy.sparse.csr_array:
    """Return the weights (n, vocabulary) of stored vectors (n, 2 terms), as wide as their highest token number.

    >>> term_matrix(np.array([[4, 1, 0, .5, 2, 0]], np.float32)).toarray().tolist()
    [[0.0, 2.0, 0.0, 0.0, 0.5]]
    """
    tokens, weights = np.split(vectors, 2, axis=1)
    row, place = np.nonzero(weights)
    columns = tokens[row, place].astype(np.int64)
    matrix = scipy.sparse.csr_array((weights[row, place].astype(np.float64), (row, columns)),
                       shape=(len(vectors), int(columns.max(initial=-1)) + 1))
    matrix.sort_indices()
    return matrix
