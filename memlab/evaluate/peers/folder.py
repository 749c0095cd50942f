"""A peer: the folder of a package, with its pinned requirements, its adapter and what the adapter declares.

``adapter.py`` has one class (docs/peers.md) and may declare LICENCE, SENDS (what the package sends home) and VARIABLES
(environment variables, such as those that turn telemetry off). They are read without running the file.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from memlab.experiment.config.plugins import EXPERIMENTS, NO_CHECKOUT
from memlab.support.errors import MemlabError, did_you_mean

PEERS = EXPERIMENTS / "peers"
"""The folder of a checkout with a folder for each peer; an installed package has none."""


@dataclass(frozen=True)
class Peer:
    """A peer by its folder, whose name is that of its row."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """The pinned requirements, the package itself first; empty for a peer that runs in memlab's own Python."""
        lines = [line.partition("#")[0].strip() for line in self._text("requirements.txt").splitlines()]
        if loose := next((line for line in lines if line and "==" not in line), None):
            raise MemlabError(f"'{loose}' has no exact version", where=str(self.folder / "requirements.txt"),
                              fix="write PACKAGE==VERSION, so that others measure the same")
        return tuple(filter(None, lines))

    @property
    def version(self) -> str:
        """The package and its version, as ``bm25s 0.3.16``."""
        return next(iter(self.requirements), "no package").replace("==", " ")

    @cached_property
    def digest(self) -> str:
        """The digest of the adapter."""
        return hashlib.blake2b(self._text("adapter.py").encode(), digest_size=16).hexdigest()

    @cached_property
    def declared(self) -> dict[str, Any]:
        """Name -> value of the constants of the adapter, and ``ABOUT``, the first line of its docstring."""
        try:
            tree = ast.parse(self._text("adapter.py"))
            found = {target.id: ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
                     for target in node.targets if isinstance(target, ast.Name) and target.id.isupper()}
        except (SyntaxError, ValueError, RecursionError) as error:
            raise MemlabError(f"cannot be read ({error})", where=str(self.folder / "adapter.py"),
                              fix="constants in capitals are plain texts, numbers and mappings of them") from error
        return {"ABOUT": (ast.get_docstring(tree) or "").partition("\n")[0], "VARIABLES": {}, **found}

    def _text(self, file: str) -> str:
        try:
            return (self.folder / file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise MemlabError(f"cannot be read ({getattr(error, 'strerror', None) or error})",
                              where=str(self.folder / file),
                              fix="a peer is a folder of requirements.txt and adapter.py (docs/peers.md)") from error


def shipped_peers() -> dict[str, Peer]:
    """Return the peers of this checkout by name."""
    return {file.parent.name: Peer(file.parent) for file in sorted(PEERS.glob("*/adapter.py"))}


def find_peer(word: str) -> Peer:
    """Return the peer of a name, or of a folder; raise MemlabError if there is none, or it cannot be read."""
    known = shipped_peers()
    if word not in known and not Path(word).is_dir():
        what = did_you_mean(word, known) if known else f"give the path of a folder: {NO_CHECKOUT}"
        raise MemlabError(f"there is no peer '{word}'; {what}")
    peer = known.get(word) or Peer(Path(word).resolve())
    _ = peer.requirements, peer.declared
    return peer
