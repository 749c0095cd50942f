"""The store of one question to a live memory, so that several questions are answered side by side."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import polars as pl

from memlab.live.token_log import TokenLog
from memlab.live.vector_log import LiveStore, VectorLog
from memlab.models.protocols import Embedder, PairScorer, Role, TokenMatcher
from memlab.store.index import SegmentIndex
from memlab.store.kept import SavedCodes
from memlab.store.store import KEYS, Store
from memlab.store.token_index import TokenIndex
from memlab.store.token_vectors import Precision
from memlab.store.writer import Blocks

_S = TypeVar("_S", bound=Store)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_turn(method: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Run a method of the store while no other question of the memory runs one."""
    @wraps(method)
    def locked(self: _S, *args: _P.args, **options: _P.kwargs) -> _R:
        with self._turns:  # type: ignore[attr-defined]
            return method(self, *args, **options)
    return locked


class QuestionStore(Store):
    """A memory's store for one question: what belongs to the question leaves with it.

    Vectors of documents, objects that are kept, and replies are the memory's. Questions take turns at the vectors and
    at the models that make them, since a model's tokenizer serves one thread at a time; chat models answer several.

    Args:
        memory: The store of the memory.
        turns: The lock that all questions of the memory share.
    """

    shares_results: ClassVar[bool] = False

    def __init__(self, memory: LiveStore, turns: RLock) -> None:
        super().__init__(memory.root)
        self._memory, self._turns = memory, turns
        self.made, self.found, self._completions = memory.made, memory.found, memory._completions

    vectors = _in_turn(Store.vectors)
    dim = _in_turn(Store.dim)
    truncated = _in_turn(Store.truncated)
    pair_scores = _in_turn(Store.pair_scores)
    token_vectors = _in_turn(Store.token_vectors)

    def iter_vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role, batch: int = 65536) -> Blocks:
        """Yield blocks of vectors, as ``Store.iter_vectors``; all are read in one turn."""
        with self._turns:
            blocks = list(super().iter_vectors(embedder, texts, role, batch))
        yield from blocks

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what the memory keeps under a key, made by ``make`` at first."""
        with self._turns:
            return self._memory.kept(key, make)

    def token_codes(self, name: str) -> SavedCodes:
        """Return what the memory has saved of an index of token vectors."""
        return self._memory.token_codes(name)

    def _index(self, kind: str, model: Embedder | PairScorer, role: Role | None = None) -> SegmentIndex:
        if (kind, role) == ("vectors", "document"):
            return self._memory._index(kind, model, role)
        path, identity = self._fingerprint(kind, model, role)
        if path not in self._indexes:
            self._indexes[path] = VectorLog(path, KEYS[kind], identity, None)
        return self._indexes[path]

    def _token_index(self, matcher: TokenMatcher, role: Role, precision: Precision) -> TokenIndex:
        if role == "document":
            return self._memory._token_index(matcher, role, precision)
        path, identity = self._token_fingerprint(matcher, role, precision)
        if path not in self._token_indexes:
            self._token_indexes[path] = TokenLog(path, identity, precision, None)
        return self._token_indexes[path]
