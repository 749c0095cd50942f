"""A client of one chat server: from prompts to requests, and from replies to completions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from memlab.errors import MemlabError
from memlab.models.chat import replies
from memlab.models.chat.replies import Refused, check_refusal, refused_schemas
from memlab.models.chat.tokenizer import valid
from memlab.models.connection import Connection, Reply
from memlab.models.protocols import Completion, Message, Prompt
from memlab.models.server import Emit, ServerSettings, check_address, run_workers
from memlab.stage import stage

AUTO = "auto"
"""The address that stands for every server of the model that ``memlab serve`` started."""

Fits = Callable[[Sequence[Message], int | None], bool]

REFUSED = Completion("", 0, 0, 0.0, finish="refused")


@stage
class ChatSettings(ServerSettings):
    """The settings of a chat model that its connections need."""

    # an address, or auto; not part of the identity
    url: Annotated[str, AfterValidator(lambda url: url if url == AUTO else check_address(url))] = (
        "http://127.0.0.1:8000/v1")
    # 0: the likeliest word each time, so that a run can be repeated; null: never sent, not for votes either, and the
    # server's own default holds
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
    seed: int = 0  # sent with every request, plus the number of the sample
    # of a reply, the thinking of a reasoning model included
    max_tokens: Annotated[int, Field(ge=1)] = 256
    # how long a reasoning model thinks, e.g. medium; null: not sent, and the server's own default holds
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    # further requests for a reply that does not fit its JSON schema
    repairs: Annotated[int, Field(ge=0)] = 1
    logprobs: bool = False  # ask for the log-probability of each reply, kept with the answer
    # fields that the server refuses: no seed is sent, and the limit as max_completion_tokens in place of max_tokens
    omit: Annotated[tuple[Literal["seed", "max_tokens"], ...], Field(strict=False)] = ()
    # requests at a time (auto: to each server); a vLLM server on a GPU takes 64 and more
    concurrency: Annotated[int, Field(ge=1)] = 16
    in_all: Annotated[int, Field(ge=1)] | None = None  # requests at a time to all servers together; null: no limit
    timeout: Annotated[float, Field(gt=0)] = 300.0  # seconds for one whole reply
    # longest wait, in seconds, for a server that is away; 3 s if it has never answered, unless url is auto
    patience: Annotated[float, Field(ge=0)] = 600.0
    retries: Annotated[int, Field(ge=0)] = 6  # as in ServerSettings


async def ask_all(settings: ChatSettings, fits: Fits, prompts: Sequence[Prompt], order: Iterator[int],
                  emit: Emit[tuple[int, Completion]]) -> None:
    """Emit (position, completion) of every prompt, asked in the given order; raises MemlabError.

    One worker for each concurrent request takes the next prompt, so no further prompts are in memory.
    """
    async with Client(settings, fits) as client:

        async def worker() -> None:
            for position in order:
                await emit((position, await client.ask(prompts[position])))

        await run_workers(worker, min(settings.concurrency, settings.in_all or len(prompts), len(prompts)))


class Client(Connection):
    """Sends prompts to one server, in the form that it takes (``memlab.models.chat.replies``)."""

    def __init__(self, settings: ChatSettings, fits: Fits) -> None:
        super().__init__(settings)
        self.chat, self._fits = settings, fits
        self._refused_schemas = refused_schemas(self.where, settings.model)

    def check_refusal(self, reply: Reply) -> None:
        """Raise Refused for a refusal that ``ask`` can handle."""
        check_refusal(reply)

    async def ask(self, prompt: Prompt) -> Completion:
        """Return one prompt's completion; its ``finish`` is "refused" if the prompt does not fit."""
        if prompt.schema is None:
            return await self._reply(prompt, prompt.messages) or REFUSED
        reply = await self._reply_in_json(prompt, prompt.schema)
        return REFUSED if reply is None else await self._repaired_reply(prompt, prompt.schema, reply)

    async def _reply_in_json(self, prompt: Prompt, schema: str) -> Completion | None:
        """Ask for JSON that the server binds to the schema; ask in words if the server refuses the schema."""
        if schema not in self._refused_schemas:
            try:
                return await self._reply(prompt, prompt.messages, schema)
            except Refused:
                self._refused_schemas.add(schema)
        return await self._reply(prompt, _ask_for_json(prompt.messages, schema))

    async def _repaired_reply(self, prompt: Prompt, schema: str, reply: Completion) -> Completion:
        """Return a reply that fits the schema, by repair or further requests if necessary; else the first reply."""
        fault = replies.fault(reply.answer, schema)
        if fault is None:
            return reply
        if (mended := replies.mend(reply.answer, schema)) is not None:
            return replace(reply, text=mended, repaired=True)
        if reply.fault is not None:  # it would be cut off or withheld again
            return reply
        last = reply.answer
        for _ in range(self.chat.repairs):
            request = Message("user", f"That does not fit: {fault}. {replies.request(schema)}")
            longer = (*prompt.messages, Message("assistant", last), request)
            again = await self._reply(prompt, longer, None if schema in self._refused_schemas else schema)
            if again is None:
                break
            text = replies.mend(again.answer, schema)
            reply = replace(reply, text=reply.text if text is None else text, repaired=True, logprob=None,
                            prompt_tokens=reply.prompt_tokens + again.prompt_tokens,
                            completion_tokens=reply.completion_tokens + again.completion_tokens,
                            seconds=reply.seconds + again.seconds,
                            finish=reply.finish if text is None else again.finish)
            last, fault = again.answer, replies.fault(again.answer, schema)
            if text is not None:
                break
        return reply

    async def _reply(self, prompt: Prompt, messages: Sequence[Message], schema: str | None = None) -> Completion | None:
        """Send one request until it is answered; None if it does not fit into our window or the server's."""
        if not self._fits(messages, prompt.max_tokens):
            return None
        try:
            return await self.post("/chat/completions", self._body(prompt, messages, schema), replies.parse_completion)
        except Refused as refusal:
            if refusal.reason == "too long":
                return None
            if refusal.reason == "withheld":
                return Completion("", 0, 0, 0.0, "content_filter")
            if schema is not None:
                raise
            raise MemlabError(f"the request is refused ({self.redact(str(refusal))})", where=self.where,
                              fix=self.chat.wrong_fix) from refusal

    def _body(self, prompt: Prompt, messages: Sequence[Message], schema: str | None) -> dict[str, Any]:
        settings = self.chat
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [{"role": message.role, "content": valid(message.content)} for message in messages],
            "max_completion_tokens" if "max_tokens" in settings.omit else "max_tokens":
                prompt.max_tokens or settings.max_tokens,
        }
        if "seed" not in settings.omit:
            body["seed"] = settings.seed + prompt.sample
        if settings.temperature is not None:
            body["temperature"] = settings.temperature if prompt.temperature is None else prompt.temperature
        if settings.reasoning_effort is not None:
            body["reasoning_effort"] = settings.reasoning_effort
        if settings.logprobs:
            body["logprobs"] = True
        if schema is not None:
            body["response_format"] = {"type": "json_schema",
                                       "json_schema": {"name": "reply", "schema": json.loads(schema)}}
        return body


def _ask_for_json(messages: Sequence[Message], schema: str) -> tuple[Message, ...]:
    """Ask for JSON at the end of the last message, so that prompts keep their common beginning."""
    *before, last = messages
    return (*before, Message(last.role, f"{last.content}\n\n{replies.request(schema)}"))
