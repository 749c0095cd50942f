"""A chat model behind any server that speaks OpenAI's protocol: vLLM, OpenAI, and most others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from memlab.models.chat.client import ChatSettings, Client
from memlab.models.chat.tokenizer import PromptCounter, Tokenizer, has_tokenizer, prompt_counter
from memlab.models.protocols import Completion, Message, Prompt
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.paths import expand, home


@stage
class OpenAIChat(ChatSettings):
    """Sends prompts to ``{url}/chat/completions``, many at a time, and repeats failed requests.

    A request's seed is ``seed`` plus the prompt's sample, so that samples differ and can be repeated. Prompts are sent
    in the order of their contents, so that a server's prefix cache serves those with a common beginning. A prompt that
    does not fit into ``window`` together with its reply is refused without a request.

    The url "auto" means a server of the model that ``memlab serve`` started on this machine, or with ``--host`` on
    another one that shares ``$MEMLAB_HOME``. If it goes away, requests go to the next one that is up.

    The tokenizer is that of the folder ``tokenizer``; if that is null, that of ``$MEMLAB_HOME/models/<model>``; if
    there is none, a heuristic that gives an upper bound (``memlab.models.chat.tokenizer``).
    """

    # maximum tokens of prompt and reply together; a prompt that does not fit is not sent
    window: Annotated[int, Field(ge=2)] = 4096
    # folder of its files; null: $MEMLAB_HOME/models/<model>, or else 1.5 tokens per word or mark
    tokenizer: LocalPath | None = None

    @model_validator(mode="after")
    def _check(self) -> OpenAIChat:
        if self.tokenizer is not None and not has_tokenizer(expand(self.tokenizer)):
            raise ValueError(f"no tokenizer files in {self.tokenizer}. Fix: give a model's own folder, or null")
        if self.max_tokens >= self.window:
            raise ValueError(f"max_tokens {self.max_tokens} leaves no room for a prompt in a window of {self.window}")
        return self

    def identity(self) -> dict[str, Any]:
        """Return all known settings that can change a reply; neither the address nor the key."""
        return {"is": "OpenAIChat", "model": self.model, "revision": self.revision, "temperature": self.temperature,
                "seed": self.seed, "max_tokens": self.max_tokens, "window": self.window,
                "counter": self._counter().name, **({"logprobs": True} if self.logprobs else {}),
                **({"repairs": self.repairs} if self.repairs != 1 else {}),
                **({"omit": sorted(self.omit)} if self.omit else {}),
                **({"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {})}

    def count(self, text: str) -> int:
        """Count the tokens of a text by the model's tokenizer, or estimate an upper bound."""
        return self._counter().count(text)

    def own_tokenizer(self) -> Tokenizer | None:
        """Return the model's own tokenizer; None if it is not on this machine."""
        counter = self._counter()
        return counter if isinstance(counter, Tokenizer) else None

    def complete(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, completion) as replies come in, each prompt once.

        Raises MemlabError if the server refuses the key, the model or a request, or stays away for longer than
        ``patience``; the items before are valid.
        """
        if not prompts:
            return
        order = sorted(range(len(prompts)), key=lambda i: tuple(m.content for m in prompts[i].messages))
        short_enough = self._counter().fits

        def fits(messages: Sequence[Message], max_tokens: int | None) -> bool:
            return short_enough(messages, self.window - (max_tokens or self.max_tokens))

        with Client(self, fits) as client:
            yield from client.ask_all(order, lambda i: client.ask(prompts[i]), min(self.concurrency, len(prompts)))

    def _counter(self) -> PromptCounter:
        if self.tokenizer is not None:
            return prompt_counter(expand(self.tokenizer))
        folder = home() / "models" / self.model  # where `memlab serve` puts models that it converts
        inside = ".." not in Path(self.model).parts and not Path(self.model).is_absolute()
        return prompt_counter(folder if inside and has_tokenizer(folder) else None)

