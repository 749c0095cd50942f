"""Content-addressed cache of the expensive calls to models: each result is computed once.

A vector's key is the fingerprint of (the model's identity, the role) and the text's hash; a pair score's key is the
fingerprint of the scorer and both texts' hashes. Each fingerprint has a folder of immutable files
(``memlab.store.segments``) and an index over them (``memlab.store.index``). Completions of chat models are lines of
text, keyed by the prompt (``memlab.store.completions``).
What a process has flushed stays, whatever ends it, and any number of processes may fill one store at once.
``memlab store info | verify | compact | prune`` maintains it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.chat.protocol import Chat, Completion, Prompt
from memlab.models.protocols import Embedder, Floats, Ints, PairScorer, Role, TokenMatcher, pair_costs, text_costs
from memlab.runtime.paths import expand, store_root
from memlab.store import token_index
from memlab.store.completions import Completions
from memlab.store.index import ArrayCache, SegmentIndex, SegmentVanished
from memlab.store.kept import Kept, SavedCodes
from memlab.store.segments import key_columns
from memlab.store.token_index import TokenIndex
from memlab.store.token_vectors import Precision, TokenVectors
from memlab.store.token_writer import TokenWriter
from memlab.store.writer import Blocks, BufferedWriter, model_name
from memlab.tables import Notes

KEYS = {"vectors": ["h0", "h1"], "truncated": ["h0", "h1"], "pairs": ["q0", "q1", "p0", "p1"],
        "tokens": token_index.KEYS}
"""Key columns, by kind: the halves of the hashes of a text, or of a query and a passage."""

_Kept = TypeVar("_Kept", bound=Kept)

_FORMAT = 1  # part of every fingerprint: a change of the files' layout starts new folders
_TRIES = 5  # rounds of "look up, compute, read" before giving up on a folder that others keep deleting


class Store:
    """Vectors, pair scores and completions, each computed once.

    Args:
        root: Folder of the store; None is ``$MEMLAB_HOME/store``.
        flush_mb: Results are written when this many MB have gathered. 64 MB are 40,000 vectors of 384 numbers: few
            segments to list, at little memory.
        flush_seconds: Or when the last write was this long ago: the most work that a ``kill -9`` can cost.
        memory_mb: Values kept in memory for a second call; beyond that they are read from the disk again.

    Attributes:
        made: Distinct inputs computed since the store was opened, by kind ("vectors", "pairs", "tokens",
            "completions").
        found: Rows that had been stored before, by kind.
        keeping_seconds: Time spent on what is kept for later: calls to models, and indexes (``keeping``).
        shares_results: Whether arms on this store share results of stages in the memory of the process. Live memories
            do not: they have one arm, each question is new, and what was forgotten should be nowhere.
    """

    shares_results: ClassVar[bool] = True

    def __init__(self, root: Path | None = None, *, flush_mb: float = 64, flush_seconds: float = 30,
                 memory_mb: float = 1024) -> None:
        self.root = expand(root) if root is not None else store_root()
        self.made: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.keeping_seconds = 0.0
        self._flush = flush_mb * 1e6, flush_seconds
        self._arrays = ArrayCache(int(memory_mb * 1e6))
        self._indexes: dict[Path, SegmentIndex] = {}
        self._token_indexes: dict[Path, TokenIndex] = {}
        self._completions: dict[Path, Completions] = {}

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Add the time spent inside to ``keeping_seconds``; it must not be nested."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.keeping_seconds += time.perf_counter() - start

    def vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> Floats:
        """Return the vectors (n, dim) of a ``texts`` table, in its order; only what is missing is encoded."""
        out = np.empty((texts.height, self.dim(embedder, role)), np.float32)
        for at, block in self._vectors(embedder, texts, role):
            out[at] = block
        return out

    def dim(self, embedder: Embedder, role: Role) -> int:
        """Return the length of an embedder's vectors; the model is loaded for it only if nothing is stored."""
        if width := self._index("vectors", embedder, role).width():
            return width
        with self.keeping():
            return embedder.dim()

    def iter_vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role, batch: int = 65536) -> Blocks:
        """Yield (rows of the table (b,), their vectors (b, dim)), b <= batch, each row once, in the store's order.

        For corpora that do not fit into memory: besides ``memory_mb``, one segment is in memory at a time.
        """
        for at, block in self._vectors(embedder, texts, role):
            for start in range(0, len(at), batch):
                yield at[start : start + batch], block[start : start + batch]

    def truncated(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> NDArray[np.bool_]:
        """Return for each of n texts whether the embedder truncates it, (n,); only what is missing is tokenised."""
        index = self._index("truncated", embedder, role)
        wanted = _text_keys(texts)

        def make(rows: Ints) -> None:
            cut = embedder.truncated(texts["text"].gather(rows).to_list(), role)
            index.add(wanted.select(index.keys)[rows], cut.astype(np.float32))

        out = np.empty(texts.height, np.bool_)
        for at, block in self._blocks(index, "truncated", wanted, make):
            out[at] = block > 0
        return out

    def pair_scores(self, scorer: PairScorer, queries: pl.DataFrame, passages: pl.DataFrame, pairs: Ints) -> Floats:
        """Return the scores (n,) of pairs (n, 2) of row numbers in two ``texts`` tables; scores what is missing.

        The scorer is given only the queries and passages of missing pairs, ordered by passage, then query, so
        that late interaction can work through the passages block by block.
        """
        pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
        index = self._index("pairs", scorer)
        wanted = _pair_keys(queries, passages, pairs)

        def make(rows: Ints) -> None:
            rows = rows[np.lexsort((pairs[rows, 0], pairs[rows, 1]))]
            q_rows, q = np.unique(pairs[rows, 0], return_inverse=True)
            p_rows, p = np.unique(pairs[rows, 1], return_inverse=True)
            q_texts, p_texts = queries["text"].gather(q_rows).to_list(), passages["text"].gather(p_rows).to_list()
            given = np.stack([q, p], axis=1)
            writer = BufferedWriter(index, wanted.select(index.keys)[rows], model_name(scorer), "pairs", (),
                                    pair_costs(scorer, q_texts, p_texts, given),
                                    lambda i: f"{q_texts[q[i]]!r:.80} with {p_texts[p[i]]!r:.80}", *self._flush)
            self._write(writer, "pairs", scorer, scorer.score(q_texts, p_texts, given))

        out = np.empty(len(pairs), np.float32)
        for at, block in self._blocks(index, "pairs", wanted, make):
            out[at] = block
        return out

    def token_vectors(self, matcher: TokenMatcher, texts: pl.DataFrame, role: Role,
                      precision: Precision = "fp32") -> TokenVectors:
        """Return the token vectors of a ``texts`` table, in its order; only what is missing is encoded.

        They are memory-mapped. Each number format is stored on its own.
        """
        index, wanted = self._token_index(matcher, role, precision), _text_keys(texts)
        located = index.find(wanted)
        missing = _missing(index, located)
        self.found["tokens"] += located.height - located["segment"].null_count()
        if len(missing):
            writer = TokenWriter(index, matcher, role, precision, *self._flush)
            try:
                with self.keeping():
                    writer.write(key_columns(texts["text_id"])[missing], texts["text"].gather(missing).to_list())
            finally:
                self.made["tokens"] += writer.stored
            located = index.find(wanted)
        return index.get(located)

    def completions(self, chat: Chat, prompts: Sequence[Prompt], notes: Notes | None = None) -> list[Completion]:
        """Return the completions of prompts, in their order; only missing ones are asked, each prompt once.

        A refused prompt (finish "refused") is asked again next time, and counts as neither made nor found. How many
        were incomplete, mended, or made without what the server refuses is added to ``notes``.
        """
        path, identity = self._fingerprint("completions", chat)
        log = self._completions.setdefault(path, Completions(path, identity))
        keys = [prompt.key() for prompt in prompts]
        known = log.find(keys)
        self.found["completions"] += sum(key in known for key in keys)
        missing = {key: prompt for key, prompt in zip(keys, prompts) if key not in known}
        with self.keeping(), closing(log.ask(chat, missing)) as replies:
            for key, completion in replies:
                known[key] = completion
                self.made["completions"] += completion.finish != "refused"
        given = [known[key] for key in keys]
        if notes is not None:
            _note(given, model_name(chat), notes)
        return given

    def kept(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept | None:  # noqa: ARG002  (live memories use them)
        """Return what a live memory keeps under a key from question to question, made by ``make`` at first.

        None: nothing is kept, so that what a stage returns depends on its tables alone.
        """
        return None

    def token_codes(self, name: str) -> SavedCodes | None:  # noqa: ARG002  (live memories save them)
        """Return what a live memory has saved of an index of token vectors; None: nothing is saved."""
        return None

    def missing(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> int:
        """Return the number of distinct texts whose vectors are not stored."""
        index = self._index("vectors", embedder, role)
        return len(_missing(index, index.find(_text_keys(texts))))

    def missing_tokens(self, matcher: TokenMatcher, texts: pl.DataFrame, role: Role, precision: Precision) -> Ints:
        """Return the first row of each distinct text whose token vectors are not stored, in order."""
        index = self._token_index(matcher, role, precision)
        return _missing(index, index.find(_text_keys(texts)))

    def _vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> Blocks:
        index = self._index("vectors", embedder, role)
        wanted = _text_keys(texts)

        def make(rows: Ints) -> None:
            missing = texts["text"].gather(rows).to_list()
            with self.keeping():
                dim = embedder.dim()
            writer = BufferedWriter(index, wanted.select(index.keys)[rows], model_name(embedder), "texts",
                                    (dim,), text_costs(embedder, missing),
                                    lambda i: f"{missing[i]!r:.120}", *self._flush)
            self._write(writer, "vectors", embedder, embedder.encode(missing, role))

        return self._blocks(index, "vectors", wanted, make)

    def _write(self, writer: BufferedWriter, kind: str, model: Any, blocks: Blocks) -> None:
        """Store a model's results; its ``note() -> str``, if it has one, is shown beside the progress."""
        try:
            with self.keeping():
                writer.write(blocks, getattr(model, "note", lambda: ""))
        finally:
            self.made[kind] += writer.stored

    def _index(self, kind: str, model: Embedder | PairScorer, role: Role | None = None) -> SegmentIndex:
        """Return the index of a fingerprint; the first write creates its folder."""
        path, identity = self._fingerprint(kind, model, role)
        if path not in self._indexes:
            self._indexes[path] = SegmentIndex(path, KEYS[kind], self._arrays, identity)
        return self._indexes[path]

    def _token_index(self, matcher: TokenMatcher, role: Role, precision: Precision) -> TokenIndex:
        path, identity = self._token_fingerprint(matcher, role, precision)
        if path not in self._token_indexes:
            self._token_indexes[path] = TokenIndex(path, identity)
        return self._token_indexes[path]

    def _token_fingerprint(self, matcher: TokenMatcher, role: Role, precision: Precision) -> tuple[Path, str]:
        identity = {**matcher.token_identity(role), "precision": precision}
        return self._fingerprint_of("tokens", model_name(matcher), identity, role)

    def _fingerprint(self, kind: str, model: Any, role: Role | None = None) -> tuple[Path, str]:
        """Return the folder of a model's results, and the text that describes it."""
        return self._fingerprint_of(kind, model_name(model), model.identity(), role)

    def _fingerprint_of(self, kind: str, name: str, identity: dict[str, Any], role: Role | None) -> tuple[Path, str]:
        fields = {"format": _FORMAT, "kind": kind, "role": role, "identity": identity}
        digest = hashlib.blake2b(json.dumps(fields, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
        # the name is not part of the digest: two folders with one model's weights are one fingerprint
        return self.root / kind / digest, json.dumps({"name": name, **fields}, indent=1, default=str)

    def _blocks(self, index: SegmentIndex, kind: str, wanted: pl.DataFrame, make: Callable[[Ints], None]) -> Blocks:
        """Yield (at, values) for all wanted rows; ``make(rows)`` computes and stores missing rows."""
        for attempt in range(_TRIES):
            located = index.find(wanted)
            if not attempt:
                self.found[kind] += located.height - located["segment"].null_count()
            missing = _missing(index, located)
            if len(missing):
                make(missing)
                located = index.find(wanted)
            done = [np.empty(0, np.int64)]
            try:
                for at, block in index.read(located):
                    yield at, block
                    done.append(at)
                return
            except SegmentVanished:  # another process merged or pruned the folder, or damage was noticed: look again
                wanted = wanted.join(pl.DataFrame({"at": np.concatenate(done)}), on="at", how="anti")
        raise MemlabError("segments keep vanishing while they are read", where=str(index.path),
                          fix="end whatever else clears this store")


def _note(replies: Sequence[Completion], name: str, notes: Notes) -> None:
    """Add what is no error, but belongs into a run's manifest."""
    told = Counter(f"replies {r.fault}" for r in replies if r.fault and r.finish != "refused")
    told["prompts were refused, since they do not fit into the window"] = sum(r.finish == "refused" for r in replies)
    told["replies had to be mended, or asked for again, to be the JSON that was asked for"] = sum(
        r.repaired for r in replies)
    told.update(part for r in replies if r.sent for part in r.sent.split("; "))
    for what, number in told.items():
        notes.add(number, len(replies), f"{name}: {what}")


_OPEN: dict[Path, Store] = {}


def store_at(place: str | None) -> Store:
    """Return the store of a folder, opened once per process; None is the default folder."""
    root = Path(place) if place else store_root()
    if root not in _OPEN:
        _OPEN[root] = Store(root)
    return _OPEN[root]


def _text_keys(texts: pl.DataFrame) -> pl.DataFrame:
    keys = pl.DataFrame(key_columns(texts["text_id"]), schema=dict.fromkeys(KEYS["vectors"], pl.UInt64))
    return keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("at"))


def _pair_keys(queries: pl.DataFrame, passages: pl.DataFrame, pairs: Ints) -> pl.DataFrame:
    q, p = key_columns(queries["text_id"])[pairs[:, 0]], key_columns(passages["text_id"])[pairs[:, 1]]
    keys = pl.DataFrame(np.hstack([q, p]), schema=dict.fromkeys(KEYS["pairs"], pl.UInt64))
    return keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("at"))


def _missing(index: SegmentIndex | TokenIndex, located: pl.DataFrame) -> Ints:
    """Return the first row of each key that is not stored, in order."""
    return located.filter(pl.col("segment").is_null()).unique(index.keys, keep="first")["at"].sort().to_numpy()
