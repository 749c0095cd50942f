"""From configuration to objects: every slot's class is found, checked and made, and all faults are told at once.

Only classes below ``memlab.`` may be named by ``_target_``; a key that a class does not know is answered with the
nearest one that it does.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from memlab.data.dataset import Dataset
from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.pipeline import Pipeline

CONF = Path(__file__).resolve().parents[1] / "conf"
"""The configuration folder; it lies beside the package, hence ``pip install -e``."""

SLOTS = {
    "chunk": "write.chunk", "extract": "write.extract", "anchor": "write.anchor", "context": "write.context",
    "relate": "write.relate", "prune": "write.prune",
    "query": "query.question", "classify": "query.classify", "decompose": "query.decompose",
    "expand": "query.expand", "time": "query.time",
    "dense": "search.dense", "lexical": "search.lexical", "late": "search.late",
    "score": "rank.score", "boost": "rank.boost", "rerank": "rank.rerank", "fuse": "rank.fuse",
    "window": "rank.window", "rollup": "rank.rollup",
    "measure": "read.measure", "select": "rank.select", "pack": "read.pack", "graph": "read.graph",
    "answer": "read.answer", "judge": "judge", "attribute": "attribute",
    "tokens": "read.tokens",
}
"""Pipeline field -> where its configuration lies."""


def construct(node: Any, where: str, faults: list[str]) -> Any:
    """Make the object that a configuration node describes; append what is wrong to faults and go on."""
    if isinstance(node, list):
        return [construct(item, f"{where}[{i}]", faults) for i, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    fields = {k: construct(v, f"{where}.{k}", faults) for k, v in node.items() if k != "_target_"}
    if "_target_" not in node:
        return fields
    before = len(faults)
    made = _find(str(node["_target_"]), where, faults)
    if made is None:
        return None
    known = [f.name for f in dataclasses.fields(made) if f.init]
    for name, value in fields.items():
        if name not in known:
            faults.append(f"{where}.{name}: {made.__name__} has no such setting; {did_you_mean(name, known)}")
        elif isinstance(node[name], str) and node[name] == "???":
            faults.append(f"{where}.{name}: a value is required, e.g. {where}.{name}=...")
        elif told_already(node[name], value):
            return None
    if len(faults) > before:
        return None
    try:
        return made(**fields)
    except ValidationError as error:
        for fault in error.errors():
            place = ".".join([where, *map(str, fault["loc"])])
            given = "" if fault["type"] == "missing" else f" (given: {_short(fault['input'])})"
            faults.append(f"{place}: {fault['msg'].removeprefix('Value error, ')}{given}")
    except MemlabError as error:
        faults.append(f"{where}: {error}")
    return None


def told_already(node: Any, made: Any) -> bool:
    """Tell whether an object below this node could not be made, so that its own fault is told already."""
    if isinstance(node, list):
        return any(told_already(item, one) for item, one in zip(node, made))
    return made is None and isinstance(node, dict)


def _find(target: str, where: str, faults: list[str]) -> Any:
    module, _, name = target.rpartition(".")
    if not target.startswith("memlab."):
        faults.append(f"{where}._target_: '{target}' is outside memlab; only memlab's own classes are made from "
                      "configuration")
        return None
    try:
        made = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        faults.append(f"{where}._target_: '{target}' cannot be found ({error})")
        return None
    if not (isinstance(made, type) and dataclasses.is_dataclass(made) and made.__module__.startswith("memlab.")):
        faults.append(f"{where}._target_: '{target}' is not a class of memlab that is made from configuration")
        return None
    return made


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def part(cfg: DictConfig, where: str, faults: list[str]) -> Any:
    """Make the object configured at a dotted place; None, with a fault appended, where that fails."""
    try:
        node = OmegaConf.select(cfg, where)
        plain = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    except OmegaConfBaseException as error:
        faults.append(f"{where}: {str(error).splitlines()[0]}")
        return None
    if not isinstance(plain, dict) or "_target_" not in plain:
        faults.append(f"{where}: nothing is chosen here; choose one of: {', '.join(options(where))}")
        return None
    before = len(faults)
    made = construct(plain, where, faults)
    for place, source in _borrowed(OmegaConf.to_container(node), where):  # told where it can be mended
        faults[before:] = [fault.replace(f"{place}.", f"{source}.") for fault in faults[before:]]
    return made


def _borrowed(node: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield (place, source) of every part that is taken whole from elsewhere: ``chat: ${judge_chat}``."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        place = f"{where}[{key}]" if isinstance(node, list) else f"{where}.{key}"
        if isinstance(value, str) and (found := re.fullmatch(r"\$\{([\w.]+)\}", value)):
            yield place, found[1]
        yield from _borrowed(value, place)


def options(slot: str) -> list[str]:
    """List the techniques of a slot: the files in its configuration folder.

    >>> "fixed" in options("rank.select")
    True
    """
    folder = CONF.joinpath(*slot.split("."))
    return sorted(p.stem for p in folder.glob("*.yaml"))


def build(cfg: DictConfig) -> tuple[Pipeline, Dataset]:
    """Make an arm's pipeline and data set; raise Faults with everything that is wrong."""
    faults: list[str] = []
    stages = {slot: part(cfg, where, faults) for slot, where in SLOTS.items()}
    dataset = part(cfg, "data", faults)
    if dataset is not None and not isinstance(dataset, Dataset):
        faults.append(f"data: {type(dataset).__name__} is not a data set")
    if not faults:
        try:
            return Pipeline(**stages), dataset
        except ValidationError as error:
            faults.extend(f"{SLOTS.get(str((e['loc'] or ('',))[0]), 'pipeline')}: "
                          f"{e['msg'].removeprefix('Value error, ')}" for e in error.errors())
    raise Faults(dict.fromkeys(faults))  # a part that several slots borrow is faulty once
