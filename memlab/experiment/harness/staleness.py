"""Digest of memlab's source: a run is stale when it was made by another.

It covers the syntax trees of all modules that can change a result, without comments, positions and docstrings, and the
files beside these modules, such as lists of words. A plug-in has a digest of its own.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

from memlab.support.disk_cache import load_or_make, own_files

WITHOUT_RESULTS = frozenset({
    "__main__.py", "run.py", "commands", "conf", "slurm", "report", "data/chats", "data/questions",
    "evaluate/peers", "experiment/cluster", "experiment/track", "models/serving"})
"""Files and folders of memlab that change no result of a run: commands, imports, reports, jobs, servers, and peers,
whose results have a digest of their own."""


@cache
def source_digest() -> str:
    """Return the digest of the source that this process runs, as it was when it was first needed."""
    return str(load_or_make("source", lambda: digest_of_files(own_files())))


def digest_of_files(files: Mapping[str, str]) -> str:
    """Return the digest of memlab's files, path in the package -> text of Python, digest of others."""
    total = hashlib.blake2b(digest_size=16)
    for path, text in files.items():
        if not {path, *map(str, PurePosixPath(path).parents)} & WITHOUT_RESULTS:
            content = _dump(text) if path.endswith(".py") else text
            total.update(f"{path}\0{content}\0".encode(errors="surrogatepass"))
    return total.hexdigest()


def _dump(source: str) -> str:
    """Return the syntax tree of a module as text, without statements that are only a text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    return (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str))
