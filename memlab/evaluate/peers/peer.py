"""A peer: the folder of a package, with its pinned requirements, its adapter, and the environment that it runs in.

``adapter.py`` has one class (docs/peers.md) and may declare LICENCE, SENDS (what the package sends home), ENCODER
(False: it asks for no vectors), VARIABLES (for its environment, such as those that turn telemetry off) and BASE (the
peer beside it whose class it extends). They are read without running the file. There is one virtual environment for
each list of requirements; the record of what pip installed lies beside it, is written last, and stays when the
environment is removed.
"""

from __future__ import annotations

import ast
import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from memlab.experiment.config.plugins import EXPERIMENTS, NO_CHECKOUT
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.files import read_errors, write_json
from memlab.support.foreign import read_json
from memlab.support.paths import home

PEERS = EXPERIMENTS / "peers"
"""The folder of a checkout with a folder for each peer; an installed package has none."""


@dataclass(frozen=True)
class Peer:
    """A peer by its folder, whose name is that of its row."""

    folder: Path

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """The pinned requirements, the package itself first; empty for a peer that runs in memlab's own Python."""
        lines = [line.partition("#")[0].strip() for line in self.text("requirements.txt").splitlines()]
        if loose := next((line for line in lines if line and "==" not in line), None):
            raise MemlabError(f"'{loose}' has no exact version", where=str(self.folder / "requirements.txt"),
                              fix="write PACKAGE==VERSION, so that others measure the same")
        return tuple(filter(None, lines))

    @property
    def version(self) -> str:
        """The package and its version, as ``bm25s 0.3.16``."""
        return next(iter(self.requirements), "no package").replace("==", " ")

    @cached_property
    def declared(self) -> dict[str, Any]:
        """Name -> value of the constants of the adapter, and ``ABOUT``, the first line of its docstring."""
        found: dict[str, Any] = {"LICENCE": "unknown", "SENDS": "unknown", "ENCODER": True, "VARIABLES": {}, "BASE": ""}
        try:
            tree = ast.parse(self.text("adapter.py"))
            found |= {ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in tree.body
                      if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in found}
        except (SyntaxError, ValueError, RecursionError) as error:
            raise MemlabError(f"cannot be read ({error})", where=str(self.folder / "adapter.py"),
                              fix=f"it is a Python file in which {', '.join(found)} are constants") from error
        return {"ABOUT": (ast.get_docstring(tree) or "").partition("\n")[0], **found}

    def source(self) -> str:
        """The text of its adapter, after that of the peer which it extends."""
        base = self.declared["BASE"]
        return (Peer(self.folder.parent / base).source() if base else "") + self.text("adapter.py")

    def environment(self) -> Path:
        """The folder of its environment."""
        digest = hashlib.blake2b("\n".join(sorted(self.requirements)).encode(), digest_size=8).hexdigest()
        return home() / "peers" / "envs" / digest

    def python(self) -> str:
        """The interpreter of its environment, or memlab's own."""
        return str(self.environment() / "bin" / "python") if self.requirements else sys.executable

    def record(self) -> dict[str, Any]:
        """What pip installed (``versions``: NAME==VERSION), and its ``bytes``; none if it was never complete."""
        file = self.environment().with_suffix(".json")
        return read_json(file) if self.requirements and file.is_file() else {}

    def installed(self) -> bool:
        """Whether its environment is there and complete."""
        return not self.requirements or bool(self.record()) and Path(self.python()).exists()

    def install(self, python: str) -> None:
        """Make the environment with an interpreter, unless it is there; raise MemlabError where that fails."""
        folder = self.environment()
        if self.installed():
            return
        shutil.rmtree(folder, ignore_errors=True)
        pip, said = [self.python(), "-m", "pip"], ""
        for step in ([python, "-m", "venv", str(folder)], [*pip, "install", "--no-input", *self.requirements],
                     [*pip, "freeze"]):
            try:
                said = subprocess.run(step, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout  # noqa: S603
            except (OSError, subprocess.CalledProcessError) as error:
                said = str(getattr(error, "stderr", None) or error).strip()[-400:]
                raise MemlabError(f"{' '.join(step[1:4])} failed: {said}", where=str(self.folder / "requirements.txt"),
                                  fix="check version and network, or name another interpreter with --python") from error
        write_json(folder.with_suffix(".json"), {"versions": sorted(said.splitlines()), "bytes": folder_size(folder)})

    def text(self, file: str) -> str:
        """Return the text of one of its files; raise MemlabError if it cannot be read."""
        with read_errors(self.folder / file, "a peer is a folder of requirements.txt and adapter.py (docs/peers.md)"):
            return (self.folder / file).read_text(encoding="utf-8", errors="replace")


def shipped_peers() -> dict[str, Peer]:
    """Return the peers of this checkout by name."""
    return {file.parent.name: Peer(file.parent) for file in sorted(PEERS.glob("*/adapter.py"))}


def find_peer(word: str) -> Peer:
    """Return the peer of a name, or of a folder; raise MemlabError if there is none, or it cannot be read."""
    known = shipped_peers()
    if word not in known and not Path(word).is_dir():
        what = f"{did_you_mean(word, known)}, or the path of a folder" if known else f"give a folder: {NO_CHECKOUT}"
        raise MemlabError(f"there is no peer '{word}'; {what}")
    peer = known.get(word) or Peer(Path(word).resolve())
    _ = peer.requirements, peer.declared
    return peer


def folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
