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
from memlab.models.chat.failures import FieldsRefused, NoSchema, TooLong, Withheld
from memlab.models.chat.fields import changes, fields_of
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
    """Sends prompts to one server, in the form that it takes (``memlab.models.chat.fields``)."""

    def __init__(self, settings: ChatSettings, fits: Fits) -> None:
        super().__init__(settings)
        self._fits = fits
        self._fields = fields_of(self.where, settings.model)

    async def ask(self, prompt: Prompt) -> Completion:
        """Return one prompt's completion; its ``finish`` is "refused" if the prompt does not fit."""
        if prompt.schema is None:
            return await self._reply(prompt, prompt.messages) or REFUSED
        reply = await self._reply_in_json(prompt, prompt.schema)
        return REFUSED if reply is None else await self._repaired_reply(prompt, prompt.schema, reply)

    async def _reply_in_json(self, prompt: Prompt, schema: str) -> Completion | None:
        """Ask for JSON that the server binds to the schema; ask in words if the server refuses the schema."""
        try:
            return await self._reply(prompt, prompt.messages, schema)
        except NoSchema:
            self._fields.refuse_schema(schema)
        return await self._reply(prompt, _ask_for_json(prompt.messages, schema))

    async def _repaired_reply(self, prompt: Prompt, schema: str, reply: Completion) -> Completion:
        """Return a reply that fits the schema, by repair or a second request if necessary; else the first reply."""
        fault = json_schema.fault(reply.answer, schema)
        if fault is None:
            return reply
        if (mended := json_schema.mend(reply.answer, schema)) is not None:
            return replace(reply, text=mended, repaired=True)
        if reply.fault is not None:  # it would be cut off or withheld again
            return reply
        request = Message("user", json_schema.second_request(fault, schema))
        longer = (*prompt.messages, Message("assistant", reply.answer), request)
        second = await self._reply(prompt, longer, schema if self._fields.takes_schema(schema) else None)
        if second is None:
            return reply
        text = json_schema.mend(second.answer, schema)
        return replace(reply, text=reply.text if text is None else text, repaired=True, logprob=None,
                       prompt_tokens=reply.prompt_tokens + second.prompt_tokens,
                       completion_tokens=reply.completion_tokens + second.completion_tokens,
                       seconds=reply.seconds + second.seconds, finish=reply.finish if text is None else second.finish)

    async def _reply(self, prompt: Prompt, messages: Sequence[Message], schema: str | None = None) -> Completion | None:
        """Send one request until it is answered; None if it does not fit into our window or the server's."""
        if not self._fits(messages, prompt.max_tokens):
            return None
        body = self._body(prompt, messages, schema)
        async with self._fields.turn(*body, schema or ""):
            while self._fields.takes_schema(schema):
                sent = self._fields.adapted(body)
                try:
                    return replace(await self.post(sent), sent=changes(body, sent))
                except TooLong:
                    return None
                except Withheld:
                    return Completion("", 0, 0, 0.0, "content_filter", sent=changes(body, sent))
                except NoSchema as error:
                    if schema is None:
                        raise self._refusal(error) from error
                    raise
                except FieldsRefused as error:
                    if not self._fields.learn(error.names, sent):
                        raise self._refusal(error) from error
        raise NoSchema(schema)

    def _refusal(self, error: Exception) -> MemlabError:
        return MemlabError(f"the request is refused ({self._redact(str(error))})", where=self.where,
                           fix="check the chat's settings: a field that is null is not sent")

    def _body(self, prompt: Prompt, messages: Sequence[Message], schema: str | None) -> dict[str, Any]:
        settings = self.settings
        body: dict[str, Any] = {
            "model": settings.model, "seed": settings.seed + prompt.sample,
            "messages": [{"role": message.role, "content": valid(message.content)} for message in messages],
            "max_tokens": prompt.max_tokens or settings.max_tokens,
        }
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
    return (*before, Message(last.role, f"{last.content}\n\n{json_schema.request(schema)}"))
