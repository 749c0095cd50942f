"""Content-addressed cache of the expensive calls: what a model said once, it is not asked again.

A vector's key is the fingerprint of (the model's identity, the role) and the text's hash; a pair score's key is the
fingerprint of the scorer and both texts' hashes. A fingerprint is a folder (``memlab.store.index``) of immutable files
(``memlab.store.segments``). What a chat model said is text, and lies in lines (``memlab.store.completions``),
keyed by the prompt.
Whatever ends a process, what it flushed stays, and any number of processes may fill one store at once.
``python -m memlab.store info | verify | compact | prune`` looks after it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.chat.protocol import Chat, Completion, Prompt
from memlab.models.protocols import Embedder, Floats, Ints, PairScorer, Role, TokenMatcher
from memlab.runtime.home import store_root
from memlab.store.completions import Completions
from memlab.store.index import Arrays, Folder, Gone
from memlab.store.segments import key_columns
from memlab.store.writer import Intake, Made, model_name
from memlab.tables import Notes

KEYS = {"vectors": ["h0", "h1"], "truncated": ["h0", "h1"], "pairs": ["q0", "q1", "p0", "p1"],
        "matches": ["q0", "q1", "p0", "p1"]}
"""Key columns of a segment, by kind: the halves of the hashes of a text, or of a query and a passage."""

_FORMAT = 1  # enters every fingerprint: a change of the files' layout starts new folders
_TRIES = 5  # rounds of "look up, make, read" before giving up on a folder that others keep deleting


class Store:
    """Vectors, pair scores and completions, made once.

    Args:
        root: Folder of the store; None is ``$MEMLAB_HOME/store``.
        flush_mb: Results are written when so many MB have gathered. 64 MB are 40,000 vectors of 384 numbers: few
            segments to list, and memory that nobody misses.
        flush_seconds: Or when the last write is so long ago: the most work that a ``kill -9`` can cost.
        memory_mb: Values kept in memory for a second call; beyond that they are read again.

    Attributes:
        made: Distinct inputs computed since the store was opened, by kind ("vectors", "pairs", "matches",
            "completions").
        found: Rows answered from what had been stored before, by kind.
    """

    def __init__(self, root: Path | None = None, *, flush_mb: float = 64, flush_seconds: float = 30,
                 memory_mb: float = 1024) -> None:
        self.root = Path(root).expanduser() if root is not None else store_root()
        self.made: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self._flush = flush_mb * 1e6, flush_seconds
        self._arrays = Arrays(int(memory_mb * 1e6))
        self._folders: dict[Path, Folder] = {}
        self._completions: dict[Path, Completions] = {}

    def vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> Floats:
        """Return the vectors (n, dim) of a ``texts`` table, in its order; only what is missing is encoded."""
        out = np.empty((texts.height, self.dim(embedder, role)), np.float32)
        for at, block in self._vectors(embedder, texts, role):
            out[at] = block
        return out

    def dim(self, embedder: Embedder, role: Role) -> int:
        """Return the length of an embedder's vectors; the model is loaded for it only where nothing is stored."""
        return self._folder("vectors", embedder, role).width() or embedder.dim()

    def iter_vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role, batch: int = 65536) -> Made:
        """Yield (rows of the table (b,), their vectors (b, dim)), b <= batch, each row once, in the store's order.

        For corpora beyond memory: besides ``memory_mb``, one segment is held at a time.
        """
        for at, block in self._vectors(embedder, texts, role):
            for start in range(0, len(at), batch):
                yield at[start : start + batch], block[start : start + batch]

    def truncated(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> NDArray[np.bool_]:
        """Tell of each of the texts (n,) whether the embedder sees only its beginning; only the unknown are counted."""
        folder = self._folder("truncated", embedder, role)
        wanted = _text_keys(texts)

        def make(rows: Ints) -> None:
            cut = embedder.truncated(texts["text"].gather(rows).to_list(), role)
            folder.add(wanted.select(folder.keys)[rows], cut.astype(np.float32))

        out = np.empty(texts.height, np.bool_)
        for at, block in self._get(folder, "truncated", wanted, make):
            out[at] = block > 0
        return out

    def pair_scores(self, scorer: PairScorer, queries: pl.DataFrame, passages: pl.DataFrame, pairs: Ints) -> Floats:
        """Return the scores (n,) of pairs (n, 2) of row numbers in two ``texts`` tables; scores what is missing.

        The scorer is given only the queries and passages of missing pairs, ordered by passage, then query, so
        that late interaction can work through the passages block by block.
        """
        return self._pairs(scorer, scorer.score, "pairs", (), queries, passages, pairs)

    def pair_matches(self, matcher: TokenMatcher, queries: pl.DataFrame, passages: pl.DataFrame,
                     pairs: Ints) -> Floats:
        """Return the matches (n, query_tokens) of pairs, as ``pair_scores`` does their scores."""
        return self._pairs(matcher, matcher.match, "matches", (matcher.query_tokens,), queries, passages, pairs)

    def _pairs(self, model: Any, call: Callable[..., Made], kind: str, shape: tuple[int, ...], queries: pl.DataFrame,
               passages: pl.DataFrame, pairs: Ints) -> Floats:
        pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
        folder = self._folder(kind, model)
        wanted = _pair_keys(queries, passages, pairs)

        def make(rows: Ints) -> None:
            rows = rows[np.lexsort((pairs[rows, 0], pairs[rows, 1]))]
            some_q, q = np.unique(pairs[rows, 0], return_inverse=True)
            some_p, p = np.unique(pairs[rows, 1], return_inverse=True)
            q_texts, p_texts = queries["text"].gather(some_q).to_list(), passages["text"].gather(some_p).to_list()
            intake = Intake(folder, wanted.select(folder.keys)[rows], model_name(model), "pairs", shape,
                            lambda i: f"{q_texts[q[i]]!r:.80} with {p_texts[p[i]]!r:.80}", *self._flush)
            self._take(intake, kind, model, call(q_texts, p_texts, np.stack([q, p], axis=1)))

        out = np.empty((len(pairs), *shape), np.float32)
        for at, block in self._get(folder, kind, wanted, make):
            out[at] = block
        return out

    def completions(self, chat: Chat, prompts: Sequence[Prompt], notes: Notes | None = None) -> list[Completion]:
        """Return the completions of prompts, in their order; only what is missing is asked, each prompt once.

        A refusal (finish "refused") is asked again next time, and counts as neither made nor found. How many were
        refused, cut off or mended is added to ``notes``.
        """
        path, identity = self._fingerprint("completions", chat)
        log = self._completions.setdefault(path, Completions(path, identity))
        keys = [prompt.key() for prompt in prompts]
        known = log.find(keys)
        self.found["completions"] += sum(key in known for key in keys)
        missing = {key: prompt for key, prompt in zip(keys, prompts) if key not in known}
        with closing(log.take(chat, missing)) as replies:
            for key, completion in replies:
                known[key] = completion
                self.made["completions"] += completion.finish != "refused"
        given = [known[key] for key in keys]
        if notes is not None:
            _note(given, model_name(chat), notes)
        return given

    def missing(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> int:
        """Count the distinct texts whose vectors would have to be made."""
        folder = self._folder("vectors", embedder, role)
        return len(_missing(folder, folder.find(_text_keys(texts))))

    def missing_pairs(self, scorer: PairScorer, queries: pl.DataFrame, passages: pl.DataFrame, pairs: Ints) -> int:
        """Count the distinct pairs whose scores would have to be made."""
        folder = self._folder("pairs", scorer)
        return len(_missing(folder, folder.find(_pair_keys(queries, passages, pairs))))

    def _vectors(self, embedder: Embedder, texts: pl.DataFrame, role: Role) -> Made:
        folder = self._folder("vectors", embedder, role)
        wanted = _text_keys(texts)

        def make(rows: Ints) -> None:
            some = texts["text"].gather(rows).to_list()
            intake = Intake(folder, wanted.select(folder.keys)[rows], model_name(embedder), "texts",
                            (embedder.dim(),), lambda i: f"{some[i]!r:.120}", *self._flush)
            self._take(intake, "vectors", embedder, embedder.encode(some, role))

        return self._get(folder, "vectors", wanted, make)

    def _take(self, intake: Intake, kind: str, model: Any, made: Made) -> None:
        """Store what a model makes; its ``note() -> str``, if it has one, is shown beside the progress."""
        try:
            intake.take(made, getattr(model, "note", lambda: ""))
        finally:
            self.made[kind] += intake.stored

    def _folder(self, kind: str, model: Embedder | PairScorer | TokenMatcher, role: Role | None = None) -> Folder:
        """Return the folder of a fingerprint; the first write creates it."""
        path, identity = self._fingerprint(kind, model, role)
        if path not in self._folders:
            self._folders[path] = Folder(path, KEYS[kind], self._arrays, identity)
        return self._folders[path]

    def _fingerprint(self, kind: str, model: Any, role: Role | None = None) -> tuple[Path, str]:
        """Return the folder of a model's results, and the text that says what it stands for."""
        said = {"format": _FORMAT, "kind": kind, "role": role, "identity": model.identity()}
        mark = hashlib.blake2b(json.dumps(said, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
        # the name is for people: two folders with one model's weights are one fingerprint
        return self.root / kind / mark, json.dumps({"name": model_name(model), **said}, indent=1, default=str)

    def _get(self, folder: Folder, kind: str, wanted: pl.DataFrame, make: Callable[[Ints], None]) -> Made:
        """Yield (at, values) until every wanted row was given; ``make(rows)`` computes and stores missing rows."""
        for attempt in range(_TRIES):
            found = folder.find(wanted)
            if not attempt:
                self.found[kind] += found.height - found["segment"].null_count()
            missing = _missing(folder, found)
            if len(missing):
                make(missing)
                found = folder.find(wanted)
            given = [np.empty(0, np.int64)]
            try:
                for at, block in folder.take(found):
                    yield at, block
                    given.append(at)
                return
            except Gone:  # another process merged or pruned the folder, or damage came to light: look again
                wanted = wanted.join(pl.DataFrame({"at": np.concatenate(given)}), on="at", how="anti")
        raise MemlabError("segments keep vanishing while they are read", where=str(folder.path),
                          fix="end whatever else clears this store")


def _note(replies: Sequence[Completion], name: str, notes: Notes) -> None:
    """Add what is no error, but belongs into a run's manifest."""
    for what, some in (
            ("prompts were refused, since they do not fit into the window", [r.finish == "refused" for r in replies]),
            ("replies were cut off at max_tokens", [r.finish == "length" for r in replies]),
            ("replies had to be mended, or asked for again, to be the JSON that was asked for",
             [r.repaired for r in replies])):
        notes.add(sum(some), len(some), f"{name}: {what}")


_OPEN: dict[Path, Store] = {}


def store_at(place: str | None) -> Store:
    """Open the store once a process; None is the default place."""
    root = Path(place) if place else store_root()
    if root not in _OPEN:
        _OPEN[root] = Store(root)
    return _OPEN[root]


def _text_keys(texts: pl.DataFrame) -> pl.DataFrame:
    keys = pl.DataFrame(key_columns(texts["hash"]), schema=dict.fromkeys(KEYS["vectors"], pl.UInt64))
    return keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("at"))


def _pair_keys(queries: pl.DataFrame, passages: pl.DataFrame, pairs: Ints) -> pl.DataFrame:
    q, p = key_columns(queries["hash"])[pairs[:, 0]], key_columns(passages["hash"])[pairs[:, 1]]
    keys = pl.DataFrame(np.hstack([q, p]), schema=dict.fromkeys(KEYS["pairs"], pl.UInt64))
    return keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("at"))


def _missing(folder: Folder, found: pl.DataFrame) -> Ints:
    """Return the first row of every key that was not found, in order."""
    return found.filter(pl.col("segment").is_null()).unique(folder.keys, keep="first")["at"].sort().to_numpy()
