"""Prompts, completions, and the protocol of a chat model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

MAX_TOKENS = 2**31 - 1
"""Largest number of tokens that a reply may report."""

_ENDS = ("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed")
_FAULTS = {"refused": "were not asked for, since the prompt does not fit into the window",
           "length": "were cut off at max_tokens",
           "max_tokens": "were cut off at max_tokens", "model_length": "were cut off at the end of the window",
           "content_filter": "were withheld by the server's content filter", "declined": "were declined by the model"}
_THINKING = re.compile(r"\s*[<\[](?:seed:)?(think|thinking|thought|reasoning)[>\]]", re.IGNORECASE)
_THOUGHT = re.compile(r"(?:</|\[/)(?:seed:)?(?:think|thinking|thought|reasoning)[>\]]", re.IGNORECASE)


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
    sent: str = ""  # what was sent in place of fields that the server refuses, in words

    @property
    def answer(self) -> str:
        """The reply without the thinking before it; "" while the thinking has no end.

        >>> Completion("<think>yes or no?</think>\\nno", 0, 0, 0.0).answer
        'no'
        >>> Completion("<think>The reference says", 0, 0, 0.0, "length").answer
        ''
        """
        text, tagged = self.text, False
        while opening := _THINKING.match(text):
            end = _THOUGHT.search(text, opening.end())
            text, tagged = text[end.end():] if end else "", True
        end = None if tagged else _THOUGHT.search(text)  # some chat templates write the opening mark themselves
        return text[end.end():].lstrip() if end else text.lstrip() if tagged else text

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
