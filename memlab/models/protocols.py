"""Protocols of the models that memlab calls, one for each kind of expensive call, prompts, and what inputs cost.

A model is constructed without its weights; they are loaded at the first call and stay loaded in the process. Costs are
relative, for the time left: models take the longest texts first, so a count is far off.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memlab.models.thinking import without_thinking

Role = Literal["query", "document"]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

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

MAX_TOKENS = 2**31 - 1
"""Largest number of tokens that a reply may report."""

_ENDS = ("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed")
_FAULTS = {"refused": "were not asked for, since the prompt does not fit into the window",
           "length": "were cut off at max_tokens",
           "max_tokens": "were cut off at max_tokens", "model_length": "were cut off at the end of the window",
           "content_filter": "were withheld by the server's content filter", "declined": "were declined by the model"}


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


@dataclass(frozen=True)
class Message:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Prompt:
    """Everything that is sent for one reply, besides the model's own settings.

    ``sample`` numbers repeated requests: sample 1 is sent even if sample 0 is in the store. ``schema`` is the text of a
    JSON schema that the reply must fit; ``temperature`` overrides the model's, for votes.
    """

    messages: tuple[Message, ...]
    sample: int = 0
    schema: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    def key(self) -> str:
        """Return a digest of all that can change the reply.

        >>> one = Prompt((Message("user", "hi"),))
        >>> one.key() == Prompt((Message("user", "hi"),)).key() != Prompt((Message("user", "hi"),), sample=1).key()
        True
        """
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Completion:
    """One reply; ``finish`` is "stop", "length" if the reply was cut off at its limit, or another end.

    Other ends are the server's own ("content_filter"), or "declined" if the model wrote a refusal in place of a reply.
    ``repaired`` is true if the reply broke the schema and was repaired or requested again. If the prompt does not fit
    into the model's window, ``text`` is "" and ``finish`` is "refused". ``logprob`` is the natural logarithm of the
    reply's probability, None if it was not asked for or the server does not give it.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    finish: str = "stop"
    repaired: bool = False
    logprob: float | None = None

    @property
    def answer(self) -> str:
        """The reply without the thinking before it; "" while the thinking has no end.

        >>> Completion("<think>yes or no?</think>\\nno", 0, 0, 0.0).answer
        'no'
        >>> Completion("<think>The reference says", 0, 0, 0.0, "length").answer
        ''
        """
        return without_thinking(self.text)

    @property
    def fault(self) -> str | None:
        """Why this is no complete reply, to follow "n replies"; None for a complete one.

        >>> Completion("", 0, 0, 0.0).fault, Completion("yes", 0, 0, 0.0).fault
        ('are empty', None)
        """
        end = self.finish.lower()
        if end in _ENDS:
            return None if self.answer.strip() else "are empty"
        return _FAULTS.get(end, "ended early")


@runtime_checkable
class Chat(Protocol):
    """Prompts to completions."""

    @property
    def window(self) -> int:
        """Maximum number of tokens of prompt and completion together."""

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens of a completion, unless a prompt sets it."""

    def identity(self) -> dict[str, Any]:
        """Return all that can change a reply: model, revision, temperature, seed, limits; no address, no key."""

    def count(self, text: str) -> int:
        """Count tokens by the model's tokenizer, or by the heuristic."""

    def complete(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, completion) until every prompt is answered once, in any order."""


def models_in(thing: Any) -> Iterator[Embedder | PairScorer | TokenMatcher | Chat]:
    """Yield the models in the fields of a stage and of the stages inside it, but none inside a model."""
    yield from parts(thing, Embedder | PairScorer | TokenMatcher | Chat)


def parts(thing: Any, kind: Any) -> Iterator[Any]:
    """Yield the objects of a class among the fields of a stage and of its parts, but none inside another."""
    if thing is None or isinstance(thing, str | int | float):  # most fields; to ask for a protocol takes longer
        return
    if isinstance(thing, kind):
        yield thing
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        names = {field.name for field in dataclasses.fields(thing)}
        names |= {"scorer"} if hasattr(thing, "scorer") else set()  # a stage may make its scorer only when it is used
        yield from parts([getattr(thing, name) for name in sorted(names)], kind)
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from parts(part, kind)
    elif isinstance(thing, dict):
        yield from parts(list(thing.values()), kind)


def origins(stage: Any) -> list[dict[str, Any]]:
    """Return the origin of each model of a stage whose weights are on this machine."""
    return [model.origin() for model in models_in(stage) if hasattr(model, "origin")]


def embedders_in(stage: Any) -> list[Embedder]:
    """Return the embedders among the models of a stage."""
    return [model for model in models_in(stage) if isinstance(model, Embedder)]


def on_gpu(model: Any) -> bool:
    """Return whether a model runs on a GPU of this machine; False for one that does not say, such as a hosted one."""
    return bool(hasattr(model, "on_gpu") and model.on_gpu())


def text_costs(model: Any, texts: Sequence[str]) -> Floats:
    """Return the cost of encoding each text, (n,): its tokens, as far as the model reads, and their attention.

    >>> from types import SimpleNamespace
    >>> text_costs(SimpleNamespace(token_limit=lambda: 98), ["a" * 72, "a" * 4000]).round().tolist()
    [20.0, 110.0]
    """
    return _reading_costs([len(text) for text in texts], _limit(model))


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
        return _reading_costs(lengths[0] + lengths[1], _limit(model))
    sharing = np.bincount(pairs[:, 1], minlength=len(passages))[pairs[:, 1]]
    costs: Floats = (_reading_costs(lengths[1], _limit(model)) * (1 / sharing + PRODUCT)).astype(np.float32)
    return costs


def prompt_costs(prompts: Sequence[Prompt]) -> Floats:
    """Return the cost of each chat request, (n,)."""
    characters = [sum(len(message.content) for message in prompt.messages) for prompt in prompts]
    costs: Floats = (np.asarray(characters, np.float64) / CHARACTERS + REPLY).astype(np.float32)
    return costs


def _reading_costs(characters: Sequence[int] | NDArray[np.int64], limit: int | None) -> Floats:
    read = tokens_read(characters, limit)
    costs: Floats = (read * (1 + read * ATTENTION)).astype(np.float32)
    return costs


def _limit(model: Any) -> int | None:
    """Return the token limit of a model's inputs; None if it declares none."""
    limit: int | None = model.token_limit() if hasattr(model, "token_limit") else getattr(model, "max_length", None)
    return limit
