"""A client of one chat server: from prompts to requests, and from replies to completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from memlab.errors import MemlabError
from memlab.models.chat import json_schema
from memlab.models.chat.background import Emit
from memlab.models.chat.connection import ChatSettings, Connection
from memlab.models.chat.failures import NoLogprobs, NoSchema, TooLong
from memlab.models.chat.protocol import Completion, Message, Prompt
from memlab.models.chat.tokenizer import valid

Fits = Callable[[Sequence[Message], int | None], bool]

REFUSED = Completion("", 0, 0, 0.0, finish="refused")


async def ask_all(settings: ChatSettings, fits: Fits, prompts: Sequence[Prompt], order: Iterator[int],
                  emit: Emit[tuple[int, Completion]]) -> None:
    """Emit (position, completion) of every prompt, asked in the given order; raises MemlabError.

    One worker for each concurrent request takes the next prompt, so no further prompts are in memory.
    """
    async with Client(settings, fits) as client:

        async def worker() -> None:
            for position in order:
                await emit((position, await client.ask(prompts[position])))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(settings.concurrency, len(prompts))):
                    group.create_task(worker())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


class Client(Connection):
    """Sends prompts to one server, and remembers what it refuses: schemas, log-probabilities."""

    def __init__(self, settings: ChatSettings, fits: Fits) -> None:
        super().__init__(settings)
        self._fits = fits
        self._schemas_refused: set[str] = set()
        self._logprobs = settings.logprobs

    async def ask(self, prompt: Prompt) -> Completion:
        """Return one prompt's completion; its ``finish`` is "refused" if the prompt does not fit."""
        if prompt.schema is None:
            return await self._reply(prompt, prompt.messages) or REFUSED
        reply = await self._reply_in_json(prompt, prompt.schema)
        return REFUSED if reply is None else await self._repaired_reply(prompt, prompt.schema, reply)

    async def _reply_in_json(self, prompt: Prompt, schema: str) -> Completion | None:
        """Ask for JSON that the server binds to the schema; ask in words if the server refuses the schema."""
        if schema not in self._schemas_refused:
            try:
                return await self._reply(prompt, prompt.messages, schema)
            except NoSchema:
                self._schemas_refused.add(schema)
        return await self._reply(prompt, _ask_for_json(prompt.messages, schema))

    async def _repaired_reply(self, prompt: Prompt, schema: str, reply: Completion) -> Completion:
        """Return a reply that fits the schema, by repair or a second request if necessary; else the first reply."""
        fault = json_schema.fault(reply.text, schema)
        if fault is None:
            return reply
        if (mended := json_schema.mend(reply.text, schema)) is not None:
            return replace(reply, text=mended, repaired=True)
        if reply.finish == "length":  # it would be cut off again
            return reply
        request = Message("user", json_schema.second_request(fault, schema))
        longer = (*prompt.messages, Message("assistant", reply.text), request)
        second = await self._reply(prompt, longer, None if schema in self._schemas_refused else schema)
        if second is None:
            return reply
        text = json_schema.mend(second.text, schema)
        return Completion(reply.text if text is None else text, reply.prompt_tokens + second.prompt_tokens,
                          reply.completion_tokens + second.completion_tokens, reply.seconds + second.seconds,
                          second.finish if text is not None else reply.finish, repaired=True)

    async def _reply(self, prompt: Prompt, messages: Sequence[Message], schema: str | None = None) -> Completion | None:
        """Send one request until it is answered; None if it does not fit into our window or the server's."""
        if not self._fits(messages, prompt.max_tokens):
            return None
        body = self._body(prompt, messages, schema)
        try:
            return await self.post(body)
        except TooLong:
            return None
        except NoLogprobs as error:
            if "logprobs" not in body:
                raise MemlabError(f"the request is refused ({error})", where=self.where) from error
            self._logprobs = False
            return await self._reply(prompt, messages, schema)

    def _body(self, prompt: Prompt, messages: Sequence[Message], schema: str | None) -> dict[str, Any]:
        settings = self.settings
        body: dict[str, Any] = {
            "model": settings.model, "seed": settings.seed + prompt.sample,
            "messages": [{"role": message.role, "content": valid(message.content)} for message in messages],
            "temperature": settings.temperature if prompt.temperature is None else prompt.temperature,
            "max_tokens": prompt.max_tokens or settings.max_tokens,
        }
        if settings.reasoning_effort is not None:
            body["reasoning_effort"] = settings.reasoning_effort
        if self._logprobs:
            body["logprobs"] = True
        if schema is not None:
            body["response_format"] = {"type": "json_schema",
                                       "json_schema": {"name": "reply", "schema": json.loads(schema)}}
        return body


def _ask_for_json(messages: Sequence[Message], schema: str) -> tuple[Message, ...]:
    """Ask for JSON at the end of the last message, so that prompts keep their common beginning."""
    *before, last = messages
    return (*before, Message(last.role, f"{last.content}\n\n{json_schema.request(schema)}"))
