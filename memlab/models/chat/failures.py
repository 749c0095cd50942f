"""Failed requests to a chat server, classified by their remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memlab.errors import MemlabError
from memlab.models.chat.fields import refused_fields

if TYPE_CHECKING:
    import openai

ErrorKind = Literal["unreachable", "away", "busy", "key", "unknown", "wrong"]

_KINDS: dict[int, ErrorKind] = {401: "key", 403: "key", 404: "unknown", 408: "busy", 409: "busy", 425: "busy",
                                429: "busy", 502: "away", 503: "away", 504: "away"}
_LONG = re.compile(r"context.(length|window)|maximum model length|max_model_len|(prompt|input).{0,40}too long|"
                   r"reduce the length", re.IGNORECASE)
_SCHEMA = re.compile(r"response_?format|json_?schema|guided|structured.?output|grammar", re.IGNORECASE)


class TooLong(Exception):
    """The server says that the prompt does not fit into its window."""


class Withheld(Exception):
    """The server's filter refuses the prompt, as it may withhold a reply."""


class NoSchema(Exception):
    """The server cannot bind a reply to this schema."""


class FieldsRefused(Exception):
    """The server refuses fields of the request, for this model at least."""

    def __init__(self, names: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.names = names


class ServerUnavailable(MemlabError):
    """The server does not answer at all or, with ``answers``, not this request; another server may."""

    def __init__(self, what: str, *, where: str, fix: str, answers: bool = False) -> None:
        super().__init__(what, where=where, fix=fix)
        self.answers = answers


@dataclass(frozen=True)
class Failure:
    """One failed request; ``message`` may quote the server, and ``retry_after`` is its header."""

    kind: ErrorKind
    message: str
    retry_after: str | None = None


def classify(error: Exception) -> Failure:
    """Classify a client's error; raises an exception of this module, or an error of another kind itself."""
    import openai

    if isinstance(error, openai.APIStatusError):
        plain = isinstance(error.body, Mapping) and isinstance(error.body.get("message"), str)  # as OpenAI's errors
        return _refusal(error, str(error.message) if plain else f"{error.message} {error.response.text}")
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Failure("away", "no reply in time")
    if isinstance(error, openai.APIConnectionError):
        if isinstance(error.__cause__, MemlabError):  # the reply is over its limit
            raise error.__cause__
        cause = error.__cause__ or error
        name = type(cause).__name__  # ConnectError: httpx could not connect at all
        return Failure("unreachable" if name == "ConnectError" else "away", f"{name}: {cause}")
    if isinstance(error, ValueError | openai.APIError):  # a ValueError: the body is no chat completion, or no JSON
        return Failure("busy", f"the reply is no chat completion ({error})")
    raise error


def _refusal(error: openai.APIStatusError, message: str) -> Failure:
    status = error.status_code
    if status == 413 or (status in (400, 422) and _LONG.search(message)):
        raise TooLong(message)
    if status == 400 and error.code == "content_filter":
        raise Withheld(message)
    names = refused_fields(error.param, error.code, message) if status in (400, 403, 422) else ()
    if names and "response_format" not in names:
        raise FieldsRefused(names, message)
    if status in (400, 422) and (names or _SCHEMA.search(message)):
        raise NoSchema(message)
    kind = _KINDS.get(status, "busy" if status >= 500 else "wrong")
    return Failure(kind, f"status {status}: {message}", error.response.headers.get("retry-after"))
