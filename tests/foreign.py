"""Comparison of what memlab uses of vLLM, FAISS for GPUs and FlagEmbedding with the versions that it pins.

CI does not install them: there are lists of their options, classes and names in ``.ci/foreign``, which ``.ci/nightly``
compares with the wheels.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


def listed(name: str) -> dict[str, Any]:
    """Return one of the committed lists."""
    content: dict[str, Any] = json.loads((ROOT / ".ci" / "foreign" / f"{name}.json").read_text(encoding="utf-8"))
    return content


def pinned(file: str) -> dict[str, str]:
    """Return package -> version of a constraints file at the root."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(name): version for name, version in (
        line.split("==") for line in lines if "==" in line and not line.startswith("#"))}


def option_faults(words: Sequence[str], options: Mapping[str, str | list[str]], deprecated: Collection[str] = ()
                  ) -> list[str]:
    """Return what is wrong with a command line for vLLM.

    >>> option_faults(["--runner", "fast", "--fly", "--eager", "on"], {"--runner": ["pooling"], "--eager": "flag"})
    ['--runner fast: none of pooling', '--fly: no such option', '--eager takes no value']
    """
    faults, at = [], 0
    while at < len(words):
        name, sign, value = words[at].partition("=")
        at += 1
        values = [value] if sign else []
        while at < len(words) and not words[at].startswith("-"):
            values.append(words[at])
            at += 1
        name = name.partition(".")[0].replace("_", "-")
        kind = options.get(name) or ("flag" if options.get(name.replace("--no-", "--")) == "flag" else None)
        if kind is None:
            faults.append(f"{name}: no such option")
        elif name in deprecated:
            faults.append(f"{name} is deprecated")
        elif kind == "flag" and values:
            faults.append(f"{name} takes no value")
        elif kind != "flag" and (not values or len(values) > 1 and kind != "values"):
            faults.append(f"{name} takes one value, not {len(values)}")
        elif isinstance(kind, list) and values[0] not in kind:
            faults.append(f"{name} {values[0]}: none of {', '.join(kind)}")
    return faults


def fields_of_bodies(source: str) -> set[str]:
    """Return the fields of the requests that a module writes out: with a model, or into a dictionary named body."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            keys = {str(key.value) for key in node.keys if isinstance(key, ast.Constant)}
            found |= keys if "model" in keys and "is" not in keys else set()
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "body":
            parts = [part.value for part in ast.walk(node.slice) if isinstance(part, ast.Constant)]
            found |= {part for part in parts if isinstance(part, str) and part != "voyage"}
    return found


def faiss_faults(source: str, faiss: dict[str, Any]) -> list[str]:
    """Return what a module takes from FAISS, or sets on FAISS's objects, that a listed build does not have."""
    tree, faults = ast.parse(source), []
    names = {*faiss["functions"], *faiss["classes"], *faiss["constants"]}
    fields = set().union(*(one["names"] for one in faiss["classes"].values()), {"thisown"})
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("faiss", "self.faiss", "_faiss()"):
            faults += [] if node.attr in names else [f"there is no {node.attr}"]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != "self":
            faults += [] if node.attr in fields else [f"nothing has a field {node.attr}"]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in faiss["classes"]:
            faults += [f"{node.func.attr} has no {part.arg}" for part in node.keywords if part.arg not in fields]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
                takes := faiss["functions"].get(node.func.attr)):
            words = [part.arg for part in node.keywords if part.arg not in takes]
            if "*" not in takes and (words or len(node.args) > len(takes)):
                faults.append(f"{node.func.attr} takes {', '.join(takes)}")
    return faults


class Strict:
    """A stand-in for an object of a listed class that refuses attributes and methods that the class does not have."""

    def __init__(self, classes: dict[str, dict[str, Any]], name: str, methods: dict[str, Callable[..., Any]]) -> None:
        object.__setattr__(self, "_names", attributes(classes, name) | {"this", "thisown"})
        object.__setattr__(self, "_methods", methods)
        object.__setattr__(self, "_name", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._check(name)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        self._check(name)
        return self._methods.get(name, lambda *arguments: None)

    def _check(self, name: str) -> None:
        if name not in self._names:
            raise AttributeError(f"FAISS's {self._name} has no {name}")


def attributes(classes: dict[str, dict[str, Any]], name: str) -> set[str]:
    """Return the attributes and methods of a listed class, with those of its bases."""
    one = classes.get(name, {"names": (), "bases": ()})
    return set(one["names"]).union(*(attributes(classes, base) for base in one["bases"]))
