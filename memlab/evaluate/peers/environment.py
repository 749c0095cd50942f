"""Virtual environments of peers: one for each list of requirements, made once, with what pip installed into it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.evaluate.peers.folder import Peer
from memlab.support.errors import MemlabError
from memlab.support.files import write_json
from memlab.support.foreign import read_json
from memlab.support.paths import home

TAIL = 400
"""Characters of pip's last words that an error shows."""


@dataclass(frozen=True)
class Environment:
    """The environment of a peer; one without requirements runs in memlab's own Python, and ``folder`` is None.

    Beside the folder lies a record of its versions and bytes, written last, which stays when the folder is removed.
    """

    folder: Path | None

    @property
    def python(self) -> str:
        """The interpreter."""
        return sys.executable if self.folder is None else str(self.folder / "bin" / "python")

    @property
    def record(self) -> dict[str, Any]:
        """What pip installed (``versions``: NAME==VERSION), and its ``bytes``; empty if it was never complete."""
        try:
            return read_json(self.folder.with_suffix(".json")) if self.folder else {}
        except (OSError, ValueError):
            return {}

    @property
    def installed(self) -> bool:
        """Whether it is complete."""
        return self.folder is None or (Path(self.python).exists() and bool(self.record))

    @property
    def size(self) -> int:
        """The bytes that it has, or had."""
        return int(self.record.get("bytes", 0))

    def remove(self) -> None:
        """Remove the folder."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def environment_of(peer: Peer) -> Environment:
    """Return the environment of a peer, whether it exists or not."""
    digest = hashlib.blake2b("\n".join(sorted(peer.requirements)).encode(), digest_size=8).hexdigest()
    return Environment(home() / "peers" / "envs" / digest if peer.requirements else None)


def make_environment(peer: Peer, python: str = sys.executable) -> Environment:
    """Return the environment of a peer, installed first unless it is there; raise MemlabError where pip fails."""
    made = environment_of(peer)
    if made.folder is None or made.installed:
        return made
    made.remove()
    try:
        _run(python, "-m", "venv", str(made.folder))
        _run(made.python, "-m", "pip", "install", "--no-input", *peer.requirements)
        versions = _run(made.python, "-m", "pip", "freeze").splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        made.remove()
        said = str(getattr(error, "stderr", None) or error).strip()
        raise MemlabError(f"its environment was not made: {said[-TAIL:]}", where=str(peer.folder / "requirements.txt"),
                          fix="check the network, or name another interpreter with --python") from error
    write_json(made.folder.with_suffix(".json"), {"versions": sorted(versions), "bytes": folder_size(made.folder)})
    return made


def folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout  # noqa: S603
