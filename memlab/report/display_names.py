"""Display names of techniques: the name of the file in ``conf`` that describes them, never a class name of the code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from memlab.config.defaults import with_defaults
from memlab.harness.results import ArmRun
from memlab.runtime.home import shipped
from memlab.slots import SLOTS

CONFIGURED = "_target_"
MARKS = (CONFIGURED, "is")
"""Keys that name the class of a part: in a configuration, and in the specification that a manifest holds."""

EMPTY_SLOT = "none"
"""The display name of a slot that does nothing, which is also how it is chosen: ``rank/rerank=none``."""


def with_display_names(value: Any, key: str = "") -> Any:
    """Replace each class in a configuration or a specification by its display name; ``key`` is the name of its place.

    An empty slot keeps no settings.

    >>> with_display_names({"select": {"is": "memlab.Fixed", "k": 5}})
    {'select': {'is': 'fixed', 'k': 5}}
    >>> with_display_names({"late": {"_target_": "memlab.stage.Nothing", "writes": ["hits"]}})
    {'late': {'_target_': 'none'}}
    """
    if isinstance(value, list | tuple):
        return [with_display_names(item, key) for item in value]
    if not isinstance(value, Mapping):
        return value
    named = {str(k): with_display_names(v, str(k)) for k, v in value.items()}
    for mark in MARKS:
        if isinstance(value.get(mark), str):
            name = display_name(value[mark], key, value if mark == CONFIGURED else None)
            return {mark: name} if name == EMPTY_SLOT else {**named, mark: name}
    return named


def display_name(path: str, key: str = "", settings: Mapping[str, Any] | None = None) -> str:
    """Return the display name of a class, given by its path or its name.

    It is the name of the file in the folder ``key`` of ``conf`` that states this class. Of several it is the one that
    differs from the settings least. A class is named by its words if it has no such file, or has several and
    ``settings`` are not given: in a manifest models describe themselves by their weights.

    >>> display_name("memlab.rank.select.ByType", "select"), display_name("memlab.stage.Nothing")
    ('by_type', 'none')
    >>> display_name("LateInteraction", "matcher"), display_name("HNSW", "an index"), display_name("flat", "index")
    ('late interaction', 'HNSW', 'flat')
    """
    name = path.rpartition(".")[2]
    if name == "Nothing":
        return EMPTY_SLOT
    files = _files().get((key, name), [])
    if len(files) == 1:
        return files[0].stem
    gaps = {} if settings is None else {file.stem: _gap(_completed(file), settings) for file in files}
    best = [stem for stem, gap in gaps.items() if gap == min(gaps.values())]
    return best[0] if len(best) == 1 else _words(name)


def slot_names(arm: ArmRun) -> dict[str, str]:
    """Return slot -> display name of its technique, by the arm's configuration, or else by its manifest."""
    names = {}
    for slot in SLOTS:
        key = slot.config.rpartition(".")[2]
        spec = _slots(arm).get(slot.name, {})
        node: Any = arm.settings
        for part in slot.config.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        if isinstance(node, Mapping) and CONFIGURED in node:
            names[slot.name] = display_name(str(node[CONFIGURED]), key, node)
        elif "is" in spec:
            names[slot.name] = display_name(str(spec["is"]), key)
    return names


def oracle_bases(arms: Sequence[ArmRun]) -> dict[str, str]:
    """Return arm that looks at gold -> the one other arm that differs from it in nothing but the slots that do so."""
    systems = {arm.name: _slots(arm) for arm in arms
               if not (arm.oracle or arm.tainted or arm.name.endswith(".twin"))}
    bases = {}
    for arm in arms:
        kept = {slot: spec for slot, spec in _slots(arm).items() if slot not in arm.manifest.get("looks_at_gold", ())}
        same = [name for name, slots in systems.items() if kept.items() <= slots.items()]
        if arm.oracle and kept and len(same) == 1:
            bases[arm.name] = same[0]
    return bases


def _slots(arm: ArmRun) -> dict[str, Any]:
    return {slot: spec for slot, spec in arm.manifest["pipeline"].items() if isinstance(spec, dict)}


@cache
def _files() -> dict[tuple[str, str], list[Path]]:
    """Return (last folder, class name) -> the files in ``conf`` that state this class."""
    files: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in sorted(shipped("conf").rglob("*.yaml")):
        if match := re.search(r"^_target_: *[\w.]*?(\w+) *$", path.read_text(encoding="utf-8"), re.MULTILINE):
            files[path.parent.name, match[1]].append(path)
    return files


@cache
def _completed(file: Path) -> Any:
    """Return the settings that a file states, completed with the defaults of its class."""
    return with_defaults(OmegaConf.to_container(OmegaConf.load(file)))


def _gap(stated: Any, settings: Any) -> int:
    """Count the values that a file states and settings do not have; a reference stands for any value but none.

    >>> _gap({"a": [{"_target_": "x.Y", "k": 1}], "b": "${c}", "d": 3}, {"a": [{"is": "x.Y", "k": 1}], "b": 2, "d": 4})
    1
    """
    if isinstance(stated, Mapping) and isinstance(settings, Mapping):
        names = [next((node[mark] for mark in MARKS if mark in node), None) for node in (stated, settings)]
        return (names[0] not in (None, names[1])) + sum(
            _gap(value, settings.get(key)) for key, value in stated.items() if key not in MARKS)
    if isinstance(stated, list) and isinstance(settings, list | tuple) and len(stated) == len(settings):
        return sum(map(_gap, stated, settings))
    return int(settings is None if str(stated).startswith("${") else str(stated) != str(settings))


def _words(name: str) -> str:
    """Return the words of a class name in lower case, apart from abbreviations; other names stay as they are.

    >>> _words("SentenceEmbedder"), _words("BM25Okapi"), _words("HNSW"), _words("V1Types"), _words("by_rank")
    ('sentence embedder', 'BM25 okapi', 'HNSW', 'V1 types', 'by_rank')
    """
    if name.islower():
        return name
    words = re.findall(r"[A-Z][A-Z0-9]*(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+|\w", name)
    return " ".join(word if word.isupper() else word.lower() for word in words)
