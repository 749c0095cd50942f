"""How much of a context fits into a reader's window beside the question and the reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memlab.models.chat import Chat, Message

PER_MESSAGE = 8
"""Tokens that a chat template puts around a message: 4 to 6 in those of Qwen, Llama, Gemma and gpt-oss."""
PER_PROMPT = 80
"""Tokens that it adds once: the opening of the reply, and words of its own (gpt-oss: about 70, Qwen: about 25)."""


def prompt_tokens(chat: Chat, messages: Sequence[Message]) -> int:
    """Count what a prompt costs by the model's own counter, the chat template's share estimated from above."""
    return PER_PROMPT + sum(PER_MESSAGE + chat.count(message.content) for message in messages)


def room(chat: Chat, max_tokens: int | None) -> int:
    """Return how many tokens a prompt may have so that the longest reply still fits."""
    return chat.window - (max_tokens or chat.max_tokens)


def fits_first(total: int, item: Callable[[int], int], whole: Callable[[int], int], space: int) -> int:
    """Return how many of the first items fit: the largest n with ``whole(n) <= space``, or 0.

    ``item(i)`` are the tokens of item i alone: a guess at n, so that a long context is not counted over and over;
    the tokens of a whole differ a little from the sum of its parts, so ``whole(n)`` has the last word.

    >>> fits_first(3, lambda i: 5, lambda n: 10 + 6 * n, 22)
    2
    """
    spent, n = whole(0), 0
    while n < total and (spent := spent + item(n)) <= space:
        n += 1
    while n and whole(n) > space:
        n -= 1
    while n < total and whole(n + 1) <= space:
        n += 1
    return n
