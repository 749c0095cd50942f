"""Token costs of ranked units, and the counter that uses the reader's own tokenizer."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import polars as pl
from pydantic import Field, model_validator

from memlab.models.chat.tokenizer import Tokenizer
from memlab.models.protocols import Chat
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables, text_hash
from memlab.pipeline.token_counter import count_tokens
from memlab.stages.read.prompt import RENDER_READS, Value, render_units
from memlab.store import Store


@stage
class TokenCost:
    """Add ``tokens`` to the ranking: the length of the text that the unit shows, null below ``depth``.

    A unit without a text (an unknown document of a foreign run) costs 0.
    """

    reads: ClassVar = (*RENDER_READS, "ranking")
    writes: ClassVar = ("ranking",)
    value: Value = "unit"  # unit | turn | round | session
    depth: Annotated[int, Field(ge=1)] = 200  # ranks that are measured; no selection goes deeper

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with the column ``tokens`` (Float64)."""
        ranking = tables["ranking"].drop("tokens", strict=False)
        near = pl.col("rank") <= self.depth
        units = tables["units"].join(ranking.filter(near).select("unit").unique(), on="unit", how="semi")
        costs = render_units(units, tables, self.value).select("unit", count_tokens(pl.col("text")).alias("tokens"))
        tokens = pl.when(near).then(pl.col("tokens").fill_null(0)).cast(pl.Float64).alias("tokens")
        return Tables(ranking=ranking.join(costs, on="unit", how="left", maintain_order="left").with_columns(tokens))


CACHE_SIZE = 500_000
"""Texts whose counts a tokenizer keeps, in some 100 MB; a full cache is emptied. Packs and arms of a sweep show the
same texts again."""


@runtime_checkable
class HasTokenizer(Protocol):
    """A chat model that may have its tokenizer on this machine."""

    def own_tokenizer(self) -> Tokenizer | None:
        """Return the model's own tokenizer, None if it is not on this machine."""


@stage
class ReaderTokens:
    """Tokens by the tokenizer of the reader's chat model, without those that mark a text's beginning and end.

    A model whose tokenizer is not on this machine is refused: no other counter replaces it silently.
    """

    chat: Chat

    @model_validator(mode="after")
    def _has_tokenizer(self) -> ReaderTokens:
        if not isinstance(self.chat, HasTokenizer) or self.chat.own_tokenizer() is None:
            raise ValueError(f"the tokenizer of {getattr(self.chat, 'name', 'the reader')} is not on this machine. "
                             "Fix: chat.tokenizer=FOLDER with the model's own files, or read/tokens=words")
        return self

    @property
    def name(self) -> str:
        """The counter's name; models that share a tokenizer count alike."""
        return f"the reader's {self._tokenizer().name}"

    def identity(self) -> dict[str, Any]:
        """All that can change a count: the tokenizer's files, and nothing else of the model."""
        return {"tokens": self.name}

    def count_each(self, texts: pl.Expr) -> pl.Expr:
        """Count the tokens of each text (Int32); raises MemlabError if the tokenizer's files cannot be read."""
        tokenizer = self._tokenizer()
        tokenizer.counts([])  # loads it now, where polars does not wrap its errors
        return texts.map_batches(partial(_counts, tokenizer), return_dtype=pl.Int32, is_elementwise=True)

    def _tokenizer(self) -> Tokenizer:
        tokenizer = self.chat.own_tokenizer() if isinstance(self.chat, HasTokenizer) else None
        assert tokenizer is not None, "its files were removed while it was in use"
        return tokenizer


def _counts(tokenizer: Tokenizer, texts: pl.Series) -> pl.Series:
    """Count each text that is not in the cache, once; null stays null."""
    cache = tokenizer.known
    hashes = {text: text_hash(text) for text in texts.to_list() if text is not None}
    counts = {text: cache[key] for text, key in hashes.items() if key in cache}
    new = [text for text in hashes if text not in counts]
    counts.update(zip(new, tokenizer.counts(new)))
    if len(cache) + len(new) > CACHE_SIZE:
        cache.clear()
    cache.update((hashes[text], counts[text]) for text in new)
    return pl.Series(texts.name, [counts.get(text) for text in texts.to_list()], dtype=pl.Int32)
