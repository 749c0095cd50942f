"""Content-addressed cache of the expensive calls to models: each result is computed once.

A vector's key is the fingerprint of (the model's identity, the role) and the text's hash; a pair score's key is the
fingerprint of the scorer and both texts' hashes. Each fingerprint has a folder of segments (``memlab.store.segment``)
and an index over them (``memlab.store.index``). Completions of chat models are lines of text, keyed by the prompt
(``memlab.store.completions``).
What a process has flushed stays, whatever ends it, and any number of processes may fill one store at once.
``memlab store info | verify | prune`` maintains it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.protocols import (
    Chat,
    Completion,
    Embedder,
    Floats,
    Ints,
    PairScorer,
    Prompt,
    Role,
    TokenMatcher,
    pair_costs,
    text_costs,
)
from memlab.pipeline.tables import Notes, Tables, distinct_texts
from memlab.store.completions import Completions
from memlab.store.index import Located, SegmentIndex, StoredRows
from memlab.store.segment import Keys, key_columns
from memlab.store.token_vectors import BITS, Precision, TokenVectors
from memlab.store.writer import ArrayWriter, TokenWriter, Writer, model_name
from memlab.support.arguments import Place, check_arguments
from memlab.support.paths import expand, store_root

KINDS = ("vectors", "truncated", "pairs", "tokens", "completions")
"""Names of the folders, by what they hold."""

_FORMATS = {"completions": 1}
_FORMAT = 2  # part of every other fingerprint: a change of the files' layout starts new folders

IN_MEMORY = 2 << 30
"""Bytes of vectors above which they stay in the store's mapped segments."""


class TextIndex(Protocol):
    """An index over texts. Its ``of(tables, ...)`` adds new texts and returns the part that a search needs."""

    def forget(self, left: pl.Series) -> None:
        """Forget all texts but those with these ids (n,)."""


_Index = TypeVar("_Index", bound=TextIndex)
_T = TypeVar("_T")


class Store:
    """Vectors, pair scores and completions, each computed once.

    Args:
        root: Folder of the store; None is ``$MEMLAB_HOME/store``.
        flush_mb: Results are written when this many MB have gathered. 64 MB are 40,000 vectors of 384 numbers: few
            segments to list, at little memory.
        flush_seconds: Or when the last write was this long ago: the most work that a ``kill -9`` can cost.

    Attributes:
        made: Distinct inputs computed since the store was opened, by kind ("vectors", "pairs", "tokens",
            "completions").
        found: Rows that had been stored before, by kind.
        replies: (Chat model, completion) of what the running stage was given, stored ones too.
        caching_seconds: Processor seconds of results cached for later: calls to models, and indexes (``caching``).
        shares_results: Whether arms on this store share results of stages in the memory of the process. Live memories
            do not: they have one arm, each question is new, and what was forgotten should be nowhere.
        caches_indexes: Whether indexes are cached between questions, as live memories do.
    """

    shares_results: ClassVar[bool] = True
    caches_indexes: ClassVar[bool] = False

    @check_arguments
    def __init__(self, root: Place | None = None, *, flush_mb: Annotated[float, Field(ge=0)] = 64,
                 flush_seconds: Annotated[float, Field(ge=0)] = 30) -> None:
        self.root = expand(root) if root is not None else store_root()
        self.made: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.replies: list[tuple[str, Completion]] = []
        self.caching_seconds = 0.0
        self._flush = flush_mb * 1e6, flush_seconds
        self._indexes: dict[Path, SegmentIndex] = {}
        self._completions: dict[Path, Completions] = {}

    @contextmanager
    def caching(self) -> Iterator[None]:
        """Add the processor seconds spent inside to ``caching_seconds``; it must not be nested."""
        start = time.process_time()
        try:
            yield
        finally:
            self.caching_seconds += time.process_time() - start

    def vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> Floats:
        """Return the vectors (n, dim) of a ``texts`` table, in its order; only what is missing is encoded."""
        if texts.is_empty():
            return np.empty((0, self.dim(embedder, role)), np.float32)
        return self.stored_vectors(embedder, texts, role)[np.arange(texts.height)]

    def stored_vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> StoredRows:
        """Return the vectors of a ``texts`` table as rows that stay on the disk until they are indexed."""
        def write(rows: Ints) -> None:
            missing = texts["text"].gather(rows).to_list()
            with self.caching():
                dim = embedder.dim()
            writer = ArrayWriter(index, keys[rows], model_name(embedder), "texts", dim, text_costs(embedder, missing),
                                 lambda i: f"{missing[i]!r:.120}", *self._flush)
            self._write(writer, "vectors", embedder, embedder.encode(missing, role))

        index, keys = self._index("vectors", embedder, role), key_columns(texts["text_id"])
        return index.rows(self._locate(index, "vectors", keys, write))

    def dim(self, embedder: Embedder, role: Role) -> int:
        """Return the length of an embedder's vectors; the model is loaded for it only if nothing is stored."""
        if width := self._index("vectors", embedder, role).width():
            return width
        with self.caching():
            return embedder.dim()

    def truncated(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> NDArray[np.bool_]:
        """Return for each of n texts whether the embedder truncates it, (n,); only what is missing is tokenised."""
        def write(rows: Ints) -> None:
            cut = embedder.truncated(texts["text"].gather(rows).to_list(), role)
            index.add([keys[rows], cut.astype(np.float32)[:, None]])

        index, keys = self._index("truncated", embedder, role), key_columns(texts["text_id"])
        found = index.rows(self._locate(index, "truncated", keys, write))
        return (found[np.arange(len(keys))] > 0).ravel()

    def pair_scores(self, scorer: PairScorer, queries: pl.DataFrame, passages: pl.DataFrame, pairs: Ints) -> Floats:
        """Return the scores (n,) of pairs (n, 2) of row numbers in two ``texts`` tables; scores what is missing.

        The scorer is given only the queries and passages of missing pairs, ordered by passage, then query, so
        that late interaction can work through the passages block by block.
        """
        pairs = np.asarray(pairs, np.int64).reshape(-1, 2)

        def write(rows: Ints) -> None:
            rows = rows[np.lexsort((pairs[rows, 0], pairs[rows, 1]))]
            q_rows, q = np.unique(pairs[rows, 0], return_inverse=True)
            p_rows, p = np.unique(pairs[rows, 1], return_inverse=True)
            q_texts, p_texts = queries["text"].gather(q_rows).to_list(), passages["text"].gather(p_rows).to_list()
            given = np.stack([q, p], axis=1)
            writer = ArrayWriter(index, keys[rows], model_name(scorer), "pairs", None,
                                 pair_costs(scorer, q_texts, p_texts, given),
                                 lambda i: f"{q_texts[q[i]]!r:.80} with {p_texts[p[i]]!r:.80}", *self._flush)
            self._write(writer, "pairs", scorer, scorer.score(q_texts, p_texts, given))

        index = self._index("pairs", scorer)
        keys = np.hstack([key_columns(queries["text_id"])[pairs[:, 0]], key_columns(passages["text_id"])[pairs[:, 1]]])
        return index.rows(self._locate(index, "pairs", keys, write))[np.arange(len(keys))].ravel()

    def token_vectors(self, matcher: TokenMatcher, texts: pl.DataFrame, role: Role,
                      precision: Precision = "fp32") -> TokenVectors:
        """Return the token vectors of a ``texts`` table, in its order; only what is missing is encoded.

        They are memory-mapped. Each number format is stored on its own.
        """
        def write(rows: Ints) -> None:
            missing = texts["text"].gather(rows).to_list()
            writer = TokenWriter(index, keys[rows], model_name(matcher), text_costs(matcher, missing),
                                 lambda i: f"{missing[i]!r:.120}", precision, *self._flush)
            self._write(writer, "tokens", matcher, matcher.token_vectors(missing, role))

        index, keys = self._token_index(matcher, role, precision), key_columns(texts["text_id"])
        return index.tokens(self._locate(index, "tokens", keys, write), BITS[precision])

    def completions(self, chat: Chat, prompts: Sequence[Prompt], notes: Notes | None = None) -> list[Completion]:
        """Return the completions of prompts, in their order; only missing ones are asked, each prompt once.

        A refused prompt (finish "refused") is asked again next time, and counts as neither made nor found. How many
        were incomplete, mended, or made without what the server refuses is added to ``notes``.
        """
        path, identity = self._fingerprint_of("completions", model_name(chat), chat.identity(), None)
        log = self._completions.setdefault(path, Completions(path, identity))
        keys = [prompt.key() for prompt in prompts]
        known = log.find(keys)
        self.found["completions"] += sum(key in known for key in keys)
        missing = {key: prompt for key, prompt in zip(keys, prompts) if key not in known}
        with self.caching(), closing(log.ask(chat, missing)) as replies:
            for key, completion in replies:
                known[key] = completion
                self.made["completions"] += completion.finish != "refused"
        given = [known[key] for key in keys]
        self.replies += [(model_name(chat), completion) for completion in given if completion.finish != "refused"]
        if notes is not None:
            _note(given, model_name(chat), notes)
        return given

    def index(self, key: Hashable, make: Callable[[], _Index]) -> _Index:  # noqa: ARG002  (live memories cache them)
        """Return the index of a key, made by ``make``; a live memory caches it between questions.

        Here each is new (``caches_indexes`` is False), so that what a stage returns depends on its tables alone.
        """
        return make()

    def cached(self, tables: Tables, names: Iterable[str], key: Hashable, make: Callable[[], _T]  # noqa: ARG002
               ) -> _T:
        """Return what ``make`` makes of the tables with these names; a live memory caches it until its sessions change.

        The key says what is made, and by which settings.
        """
        return make()

    def codes_file(self, name: str) -> Path | None:  # noqa: ARG002  (live memories have one)
        """Return the file of a live memory's index of token vectors; None if it is not saved."""
        return None

    def missing(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> int:
        """Return the number of distinct texts whose vectors are not stored."""
        keys = key_columns(texts["text_id"])
        return len(self._index("vectors", embedder, role).find(keys).missing(keys))

    def missing_tokens(self, matcher: TokenMatcher, texts: pl.DataFrame, role: Role, precision: Precision) -> Ints:
        """Return the first row of each distinct text whose token vectors are not stored, in order."""
        keys = key_columns(texts["text_id"])
        return self._token_index(matcher, role, precision).find(keys).missing(keys)

    def _locate(self, index: SegmentIndex, kind: str, keys: Keys, write: Callable[[Ints], None]) -> Located:
        """Return where all keys (n, w) are stored; ``write(rows)`` computes and stores those of missing rows."""
        located = index.find(keys)
        self.found[kind] += located.found
        if located.found < len(keys):
            write(located.missing(keys))
            located = index.find(keys)
        return located

    def _write(self, writer: Writer, kind: str, model: Any, blocks: Iterator[Any]) -> None:
        """Store a model's results; its ``note() -> str``, if it has one, is shown beside the progress."""
        try:
            with self.caching():
                writer.write(blocks, getattr(model, "note", lambda: ""))
        finally:
            self.made[kind] += writer.stored

    def _index(self, kind: str, model: Embedder | PairScorer, role: Role | None = None) -> SegmentIndex:
        """Return the index of a fingerprint; the first write creates its folder."""
        return self._open_index(kind, role, *self._fingerprint_of(kind, model_name(model), model.identity(), role))

    def _token_index(self, matcher: TokenMatcher, role: Role, precision: Precision) -> SegmentIndex:
        identity = {**matcher.token_identity(role), "precision": precision}
        return self._open_index("tokens", role, *self._fingerprint_of("tokens", model_name(matcher), identity, role))

    def _open_index(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:
        if path not in self._indexes:
            self._indexes[path] = self._open(kind, role, path, identity)
        return self._indexes[path]

    def _open(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:  # noqa: ARG002
        """Open the index of a fingerprint; the store of a live memory keeps some in memory."""
        return SegmentIndex(path, identity)

    def _fingerprint_of(self, kind: str, name: str, identity: dict[str, Any], role: Role | None) -> tuple[Path, str]:
        """Return the folder of a model's results, and the text that describes it."""
        fields = {"format": _FORMATS.get(kind, _FORMAT), "kind": kind, "role": role, "identity": identity}
        digest = hashlib.blake2b(json.dumps(fields, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
        # the name is not part of the digest: two folders with one model's weights are one fingerprint
        return self.root / kind / digest, json.dumps({"name": name, **fields}, indent=1, default=str)


def _note(replies: Sequence[Completion], name: str, notes: Notes) -> None:
    """Count repaired, refused and faulty replies among the notes of a run."""
    counts = Counter(f"replies {r.fault}" for r in replies if r.fault and r.finish != "refused")
    counts["prompts were refused, since they do not fit into the window"] = sum(r.finish == "refused" for r in replies)
    counts["replies had to be mended, or asked for again, to be the JSON that was asked for"] = sum(
        r.repaired for r in replies)
    for what, number in counts.items():
        notes.add(number, len(replies), f"{name}: {what}")


@dataclass(frozen=True)
class Rows:
    """Some rows of vectors, gathered when they are indexed.

    >>> Rows(np.eye(3), np.array([2, 0]))[:1]
    array([[0., 0., 1.]])
    """

    base: Floats | StoredRows | Rows
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Floats:
        return self.base[self.rows[at]]


def encode(store: Store, embedder: Embedder, texts: pl.DataFrame, ids: pl.Series, role: Role) -> Rows:
    """Return the vectors of the texts with these ids (n,), in their order; each distinct text is encoded once."""
    distinct, at = distinct_texts(texts, ids)
    if distinct.height * store.dim(embedder, role) * 4 > IN_MEMORY:
        return Rows(store.stored_vectors(embedder, distinct, role), at)
    return Rows(store.vectors(embedder, distinct, role), at)


def store_at(place: str | None) -> Store:
    """Return the store of a folder, opened once per process; None is the default folder."""
    return _open_store(Path(place) if place else store_root())


@cache
def _open_store(root: Path) -> Store:
    return Store(root)
