"""Which servers of a chat model there are, by their records, and which of them a prompt is for.

Prompts that begin alike are for one server, whose prefix cache then serves them. The choice is by rendezvous hashing:
a server that comes or goes moves the prompts that are its own, and no others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence

from memlab.models.chat import Prompt
from memlab.serving import records

ALIKE = 256
"""Characters, after those that all prompts share, by which a prompt's server is chosen: 4 blocks of a prefix cache."""

_STEP = 64  # what all prompts share ends at another character in the next call; in steps it mostly does not


def published(model: str, revision: str | None = None) -> list[records.Server]:
    """List a model's chat servers that can be reached from here; revisions are compared where both sides name one."""
    return [server for server in records.readable()
            if server.does == "chat" and model in {server.model, *server.names}
            and (revision is None or server.revision in {None, revision})]


def openings(prompts: Sequence[Prompt]) -> list[bytes]:
    """Return a digest of each prompt's beginning, without the system's message and what all the prompts share.

    >>> from memlab.models.chat import Message
    >>> one, two, three = openings([Prompt((Message("system", "Be brief."), Message("user", text)))
    ...                             for text in ("a" * 300 + "?", "a" * 300 + "!", "b")])
    >>> one == two, one == three
    (True, False)
    """
    said = [next((m.content for m in prompt.messages if m.role != "system"), "") for prompt in prompts]
    first, last = min(said, default=""), max(said, default="")
    shared = len(os.path.commonprefix([first, last])) if first != last else 0
    start = shared - shared % _STEP
    return [_digest(text[start:start + ALIKE]) for text in said]


def choose(opening: bytes, urls: Iterable[str]) -> str:
    """Return the server that prompts of an opening are for.

    >>> urls = ["http://n1:1/v1", "http://n2:1/v1", "http://n3:1/v1"]
    >>> chosen = choose(b"one", urls)
    >>> all(choose(b"one", [url for url in urls if url != lost]) == chosen for lost in urls if lost != chosen)
    True
    """
    return max(urls, key=lambda url: _digest(url, opening))


def advice(model: str) -> str:
    """Say how to start a server of a model."""
    return f"`python -m memlab.serve {model}` on this machine, `sbatch slurm/serve.sbatch {model}` on a cluster"


def seen(model: str) -> str:
    """Describe what the records tell of a model's servers, or else of others'."""
    known = records.readable()
    own = [f"{s.url} on {s.host}{f', SLURM job {s.job},' if s.job else ''} "
           f"{'does not answer' if s.does else 'is starting'}" for s in known if model in {s.model, *s.names}]
    others = sorted({s.name for s in known} - {model})
    return "; ".join(own) or (f"there are servers of {', '.join(others)}" if others else "none has been started")


def _digest(text: str, of: bytes = b"") -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), key=of, digest_size=8).digest()
