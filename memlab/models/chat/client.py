"""A client of one chat server: what is sent for a prompt, and what a reply becomes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from memlab.errors import MemlabError, did_you_mean
from memlab.models.chat import json_schema
from memlab.models.chat.background import Emit
from memlab.models.chat.protocol import Completion, Message, Prompt
from memlab.models.chat.retry import Connection, ErrorKind, Malformed, NoSchema, TooLong
from memlab.models.chat.server_key import NO_KEY, key_fix, server_key, start_fix, starting
from memlab.models.chat.tokenizer import valid
from memlab.models.http.client import Variable
from memlab.stage import stage

Fits = Callable[[Sequence[Message], int | None], bool]

REFUSED = Completion("", 0, 0, 0.0, finish="refused")
_PROBE = 5.0  # seconds that a living server may take to say so
_SHOWN = 300  # characters of a server's own words in a message


@stage
class ChatSettings:
    """The settings of a chat model that its clients need."""

    model: Annotated[str, Field(min_length=1)]
    url: Annotated[str, Field(pattern=r"^(auto$|https?://)")] = "http://127.0.0.1:8000/v1"
    key_env: Variable | None = None
    temperature: Annotated[float, Field(ge=0)] = 0.0
    seed: int = 0
    max_tokens: Annotated[int, Field(ge=1)] = 256
    concurrency: Annotated[int, Field(ge=1)] = 16
    timeout: Annotated[float, Field(gt=0)] = 300.0
    patience: Annotated[float, Field(ge=0)] = 600.0
    retries: Annotated[int, Field(ge=0)] = 6


async def ask_all(settings: ChatSettings, fits: Fits, prompts: Sequence[Prompt], order: Iterator[int],
                   emit: Emit[tuple[int, Completion]]) -> None:
    """Emit (position, completion) of every prompt, asking in the given order; raises MemlabError.

    As many workers as requests may run at once take the next prompt each: never more than that lies in memory.
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
    """The connection to a chat server, with its key and the schemas that it refuses."""

    def __init__(self, settings: ChatSettings, fits: Fits) -> None:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        address = urlsplit(settings.url)
        super().__init__(f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}",
                         retries=settings.retries, patience=settings.patience)
        self.settings, self._fits = settings, fits
        self._key = server_key(settings.url, settings.key_env)
        # a proxy that the environment names is no way to this machine itself, nor to another node
        local = address.hostname in ("127.0.0.1", "localhost", "::1") or self.starting()
        self._client = AsyncOpenAI(
            base_url=settings.url, api_key=self._key, max_retries=0, timeout=settings.timeout,
            http_client=DefaultAsyncHttpxClient(trust_env=False) if local else None)
        self._schemas_refused: set[str] = set()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def ask(self, prompt: Prompt) -> Completion:
        """Return one prompt's completion; "refused" where it does not fit."""
        if prompt.schema is None:
            return await self._reply(prompt, prompt.messages) or REFUSED
        reply = await self._bound(prompt)
        if reply is None:
            return REFUSED
        return await self._checked(prompt, prompt.schema, reply)

    async def _bound(self, prompt: Prompt) -> Completion | None:
        """Ask for JSON bound to the schema; in words where the server refuses it."""
        schema = prompt.schema or ""
        if schema not in self._schemas_refused:
            try:
                return await self._reply(prompt, prompt.messages, schema)
            except NoSchema:
                self._schemas_refused.add(schema)
        return await self._reply(prompt, _asking(prompt.messages, schema))

    async def _checked(self, prompt: Prompt, schema: str, reply: Completion) -> Completion:
        """Return a reply that fits the schema, repaired or asked for once more if need be, or the reply as it is."""
        what = json_schema.fault(reply.text, schema)
        if what is None:
            return reply
        if (mended := json_schema.mend(reply.text, schema)) is not None:
            return replace(reply, text=mended, repaired=True)
        if reply.finish == "length":  # it would be cut off again
            return reply
        longer = (*prompt.messages, Message("assistant", reply.text), Message("user", json_schema.again(what, schema)))
        second = await self._reply(prompt, longer, None if schema in self._schemas_refused else schema)
        if second is None:
            return reply
        fits = json_schema.fault(second.text, schema) is None
        text = second.text if fits else json_schema.mend(second.text, schema)
        return Completion(reply.text if text is None else text, reply.prompt_tokens + second.prompt_tokens,
                          reply.completion_tokens + second.completion_tokens, reply.seconds + second.seconds,
                          second.finish if text is not None else reply.finish, repaired=True)

    async def _reply(self, prompt: Prompt, messages: Sequence[Message], schema: str | None = None) -> Completion | None:
        """Send one request until it is answered; None where it does not fit into our window or the server's."""
        if not self._fits(messages, prompt.max_tokens):
            return None
        body = self._body(prompt, messages, schema)
        try:
            return await self.call(lambda: self._send(body))
        except TooLong:
            return None

    async def _send(self, body: dict[str, Any]) -> Completion:
        start = time.monotonic()
        async with asyncio.timeout(self.settings.timeout):  # for the whole reply; the client's own is for each read
            # not chat.completions.create: a third of its time goes into types that nothing here uses
            reply = await self._client.post("/chat/completions", cast_to=bytes, body=body)
        return _completion(reply, time.monotonic() - start)

    def _body(self, prompt: Prompt, messages: Sequence[Message], schema: str | None) -> dict[str, Any]:
        settings = self.settings
        body: dict[str, Any] = {
            "model": settings.model, "seed": settings.seed + prompt.sample,
            "messages": [{"role": message.role, "content": valid(message.content)} for message in messages],
            "temperature": settings.temperature if prompt.temperature is None else prompt.temperature,
            "max_tokens": prompt.max_tokens or settings.max_tokens,
        }
        if schema is not None:
            try:
                parsed = json.loads(schema)
            except ValueError as error:
                raise MemlabError(f"the schema is no JSON ({error})", where=f"{schema!r:.80}") from None
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": parsed}}
        return body

    async def serves(self) -> bool:
        """Return whether the server takes the key and knows the model."""
        return self.settings.model in await self._models()

    async def alive(self) -> bool:
        """Return whether the server answers anything at all; a gateway's 502 to 504 does not count."""
        import openai

        try:
            async with asyncio.timeout(_PROBE):
                await self._client.models.list()
        except openai.APIStatusError as error:
            return error.status_code not in (502, 503, 504)
        except (openai.APIConnectionError, TimeoutError):
            return False
        except Exception:  # noqa: S110  an answer that the client cannot read is an answer
            pass
        return True

    def starting(self) -> bool:
        """Return whether ``python -m memlab.serve`` has started a server at this address."""
        return starting(self.settings.url)

    async def fix(self, kind: ErrorKind) -> str:
        """Return the remedy for a failure."""
        settings = self.settings
        if kind == "key":
            return key_fix(settings.key_env, self._key)
        if kind == "wrong":
            return "check the chat's settings, and the server's log"
        if kind == "unknown":
            names = await self._models()
            return (f"chat.model=NAME; {did_you_mean(settings.model, names)}" if names
                    else "check chat.url, which mostly ends in /v1")
        return start_fix(settings.url, settings.model)

    async def _models(self) -> list[str]:
        """Return the models that a server names; none where it is no chat server."""
        try:
            async with asyncio.timeout(_PROBE):
                return [model.id for model in (await self._client.models.list()).data]
        except Exception:
            return []

    def renew_key(self) -> bool:
        """Take the key of a server that was started anew; return False if there is none."""
        key = server_key(self.settings.url, self.settings.key_env)
        changed = key != self._key
        self._key = self._client.api_key = key
        return changed

    def redact(self, message: str) -> str:
        """Return a server's words in one line, without the key and without control characters."""
        if self._key != NO_KEY:
            message = message.replace(self._key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in message).split())[:_SHOWN]


def _completion(reply: bytes, seconds: float) -> Completion:
    """Read a server's reply; raises Malformed."""
    try:
        content = json.loads(reply)
        choice, usage = content["choices"][0], content.get("usage")
        text = choice["message"].get("content")
        tokens = (int(usage["prompt_tokens"]), int(usage["completion_tokens"])) if usage else (0, 0)
        finish = choice.get("finish_reason")
    except (AttributeError, KeyError, TypeError, IndexError, ValueError, RecursionError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from None
    if not isinstance(text, str | None):
        raise Malformed("its content is no text")
    return Completion(valid(text or ""), *tokens, seconds, str(finish or "stop"))


def _asking(messages: Sequence[Message], schema: str) -> tuple[Message, ...]:
    """Ask for JSON at the end of the last message, so that what prompts share stays their beginning."""
    *before, last = messages
    return (*before, Message(last.role, f"{last.content}\n\n{json_schema.request(schema)}"))
