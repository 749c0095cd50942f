"""Relative costs of a model's inputs, for the time left: models take the longest texts first, so a count is far off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.models.chat.protocol import Prompt
from memlab.models.protocols import Floats, Ints

CHARACTERS = 4
"""Characters per token, for models whose tokens are not counted before they run."""

MARKERS = 2
"""Tokens that a model adds to a text."""

ATTENTION = 1 / 1000
"""Part of a token's cost that grows with the tokens beside it: 256 tokens cost 1.27 times as much each as a few do
(MiniLM on two cores, 5,000 texts of LoCoMo)."""

PRODUCT = 1 / 1000
"""Cost of comparing a passage with one query by its token vectors, as a share of the cost of encoding the passage."""

REPLY = 100
"""Cost of a reply in tokens of its prompt: written tokens are slower than read ones. Estimated, not measured."""


def text_costs(model: Any, texts: Sequence[str]) -> Floats:
    """Return the cost of encoding each text, (n,): its tokens, as far as the model reads, and their attention.

    >>> from types import SimpleNamespace
    >>> text_costs(SimpleNamespace(token_limit=lambda: 98), ["a" * 72, "a" * 4000]).round().tolist()
    [20.0, 110.0]
    """
    return _reading([len(text) for text in texts], _limit(model))


def tokens_read(characters: Sequence[int] | NDArray[np.int64], limit: int | None) -> NDArray[np.float64]:
    """Return the estimated number of tokens that a model reads of each text of so many characters, (n,)."""
    return np.minimum(np.asarray(characters, np.float64) / CHARACTERS, np.inf if limit is None else limit) + MARKERS


def pair_costs(model: Any, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Floats:
    """Return the cost of scoring each of pairs (n, 2) of positions in queries and passages, (n,).

    A cross-encoder reads both texts of each pair. A model with ``encodes_passages`` encodes each passage once, so that
    its pairs share this cost.
    """
    lengths = [np.array([len(text) for text in texts], np.int64)[pairs[:, i]]
               for i, texts in enumerate((queries, passages))]
    if not getattr(model, "encodes_passages", False):
        return _reading(lengths[0] + lengths[1], _limit(model))
    sharing = np.bincount(pairs[:, 1], minlength=len(passages))[pairs[:, 1]]
    costs: Floats = (_reading(lengths[1], _limit(model)) * (1 / sharing + PRODUCT)).astype(np.float32)
    return costs


def prompt_costs(prompts: Sequence[Prompt]) -> Floats:
    """Return the cost of each chat request, (n,)."""
    characters = [sum(len(message.content) for message in prompt.messages) for prompt in prompts]
    costs: Floats = (np.asarray(characters, np.float64) / CHARACTERS + REPLY).astype(np.float32)
    return costs


def _reading(characters: Sequence[int] | NDArray[np.int64], limit: int | None) -> Floats:
    read = tokens_read(characters, limit)
    costs: Floats = (read * (1 + read * ATTENTION)).astype(np.float32)
    return costs


def _limit(model: Any) -> int | None:
    """Return the number of tokens that a model reads of an input; None if it does not tell."""
    limit: int | None = model.token_limit() if hasattr(model, "token_limit") else getattr(model, "max_length", None)
    return limit
