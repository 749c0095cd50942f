"""A client of one chat server: from prompts to requests, and from replies to completions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from memlab.models.chat import replies
from memlab.models.chat.tokenizer import valid
from memlab.models.connection import Connection, RequestRefused
from memlab.models.protocols import Completion, Message, Prompt
from memlab.models.server import AUTO, ServerSettings, Target, check_address
from memlab.models.serving.servers import answers, reachable_servers
from memlab.pipeline.stage import stage

Fits = Callable[[Sequence[Message], int | None], bool]

REFUSED = Completion("", 0, 0, 0.0, finish="refused")
WITHHELD = Completion("", 0, 0, 0.0, finish="content_filter")


@stage
class ChatSettings(ServerSettings):
    """The settings of a chat model that its connections need."""

    # an address, or auto: a server of this model that `memlab serve` started; not part of the identity
    url: Annotated[str, AfterValidator(lambda url: url if url == AUTO else check_address(url))] = (
        "http://127.0.0.1:8000/v1")
    # of the weights, if known, as `memlab serve` prints it: COMMIT, or COMMIT@QUANTISATION; part of the identity
    revision: str | None = None
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
    concurrency: Annotated[int, Field(ge=1)] = 16  # requests at a time; a vLLM server on a GPU takes 64 and more
    timeout: Annotated[float, Field(gt=0)] = 300.0  # seconds without a reply
    # longest wait, in seconds, for a server that is away; 3 s if it has never answered, unless url is auto
    patience: Annotated[float, Field(ge=0)] = 600.0
    retries: Annotated[int, Field(ge=0)] = 6  # as in ServerSettings


class Client(Connection):
    """Sends prompts to one server, in the form that it takes (``memlab.models.chat.replies``)."""

    def __init__(self, settings: ChatSettings, fits: Fits) -> None:
        self.chat, self._fits = settings, fits
        self._refused_schemas: set[str] = set()
        super().__init__(settings)

    def find_server(self) -> Target | None:
        """Return the server's address and key; with ``auto`` those of a server that answers, None if none does.

        Processes that run at the same time take different ones where there are several. Revisions are compared if both
        sides name one.
        """
        chat = self.chat
        if chat.url != AUTO:
            return super().find_server()
        up = [Target(one.url, one.key) for one in reachable_servers()
              if one.task == "chat" and chat.model in {one.model, *one.names}
              and (chat.revision is None or one.revision in {None, chat.revision}) and answers(one.url, one.key)]
        return up[os.getpid() % len(up)] if up else None

    def ask(self, prompt: Prompt) -> Completion:
        """Return one prompt's completion; its ``finish`` is "refused" if the prompt does not fit."""
        reply = self._reply(prompt, prompt.messages, prompt.schema)
        return reply if prompt.schema is None else self._repaired_reply(prompt, prompt.schema, reply)

    def _repaired_reply(self, prompt: Prompt, schema: str, reply: Completion) -> Completion:
        """Return a reply that fits the schema, by repair or further requests if necessary; else the first reply."""
        fault = replies.fault(reply.answer, schema)
        if fault is None:
            return reply
        if (mended := replies.mend(reply.answer, schema)) is not None:
            return replace(reply, text=mended, repaired=True)
        if reply.fault is not None:  # it would be cut off, withheld or refused again
            return reply
        last = reply.answer
        for _ in range(self.chat.repairs):
            request = Message("user", f"That does not fit: {fault}. {replies.request(schema)}")
            longer = (*prompt.messages, Message("assistant", last), request)
            again = self._reply(prompt, longer, None if schema in self._refused_schemas else schema)
            if again is REFUSED:
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

    def _reply(self, prompt: Prompt, messages: Sequence[Message], schema: str | None) -> Completion:
        """Send one request until it is answered; ask in words for JSON if the server refuses the schema.

        The result is ``REFUSED`` if the request does not fit into our window or the server's.
        """
        if schema in self._refused_schemas:
            messages, schema = _ask_for_json(messages, str(schema)), None
        if not self._fits(messages, prompt.max_tokens):
            return REFUSED
        try:
            return self.post("/chat/completions", self._body(prompt, messages, schema), replies.parse_completion)
        except RequestRefused as refusal:
            reason = replies.refusal_reason(refusal.reply)
            if reason == "too long":
                return REFUSED
            if reason == "withheld":
                return WITHHELD
            if reason != "schema" or schema is None:
                raise
        self._refused_schemas.add(schema)
        return self._reply(prompt, messages, schema)

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
