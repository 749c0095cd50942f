"""The models that a stage holds, in whatever part of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from memlab.models.chat import Chat
from memlab.models.protocols import Embedder, PairScorer, TokenMatcher


def held(thing: Any) -> Iterator[Embedder | PairScorer | TokenMatcher | Chat]:
    """Give the models in the fields of a stage and of the stages inside it; none inside a model is given."""
    if isinstance(thing, Embedder | PairScorer | TokenMatcher | Chat):
        yield thing
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        names = {field.name for field in dataclasses.fields(thing)}
        names |= {"scorer"} if hasattr(thing, "scorer") else set()  # a stage may make its scorer as it is asked for it
        yield from held([getattr(thing, name) for name in sorted(names)])
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from held(part)
    elif isinstance(thing, dict):
        yield from held(list(thing.values()))
