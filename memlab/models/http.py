"""Embedders and rerankers behind a service: OpenAI's form of embeddings (which vLLM serves too) and Voyage's, and the
form of relevance scores that Jina, Cohere and vLLM share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.connection import Connection
from memlab.models.protocols import Floats, Ints, Role
from memlab.models.server import ServerSettings
from memlab.pipeline.stage import stage
from memlab.support.errors import MemlabError
from memlab.support.text.display import replace_surrogates

if TYPE_CHECKING:
    import httpx

@stage
class HttpModel(ServerSettings):
    """A model behind a JSON service over HTTP; requests are repeated as ``memlab.models.connection`` says."""

    # longer passages are cut before they are sent; null: the service cuts them
    max_characters: Annotated[int, Field(ge=1)] | None = None
    batch: Annotated[int, Field(ge=1)] = 100  # passages per request; a request holds one question
    parallel: Annotated[int, Field(ge=1)] = 4  # requests at a time

    wrong_fix: ClassVar[str] = "check model and dimensions, or send less at once (batch, max_characters)"

    def _ask(self, path: str, batches: Iterable[Ints], body: Callable[[Ints], dict[str, Any]],
             read: Callable[[httpx.Response, int], Floats]) -> Iterator[tuple[Ints, Floats]]:
        """Yield (positions (b,), what is read from the reply to ``body(positions)``), in any order."""
        with Connection(self) as connection:
            def ask(batch: Ints) -> Floats:
                return connection.post(path, body(batch), lambda reply: read(reply, len(batch)))

            yield from connection.ask_all(batches, ask, self.parallel)

    def _payload_text(self, text: str) -> str:
        """Return a text as it is sent: services refuse empty texts and unpaired surrogates."""
        return replace_surrogates(text[: self.max_characters], "\ufffd") or " "


@stage
class HttpEmbedder(HttpModel):
    """Posts texts to ``{url}/embeddings`` and returns unit vectors.

    ``form: voyage`` also sends whether a text is a query or a document (``input_type``); other services need a prefix
    for that. A text longer than ``max_characters`` is cut before it is sent, so that the cut is known.
    """

    dimensions: Annotated[int, Field(ge=1)]
    form: Literal["openai", "voyage"] = "openai"
    ask_dimensions: bool = False
    query_prefix: str = ""  # what the model wants before a question
    document_prefix: str = ""  # ... and before a passage
    batch: Annotated[int, Field(ge=1)] = 128  # texts per request
    batch_characters: Annotated[int, Field(ge=1)] = 200_000  # characters per request

    slot: ClassVar[str] = "embedder"

    def identity(self) -> dict[str, Any]:
        """Return all known settings that can change a vector; neither the address nor the key."""
        return {"is": "HttpEmbedder", "form": self.form, "model": self.model, "dimensions": self.dimensions,
                "ask_dimensions": self.ask_dimensions, "max_characters": self.max_characters,
                "prefix": {"query": self.query_prefix, "document": self.document_prefix}}

    def dim(self) -> int:
        """Return the length of a vector."""
        return self.dimensions

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        """Yield (positions (b,), unit vectors (b, dim)), one request's texts at a time, as replies come in."""
        inputs = [self._payload_text(self._prefix(role) + text) for text in texts]
        body: dict[str, Any] = {}
        if self.form == "voyage":
            body["input_type"] = role
        if self.ask_dimensions:
            body["output_dimension" if self.form == "voyage" else "dimensions"] = self.dimensions
        yield from self._ask("/embeddings", self._batches(inputs),
                             lambda batch: {"model": self.model, "input": [inputs[i] for i in batch], **body},
                             self.read_vectors)

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether it is cut to ``max_characters``; cuts by the service cannot be seen."""
        limit = (self.max_characters or 10**12) - len(self._prefix(role))
        return np.array([len(text) > limit for text in texts], np.bool_)

    def read_vectors(self, reply: httpx.Response, count: int) -> Floats:
        """Return the unit vectors (count, dim) of a reply; null and NaN become NaN, which the store refuses.

        Raises ValueError for a reply of another form, and MemlabError for vectors of another length.
        """
        vectors = _values(reply, "data", "embedding", count, f"does not hold {count} vectors of one length")
        if vectors.shape != (count, self.dimensions):
            raise MemlabError(f"the reply holds vectors of length {vectors[0].size}, expected {self.dimensions} "
                              "(dimensions)", where=f"{self.slot} {self.model}",
                              fix=f"{self.slot}.dimensions={vectors[0].size}, or ask_dimensions=true if the model can "
                                  "cut")
        peaks = np.abs(vectors).max(axis=1, keepdims=True)  # by them no square is too large, or too small
        vectors /= np.where(np.isinf(peaks), np.nan, np.where(peaks == 0, 1.0, peaks))
        unit: Floats = (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)).astype(np.float32)
        return unit

    def _prefix(self, role: Role) -> str:
        return self.query_prefix if role == "query" else self.document_prefix

    def _batches(self, inputs: Sequence[str]) -> Iterator[Ints]:
        """Group positions, in order, into requests within both limits."""
        start = size = 0
        for i, text in enumerate(inputs):
            if i > start and (i - start == self.batch or size + len(text) > self.batch_characters):
                yield np.arange(start, i)
                start, size = i, 0
            size += len(text)
        if start < len(inputs):
            yield np.arange(start, len(inputs))


@stage
class HttpReranker(HttpModel):
    """Posts one query and its passages to ``{url}/rerank``; scores are the service's own, usually in [0, 1]."""

    slot: ClassVar[str] = "cross_encoder"

    def identity(self) -> dict[str, Any]:
        """Return all known settings that can change a score; neither the address nor the key."""
        return {"is": "HttpReranker", "model": self.model, "max_characters": self.max_characters}

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""
        def body(batch: Ints) -> dict[str, Any]:
            return {"model": self.model, "query": replace_surrogates(queries[pairs[batch[0], 0]], "\ufffd") or " ",
                    "documents": [self._payload_text(passages[p]) for p in pairs[batch, 1]], "top_n": len(batch)}

        if len(pairs):
            yield from self._ask("/rerank", self._batches(pairs), body, read_scores)

    def _batches(self, pairs: Ints) -> Iterator[Ints]:
        """Group positions of pairs by query, one request's worth at a time."""
        order = np.argsort(pairs[:, 0], kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(pairs[order, 0])) + 1):
            for start in range(0, len(group), self.batch):
                yield group[start : start + self.batch]


def read_scores(reply: httpx.Response, count: int) -> Floats:
    """Return the scores (count,) of a reply; null, NaN and what float32 cannot hold become NaN.

    Raises ValueError for a reply of another form.
    """
    values = _values(reply, "results", "relevance_score", count, f"does not hold a score for each of {count} passages")
    if values.shape != (count,):
        raise ValueError("holds a score that is no number")
    with np.errstate(over="ignore", invalid="ignore"):
        scores = values.astype(np.float32)
    return np.where(np.isfinite(scores), scores, np.float32("nan"))


def _values(reply: httpx.Response, items: str, field: str, count: int, fault: str) -> NDArray[np.float64]:
    """Return a field of each item of a reply in the order of their indexes, null as NaN.

    Raises ValueError for a reply of another form, and unless there is one value for each index below ``count``.
    """
    try:
        values = {item["index"]: item[field] for item in reply.json()[items]}
        if values.keys() == set(range(count)):
            return np.array([values[i] for i in range(count)], np.float64)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise ValueError(f"{fault} ({type(error).__name__}: {error})") from None
    raise ValueError(fault)
