"""Limit of the size of a server's reply, counted while it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

from memlab.errors import MemlabError

MOST_BYTES = 100_000_000
"""Bytes of one reply: 100 vectors of 4,096 numbers take some 10 MB as JSON."""

HEADERS = {"Accept-Encoding": "identity"}
"""Asks for replies that are not packed: a packed one may unpack to any size."""


class _Counted:
    """The bytes of a reply; ends in a MemlabError where there are too many."""

    def __init__(self, response: httpx.Response) -> None:
        self._stream: Any
        self._stream, self._where, self._count = response.stream, str(response.url.copy_with(
            query=None, username=None, password=None)), 0

    def _add(self, piece: bytes) -> bytes:
        self._count += len(piece)
        if self._count > MOST_BYTES:
            raise MemlabError(f"the reply has more than {MOST_BYTES / 1e6:g} MB, the limit", where=self._where,
                              fix="check that the address is a model server, or send less at once (batch)")
        return piece

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            yield self._add(piece)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield self._add(piece)

    def close(self) -> None:
        """Close the connection's stream."""
        self._stream.close()

    async def aclose(self) -> None:
        """Close the connection's stream."""
        await self._stream.aclose()


def limit(response: httpx.Response) -> None:
    """Limit a reply that has not been read, as a hook of httpx; raise MemlabError if it is packed."""
    kinds = [kind for kind in type(response.stream).__mro__ if kind.__name__ in ("SyncByteStream", "AsyncByteStream")]
    counted = type("Counted", (_Counted, *kinds), {})(response)  # the OpenAI client may bring an httpx of its own
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise MemlabError("the reply is packed, which was not asked for", where=counted._where,
                          fix="let the server or its proxy send it without Content-Encoding")
    response.stream = counted


async def limit_async(response: httpx.Response) -> None:
    """Limit a reply as ``limit`` does, for an asynchronous client."""
    limit(response)
