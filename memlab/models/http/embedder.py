"""Embeddings from a service: OpenAI's form (which vLLM also serves) and Voyage's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.http.client import HttpModel, Service, malformed_reply, read_items
from memlab.models.local.batching import spread
from memlab.models.protocols import Floats, Ints, Role
from memlab.stage import stage


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
        prefix = self.query_prefix if role == "query" else self.document_prefix
        # services refuse an empty text, so a space is sent
        inputs = [(prefix + text)[: self.max_characters] or " " for text in texts]
        with self._service("embeddings") as service:

            def work(batch: Ints) -> Floats:
                reply = service.post(self._body([inputs[i] for i in batch], role))
                return _vectors(service, reply, len(batch), self.dimensions)

            yield from spread(self._batches(inputs), [work] * self.parallel)

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether it is cut to ``max_characters``; cuts by the service cannot be seen."""
        prefix = len(self.query_prefix if role == "query" else self.document_prefix)
        limit = self.max_characters or 10**12
        return np.array([prefix + len(text) > limit for text in texts], np.bool_)

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

    def _body(self, texts: list[str], role: Role) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": texts}
        if self.form == "voyage":
            body["input_type"] = role
        if self.ask_dimensions:
            body["output_dimension" if self.form == "voyage" else "dimensions"] = self.dimensions
        return body


def _vectors(service: Service, reply: Any, count: int, width: int) -> Floats:
    """Return the unit vectors of a reply; null and NaN stay NaN, which the store refuses."""
    vectors = read_items(service, reply, "data", "embedding", count, f"{count} vectors of one length")
    if vectors.shape != (count, width):
        raise malformed_reply(service, f"holds {count} vectors of length {vectors.shape[-1]}, expected {count} of "
                                       f"length {width} (dimensions)")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, np.finfo(np.float32).tiny)
