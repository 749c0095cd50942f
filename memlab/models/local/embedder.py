"""Sentence-transformers encoders: texts to unit vectors, to one unit vector per token, or to weights of terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from memlab.models.local import base, batching
from memlab.models.local.adapter import UpdateCard, update_card, update_file
from memlab.models.local.backend import Encoder, Pooling, to_device
from memlab.models.local.loading import LoadedModels
from memlab.models.protocols import CHARACTERS, Floats, Ints, Role
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.errors import MemlabError
from memlab.support.paths import bundled_encoder


@stage
class SentenceEmbedder(base.LocalModel):
    """An encoder that sentence-transformers can read, from a folder or the hub, loaded at the first call.

    A null path is the bundled MiniLM; other fields with null keep the setting of the model's own files.
    """

    path: str | LocalPath | None = None  # null: the weights inside the package
    name: str = "minilm"  # for messages and the manifest
    query_prefix: str | None = None  # before a question; null: the prompt of the model's own files, "": nothing
    document_prefix: str | None = None  # ... and before a passage
    max_length: Annotated[int, Field(ge=8)] | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None  # null: all that the model has
    pooling: Pooling | None = None  # null: as the model's own files say; needed where they do not
    # update of the weights, a file of `memlab train encoder`; memory: the one that memlab ships for MiniLM
    adapter: Literal["memory"] | LocalPath | None = None

    path_option: ClassVar = "embedder.path"

    @field_validator("adapter")
    @classmethod
    def _check_adapter(cls, adapter: str | Path | None) -> str | Path | None:
        try:
            if adapter is not None:
                update_card(update_file(adapter))
        except MemlabError as error:  # as a ValueError pydantic reports it beside the other faults
            raise ValueError(str(error)) from error
        return adapter

    @model_validator(mode="after")
    def _check_path(self) -> SentenceEmbedder:
        if self.path is not None:
            base.check_path(self.path)
        elif self.name != "minilm" and self.adapter is None:
            raise ValueError(f"name={self.name} has no path; only 'minilm' is embedded. "
                             "Fix: embedder=minilm, or embedder.path=FOLDER")
        if self.path is None or base.is_local(self.path):  # the hub is asked when the model is needed
            self._folder()
            _ = self._update  # raises MemlabError for an update of another model
        return self

    @cached_property
    def _update(self) -> UpdateCard | None:
        """The update's card as it was first read: one object never mixes two states of the file."""
        if self.adapter is None:
            return None
        card, weights = update_card(update_file(self.adapter)), base.files_digest(self._folder())
        if card.base != weights:
            raise MemlabError(f"was trained from other weights ({(card.base or 'unknown')[:8]}) than those of "
                              f"{self.name} ({weights[:8]})", where=str(card.file),
                              fix="give the model that the training started from, or its own update; for a model "
                                  "without one, embedder=minilm embedder.path=FOLDER")
        return card

    def origin(self) -> dict[str, Any]:
        """Return where the model came from, and its update if it has one."""
        update = {} if self._update is None else {"adapter": str(self.adapter), "adapter_digest": self._update.digest}
        return super().origin() | update

    def learned_questions(self) -> frozenset[str]:
        """Return the text ids of the questions that a training recorded beside the weights; empty without a record."""
        return base.learned_questions(update_file(self.adapter).parent if self.adapter else self._folder())

    def identity(self) -> dict[str, Any]:
        """Return all that can change a vector."""
        update = {} if self._update is None else {"adapter": self._update.digest}
        return self._identity("SentenceEmbedder", pooling=self.pooling,
                              prefix={"query": self.prefix("query"), "document": self.prefix("document")},
                              max_length=self.max_length, dimensions=self.dimensions, **update)

    def token_width(self) -> int | None:
        """Return the numbers of a token's vector; None if the model's own configuration does not say."""
        return (self._update and self._update.dimensions) or super().token_width()

    def dim(self) -> int:
        """Return the length of a vector; raise MemlabError if nothing says how the vectors of tokens become one."""
        if self.pooling is None and not (self._folder() / "modules.json").is_file():
            raise MemlabError("no file of this model (modules.json) says how the vectors of tokens become one",
                              where=f"embedder.path={self.path}",
                              fix="embedder.pooling=mean (or cls, lasttoken, ...), as the model's card says")
        width = self._encoders()[0].width
        if self.dimensions is not None and self.dimensions > width:
            raise MemlabError(f"dimensions={self.dimensions}, and {self.name} has {width}", fix=f"at most {width}")
        return self.dimensions or width

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        """Yield (positions (b,), unit vectors (b, dim)), a text given twice encoded once.

        The longest come first, window by window (``memlab.models.local.batching``).
        """
        distinct, rows = unique(texts)
        width, prompt = self.dim(), self._prompt_tokens(role)

        def work(encoder: Encoder, inputs: tuple[Ints, Ints]) -> Floats:
            vectors = encoder.sentences(*inputs, width, prompt)
            if not np.isfinite(vectors).all():
                raise MemlabError(f"{self.name} gave a vector that is not a number", fix="embedder.dtype=fp32")
            return vectors

        for batch, vectors in self._run(distinct, role, work):
            positions = [rows[i] for i in batch]
            yield np.concatenate(positions), np.repeat(vectors, [len(p) for p in positions], axis=0)

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[batching.Block]:
        """Yield blocks of one unit vector per token; [CLS]-like and punctuation tokens do not count.

        A block stays on the model's device, since all token vectors of a corpus rarely fit in memory.
        """
        def work(encoder: Encoder, inputs: tuple[Ints, Ints]) -> tuple[Any, Any, Ints]:
            ids, mask = inputs
            kept = mask.astype(bool) & ~np.isin(ids, encoder.ignored)
            kept[~kept.any(axis=1)] = mask[~kept.any(axis=1)]  # a text without other tokens keeps all of them
            return encoder.tokens(ids, mask), to_device(kept, encoder.device), ids

        for batch, block in self._run(texts, role, work):
            yield batch, *block

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether the model sees only its beginning: shape (n,)."""
        limit = self.token_limit()
        return self._tokenise(texts, role, limit + 1).lengths > limit

    def token_limit(self) -> int:
        """Return the number of tokens that the model reads of a text."""
        encoder = self._encoders()[0]
        if self.max_length is not None and self.max_length > encoder.position_limit:
            raise MemlabError(f"max_length={self.max_length}, and {self.name} has {encoder.position_limit} positions",
                              fix=f"embedder.max_length={encoder.position_limit} or less")
        return self.max_length or min(encoder.max_length, encoder.position_limit)

    def _folder(self) -> Path:
        if self.path is None:
            return bundled_encoder()
        folder = super()._folder()
        if base.is_colbert(folder):  # its projection would be left out
            raise MemlabError("is a ColBERT model: it has token vectors behind a projection, and no single vectors",
                              where=f"embedder.path={self.path}", fix="embedder=answerai_colbert embedder.path=FOLDER, "
                              "for late interaction alone")
        return folder

    def _encoders(self) -> LoadedModels:
        head = self._folder() / base.M3_HEAD
        update = () if self._update is None else (self._update.file.absolute(), self._update.digest)
        runtime = self._runtime()
        embedded = self.path is None and self.pooling is None and runtime.cpu and runtime.dtype == "fp32"
        kind = "MiniLM" if embedded else "SentenceTransformer"
        return self._load(kind, Encoder, self.pooling, head if head.is_file() else None, *update)

    def _tokenise(self, texts: Sequence[str], role: Role, limit: int | None = None) -> batching.TokenRows:
        given = [self.prefix(role) + text for text in texts]
        return batching.tokenise(self._encoders()[0].tokenizer, given, limit or self.token_limit())

    def prefix(self, role: Role) -> str:
        """Return what is put before a text in this role."""
        prefix = self.query_prefix if role == "query" else self.document_prefix
        return base.saved_prompts(self._folder())[role] if prefix is None else prefix

    def _prompt_tokens(self, role: Role) -> int:
        """Return the tokens at the beginning of a text that are those of its prefix, [CLS] or the like included."""
        if not self.prefix(role):
            return 0
        ids = self._tokenise([""], role).ids
        return len(ids) - int(ids[-1] in self._encoders()[0].tokenizer.all_special_ids)

    def _run(self, texts: Sequence[str], role: Role, work: Any) -> Iterator[tuple[Ints, Any]]:
        """Run ``work(encoder, (ids, mask))`` on all texts; yield (positions, result)."""
        models = self._encoders()
        pad = models[0].pad

        def prepare(at: slice) -> batching.InputWindow[tuple[Ints, Ints]]:
            tokens = self._tokenise(texts[at], role)
            places = np.arange(at.start, at.stop)
            return batching.InputWindow(places, tokens.lengths, partial(tokens.pad_batch, pad=pad))

        windows = batching.window_slices(len(texts))
        return batching.run_batches(windows, prepare, self._budget(), models, work, models.room, lanes=self._lanes())


def unique(texts: Sequence[str]) -> tuple[list[str], list[Ints]]:
    """Return the distinct texts and, for each, its positions.

    >>> unique(["a", "b", "a"])
    (['a', 'b'], [array([0, 2]), array([1])])
    """
    rows: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        rows.setdefault(text, []).append(i)
    return list(rows), [np.array(r, np.int64) for r in rows.values()]


@stage
class SparseTermEncoder(base.LocalModel):
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
        budget = CHARACTERS * self._budget()
        yield from batching.run_batches([texts], batching.by_characters, budget, models, work, models.room)

    def truncated(self, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
        """Return, for each text, whether the model sees only its beginning: shape (n,); a query is read whole."""
        if role == "query":
            return np.zeros(len(texts), np.bool_)
        limit = self.token_limit()
        return batching.tokenise(self._load("SparseEncoder")[0].tokenizer, texts, limit + 1).lengths > limit

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
