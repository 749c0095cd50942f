"""Protocols of the models that memlab calls, one for each kind of expensive call.

A model is constructed without its weights; they are loaded at the first call and stay loaded in the process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memlab.models.chat.protocol import Chat

Role = Literal["query", "document"]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors of unit length, so that an inner product is a cosine."""

    def identity(self) -> dict[str, Any]:
        """Return all that can change a vector: weights digest, pooling, prefixes, max length, dtype, backend."""

    def dim(self) -> int:
        """Return the length of a vector."""

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        """Yield (positions (b,), vectors (b, dim)), each text exactly once, in any order."""

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether the model sees only its beginning: shape (n,)."""


@runtime_checkable
class PairScorer(Protocol):
    """(query, passage) pairs to scores: a cross-encoder, or late interaction over token vectors."""

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), scores (b,))."""


@runtime_checkable
class TokenMatcher(Protocol):
    """Texts to one unit vector per token; the best inner products of two texts' tokens are their matches.

    query_tokens: of a longer query the first so many tokens count.
    """

    query_tokens: int

    def identity(self) -> dict[str, Any]:
        """Return all that can change a match."""

    def token_identity(self, role: Role) -> dict[str, Any]:
        """Return all that can change a token vector of a text in this role."""

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        """Yield (positions (b,), vocabulary ids (tokens,) per text, one matrix (tokens, dim) per text).

        Each text comes exactly once, in any order, with at least one token.
        """


def models_in(thing: Any) -> Iterator[Embedder | PairScorer | TokenMatcher | Chat]:
    """Yield the models in the fields of a stage and of the stages inside it, but none inside a model."""
    if isinstance(thing, Embedder | PairScorer | TokenMatcher | Chat):
        yield thing
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        names = {field.name for field in dataclasses.fields(thing)}
        names |= {"scorer"} if hasattr(thing, "scorer") else set()  # a stage may make its scorer only when it is used
        yield from models_in([getattr(thing, name) for name in sorted(names)])
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from models_in(part)
    elif isinstance(thing, dict):
        yield from models_in(list(thing.values()))


def origins(stage: Any) -> list[dict[str, Any]]:
    """Return the origin of each model of a stage whose weights are on this machine."""
    return [model.origin() for model in models_in(stage) if hasattr(model, "origin")]


def embedders_in(stage: Any) -> list[Embedder]:
    """Return the embedders among the models of a stage."""
    return [model for model in models_in(stage) if isinstance(model, Embedder)]


def on_gpu(model: Any) -> bool:
    """Return whether a model runs on a GPU of this machine; False for one that does not say, such as a hosted one."""
    return bool(hasattr(model, "on_gpu") and model.on_gpu())
