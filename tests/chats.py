"""A chat model that answers by a rule: real, deterministic, and it remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from memlab.models.protocols import Completion, Prompt
from memlab.pipeline.token_counter import words_and_marks


@dataclass(frozen=True)
class ScriptedChat:
    """Answers ``rule(prompt)``, refuses what its window does not hold, counts words and punctuation marks."""

    rule: Callable[[Prompt], str]
    name: str = "scripted"
    window: int = 2048
    max_tokens: int = 128
    logprobs: bool = False  # the logarithm of 1 / 2 per word
    finish: Callable[[Prompt], str] = lambda _: "stop"
    asked: list[Prompt] = field(default_factory=list, compare=False)

    def identity(self) -> dict[str, Any]:
        return {"is": "ScriptedChat", "name": self.name, "window": self.window, "max_tokens": self.max_tokens}

    def count(self, text: str) -> int:
        return int(words_and_marks(pl.Series([text])).item())

    def complete(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Answer last to first: callers may rely on no order."""
        for at in reversed(range(len(prompts))):
            prompt = prompts[at]
            size = sum(self.count(message.content) for message in prompt.messages)
            if size + (prompt.max_tokens or self.max_tokens) > self.window:
                yield at, Completion("", 0, 0, 0.0, finish="refused")
                continue
            self.asked.append(prompt)
            text = self.rule(prompt)
            likely = -0.5 * len(text.split()) if self.logprobs else None
            yield at, Completion(text, size, self.count(text), 0.0, self.finish(prompt), logprob=likely)
