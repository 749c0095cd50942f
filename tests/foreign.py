"""Comparison of the calls that memlab makes into other packages with the packages that it pins.

Packages that CI installs are inspected. Of vLLM, FAISS for GPUs and FlagEmbedding there are lists in ``.ci/foreign``,
which ``.ci/nightly`` compares with the wheels of the pinned versions.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "torch", "transformers", "sentence_transformers", "huggingface_hub", "safetensors",
            "tokenizers", "faiss")
"""Packages whose calls are compared by inspection."""

RECEIVERS = {
    "sentence_transformers": ("SentenceTransformer", "CrossEncoder", "SparseEncoder", "MultiVectorEncoder"),
    "transformers": ("PreTrainedModel", "PreTrainedTokenizerFast", "BatchEncoding")}
"""Classes of the objects that memlab's models hold without knowing their type."""

TAKEN_BY_NAME = {"transformers": ("modeling_utils", "models.auto.auto_factory", "models.auto.configuration_auto",
                                  "models.auto.tokenization_auto", "tokenization_utils_base", "configuration_utils")}
"""Modules that take words out of ``**kwargs``."""


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


def call_faults(source: str, methods: Mapping[str, Collection[str]] | None = None) -> list[str]:
    """Return the calls of a module, and the names that it reads, that its packages do not have.

    A word that a function swallows without reading it is a fault too. ``methods`` is given for a module that calls
    models without knowing their class: the methods of other classes than those in RECEIVERS, with their parameters.

    >>> call_faults("import numpy as np; np.stack(x, sort=1); np.no_such; model.encode(x, batch=3)", {})
    ['np.stack: no sort', 'np.no_such: there is no no_such', 'encode: no batch']
    """
    tree = ast.parse(source)
    known = dict(_imported(tree))
    faults = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _root(node.module) in PACKAGES and not node.level:
            module = importlib.import_module(str(node.module))
            faults += [f"{node.module} has no {alias.name}" for alias in node.names if not hasattr(module, alias.name)]
        elif isinstance(node, ast.Attribute):
            holder = _resolve(node.value, known)
            if holder is not None and not hasattr(holder, node.attr):
                faults.append(f"{ast.unparse(node)}: there is no {node.attr}")
        elif isinstance(node, ast.Call):
            faults += _one_call(node, known, tree, methods)
    return faults


def _one_call(call: ast.Call, known: dict[str, Any], tree: ast.Module,
              methods: Mapping[str, Collection[str]] | None) -> Iterator[str]:
    """Yield what is wrong with one call."""
    target = _resolve(call.func, known)
    words = [word for part in call.keywords for word in ([part.arg] if part.arg else _keys(part.value, tree))]
    if target is not None:
        yield from (f"{ast.unparse(call.func)}: {fault}" for fault in _unbound(target, call, words))
    elif methods is not None and isinstance(call.func, ast.Attribute | ast.Name):
        for name, takers in _meant(call.func, known, tree):
            taken = set(methods.get(name, ())).union(*(_free(taker) for taker in takers))
            yield from (f"{name}: no {word}" for word in words if (takers or name in methods) and word not in taken)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "_load" and call.args and isinstance(
            call.args[0], ast.Constant) and not hasattr(importlib.import_module("sentence_transformers"),
                                                        str(call.args[0].value)):
        yield f"sentence_transformers has no {call.args[0].value}"
    for part in call.keywords:
        if part.arg and part.arg.endswith("_kwargs"):
            yield from (f"{part.arg}: no {key}" for key in _keys(part.value, tree) if not _taken("transformers", key))


def _unbound(target: Any, call: ast.Call, words: list[str]) -> Iterator[str]:
    """Yield the arguments that a function does not take, and those that it swallows without reading them."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):  # written in C
        return
    parameters = signature.parameters.values()
    free = {part.name for part in parameters if part.kind in (part.POSITIONAL_OR_KEYWORD, part.KEYWORD_ONLY)}
    swallows = any(part.kind is part.VAR_KEYWORD for part in parameters)
    package = _root(getattr(target, "__module__", "") or "")
    for word in words:
        if word not in free and not (swallows and (package not in TAKEN_BY_NAME or _taken(package, word))):
            yield f"no {word}"
    if not any(part.kind is part.VAR_POSITIONAL for part in parameters) and not any(
            isinstance(part, ast.Starred) for part in call.args):
        places = [part for part in parameters if part.kind in (part.POSITIONAL_ONLY, part.POSITIONAL_OR_KEYWORD)]
        if len(call.args) > len(places):
            yield f"{len(call.args)} arguments, and it takes {len(places)}"
        needed = [part.name for part in places[len(call.args):]
                  if part.default is part.empty and part.name not in words]
        if needed and all(part.arg for part in call.keywords):
            yield f"{', '.join(needed)} is not given"


def _free(function: Any) -> set[str]:
    """Return the parameters that can be given by name; none for a function in C."""
    try:
        return {*inspect.signature(function).parameters}
    except (TypeError, ValueError):
        return set()


def _imported(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield the names that a module gives to packages and what it takes from them; ``faiss`` may be an argument."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _root(alias.name) in PACKAGES:
                    module = importlib.import_module(alias.name)
                    yield (alias.asname, module) if alias.asname else (_root(alias.name),
                                                                       importlib.import_module(_root(alias.name)))
        elif isinstance(node, ast.ImportFrom) and _root(node.module) in PACKAGES and not node.level:
            module = importlib.import_module(str(node.module))
            yield from ((alias.asname or alias.name, getattr(module, alias.name, None)) for alias in node.names)
        elif isinstance(node, ast.arg) and node.arg == "faiss":
            yield "faiss", importlib.import_module("faiss")


def _resolve(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return what an expression such as ``torch.nn.functional`` stands for; None if it is no name of a package."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        if node.attr == "faiss" and isinstance(node.value, ast.Name) and node.value.id == "self":
            return importlib.import_module("faiss")
        holder = _resolve(node.value, known)
        return getattr(holder, node.attr, None) if holder is not None else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_faiss":
        return importlib.import_module("faiss")
    return None


def _meant(function: ast.expr, known: dict[str, Any], tree: ast.Module) -> Iterator[tuple[str, list[Any]]]:
    """Yield the name of each method that a call may mean, also by a local name for it, and what may bear the name.

    A local name for what ``getattr`` takes from a package means any of its classes.
    """
    parts: list[ast.expr] = [function] if isinstance(function, ast.Attribute) else [
        assign.value for assign in ast.walk(tree) if isinstance(assign, ast.Assign)
        and ast.unparse(assign.targets[0]) == ast.unparse(function)]
    for part in parts:
        if isinstance(part, ast.IfExp):
            parts += [part.body, part.orelse]
        elif isinstance(part, ast.Attribute):
            yield part.attr, [method for cls in (str, *_receivers(*RECEIVERS))
                              if inspect.isroutine(method := getattr(cls, part.attr, None))]
        elif isinstance(part, ast.Call) and ast.unparse(part.func) == "getattr":
            package = getattr(_resolve(part.args[0], known), "__name__", "")
            yield f"a class of {package}", _receivers(package)


def _receivers(*packages: str) -> list[type]:
    return [getattr(importlib.import_module(package), name) for package in packages
            for name in RECEIVERS.get(package, ())]


def _keys(node: ast.expr, tree: ast.Module) -> set[str]:
    """Return the keys of a dictionary that is written out, also of one that is named or put into it by name."""
    if isinstance(node, ast.Name):
        return set().union(*(_keys(assign.value, tree) for assign in ast.walk(tree) if isinstance(assign, ast.Assign)
                             and ast.unparse(assign.targets[0]) == node.id))
    if isinstance(node, ast.IfExp):
        return _keys(node.body, tree) | _keys(node.orelse, tree)
    if not isinstance(node, ast.Dict):
        return set()
    return {str(key.value) for key in node.keys if isinstance(key, ast.Constant)}.union(
        *(_keys(value, tree) for key, value in zip(node.keys, node.values) if key is None))


@cache
def _taken(package: str, word: str) -> bool:
    """Return whether a package that takes any keyword reads this one somewhere."""
    texts = (inspect.getsource(importlib.import_module(f"{package}.{name}")) for name in TAKEN_BY_NAME[package])
    return any(re.search(rf"[\"']{word}[\"']|\b{word}\s*[:=]", text) for text in texts)


def _root(name: str | None) -> str:
    return (name or "").partition(".")[0]


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
