"""One run of prompts against one chat server: who asks, what is sent, and what a reply becomes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from memlab.errors import MemlabError, did_you_mean
from memlab.models.chat import json_schema
from memlab.models.chat.background import Give
from memlab.models.chat.protocol import Completion, Message, Prompt
from memlab.models.chat.retry import Line, Malformed, NoSchema, TooLong, Words
from memlab.models.chat.server_key import NO_KEY, key_fix, server_key, start_fix, starting
from memlab.models.chat.tokenizer import valid

Fits = Callable[[Sequence[Message], int | None], bool]

REFUSED = Completion("", 0, 0, 0.0, finish="refused")
_PROBE = 5.0  # seconds that a living server may take to say so
_SHOWN = 300  # characters of a server's own words in a message


@dataclass(frozen=True)
class Settings:
    """Where and how to ask; the fields of ``OpenAIChat`` that a run of prompts needs."""

    model: str
    url: str
    key_env: str | None
    temperature: float
    seed: int
    max_tokens: int
    concurrency: int
    timeout: float
    patience: float
    retries: int


async def talk(settings: Settings, fits: Fits, prompts: Sequence[Prompt], order: Iterator[int],
               give: Give[tuple[int, Completion]]) -> None:
    """Give (position, completion) of every prompt, asking in the given order; raises MemlabError.

    So many workers as requests may run at once take the next prompt each: never more than that lies in memory.
    """
    async with Talk(settings, fits) as one:

        async def worker() -> None:
            for at in order:
                await give((at, await one.ask(prompts[at])))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(settings.concurrency):
                    group.create_task(worker())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


class Talk:
    """A connection to a server, with what was learnt of it: its key, and the schemas that it refuses."""

    def __init__(self, settings: Settings, fits: Fits) -> None:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self.settings, self._fits = settings, fits
        self._key = server_key(settings.url, settings.key_env)
        address = urlsplit(settings.url)
        self.where = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
        # a proxy that the environment names is no way to this machine itself, nor to another node
        local = address.hostname in ("127.0.0.1", "localhost", "::1") or starting(settings.url)
        self._client = AsyncOpenAI(
            base_url=settings.url, api_key=self._key, max_retries=0, timeout=settings.timeout,
            http_client=DefaultAsyncHttpxClient(trust_env=False) if local else None)
        words = Words(self.where, self._redact, lambda: start_fix(settings.url, settings.model),
                      lambda: key_fix(settings.key_env, self._key), self._model_fix, lambda: starting(settings.url))
        self._line = Line(self.alive, self._renew, words, retries=settings.retries, patience=settings.patience,
                          seed=settings.seed)
        self._unbound: set[str] = set()

    async def __aenter__(self) -> Talk:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cut the connection."""
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
        """Ask for JSON by the schema; in words where the server refuses it."""
        schema = prompt.schema or ""
        if schema not in self._unbound:
            try:
                return await self._reply(prompt, prompt.messages, schema)
            except NoSchema:
                self._unbound.add(schema)
        return await self._reply(prompt, _asking(prompt.messages, schema))

    async def _checked(self, prompt: Prompt, schema: str, reply: Completion) -> Completion:
        """Return a reply that fits the schema, mended or asked for once more if need be, or the reply as it is."""
        what = json_schema.fault(reply.text, schema)
        if what is None:
            return reply
        if (mended := json_schema.mend(reply.text, schema)) is not None:
            return replace(reply, text=mended, repaired=True)
        if reply.finish == "length":  # it would be cut off again
            return reply
        longer = (*prompt.messages, Message("assistant", reply.text), Message("user", json_schema.again(what, schema)))
        second = await self._reply(prompt, longer, schema if schema not in self._unbound else None)
        if second is None:
            return reply
        fits = json_schema.fault(second.text, schema) is None
        text = second.text if fits else json_schema.mend(second.text, schema)
        return Completion(reply.text if text is None else text, reply.prompt_tokens + second.prompt_tokens,
                          reply.completion_tokens + second.completion_tokens, reply.seconds + second.seconds,
                          second.finish if text is not None else reply.finish, repaired=True)

    async def _reply(self, prompt: Prompt, messages: Sequence[Message], schema: str | None = None) -> Completion | None:
        """Send one request until it is answered; None where it does not fit into the window, ours or the server's."""
        if not self._fits(messages, prompt.max_tokens):
            return None
        body = self._body(prompt, messages, schema)
        try:
            return await self._line.call(lambda: self._send(body))
        except TooLong:
            return None

    async def _send(self, body: dict[str, Any]) -> Completion:
        start = time.monotonic()
        async with asyncio.timeout(self.settings.timeout):  # of the whole reply; the client's own is a read's
            # not chat.completions.create: a third of its time goes into types that nobody looks at here
            reply = await self._client.post("/chat/completions", cast_to=bytes, body=body)
        return _completion(reply, time.monotonic() - start)

    def _body(self, prompt: Prompt, messages: Sequence[Message], schema: str | None) -> dict[str, Any]:
        own = self.settings
        body: dict[str, Any] = {
            "model": own.model, "seed": own.seed + prompt.sample,
            "messages": [{"role": message.role, "content": valid(message.content)} for message in messages],
            "temperature": own.temperature if prompt.temperature is None else prompt.temperature,
            "max_tokens": prompt.max_tokens or own.max_tokens,
        }
        if schema is not None:
            try:
                parsed = json.loads(schema)
            except ValueError as error:
                raise MemlabError(f"the schema is no JSON ({error})", where=f"{schema!r:.80}") from None
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": parsed}}
        return body

    async def serves(self) -> bool:
        """Tell whether the server takes the key and knows the model."""
        return self.settings.model in await self._models()

    async def alive(self) -> bool:
        """Tell whether the server answers anything at all, besides a gateway's regrets."""
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

    async def _model_fix(self) -> str:
        """Say what helps where a server does not know the model, or the address."""
        names = await self._models()
        if not names:
            return "check chat.url, which mostly ends in /v1"
        return f"chat.model=NAME; {did_you_mean(self.settings.model, names)}"

    async def _models(self) -> list[str]:
        """Return the models that a server names; none where it is no such server at all."""
        try:
            async with asyncio.timeout(_PROBE):
                return [model.id for model in (await self._client.models.list()).data]
        except Exception:
            return []

    def _renew(self) -> bool:
        """Take the key of a server that was started anew; False if there is none."""
        key = server_key(self.settings.url, self.settings.key_env)
        changed = key != self._key
        self._key = self._client.api_key = key
        return changed

    def _redact(self, said: str) -> str:
        """Return a server's words for a message: in one line, without the key and without control characters."""
        if self._key != NO_KEY:
            said = said.replace(self._key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in said).split())[:_SHOWN]


def _completion(reply: bytes, seconds: float) -> Completion:
    """Read a server's reply; raises Malformed."""
    try:
        read = json.loads(reply)
        choice, usage = read["choices"][0], read.get("usage")
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
