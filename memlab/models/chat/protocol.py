"""Prompts, completions, and the protocol of a chat model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

MAX_TOKENS = 2**31 - 1
"""Largest number of tokens that a reply may report."""


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
    """One reply; ``finish`` is "stop", or "length" if the reply was cut off at its limit.

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
