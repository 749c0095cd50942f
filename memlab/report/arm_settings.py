"""Arms in a report: the names of their techniques, the settings in which they differ, and their manifests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from memlab.experiment.config.choices import own_choices
from memlab.experiment.config.instantiate import CONF, choice_settings, with_defaults
from memlab.experiment.harness.results import ArmRun
from memlab.pipeline.slots import SLOTS
from memlab.support.text.display import EMPTY, safe_line

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
    >>> with_display_names({"late": {"_target_": "memlab.pipeline.stage.EmptyStage", "writes": ["hits"]}})
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

    It is the name of the choice of a slot ``key`` that states this class. Of several it is the one that differs from
    the settings least. A class is named by its words if it has no such choice, or has several and
    ``settings`` are not given: in a manifest models describe themselves by their weights.

    >>> display_name("memlab.stages.rank.select.ByType", "select"), display_name("memlab.pipeline.stage.EmptyStage")
    ('by_type', 'none')
    >>> display_name("LateInteraction", "matcher"), display_name("HNSW", "an index"), display_name("flat", "index")
    ('late interaction', 'HNSW', 'flat')
    """
    name = path.rpartition(".")[2]
    if name == "EmptyStage":
        return EMPTY_SLOT
    choices = _choices_by_class().get((key, name), [])
    gaps = {} if settings is None else {choice: _gap(_complete(choice), settings) for choice in choices}
    best = choices if len(choices) == 1 else [choice for choice, gap in gaps.items() if gap == min(gaps.values())]
    return best[0].rpartition("/")[2] if len(best) == 1 else _words(name)


def slot_names(arm: ArmRun) -> dict[str, str]:
    """Return slot -> display name of its technique, by the arm's configuration, or else by its manifest."""
    names = {}
    for slot in SLOTS:
        key = slot.config.rpartition(".")[2]
        spec = arm.manifest["pipeline"].get(slot.name)
        node: Any = arm.settings
        for part in slot.config.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        if isinstance(node, Mapping) and CONFIGURED in node:
            names[slot.name] = display_name(str(node[CONFIGURED]), key, node)
        elif isinstance(spec, dict) and "is" in spec:
            names[slot.name] = display_name(str(spec["is"]), key)
    return names


@cache
def _choices_by_class() -> dict[tuple[str, str], list[str]]:
    """Return (last folder of a slot, class name) -> memlab's choices that state this class, ``rank/select/gap``."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, choice in sorted(own_choices(CONF).items()):
        text = (choice.path.read_text(encoding="utf-8") if choice.settings is None else
                f"{CONFIGURED}: {choice.settings.get(CONFIGURED)}")
        if match := re.search(r"^_target_: *(?:[\w.]*\.)?(\w+) *$", text, re.MULTILINE):
            found[name.split("/")[-2], match[1]].append(name)
    return found


@cache
def _complete(choice: str) -> Any:
    """Return the settings that a choice states, completed with the defaults of its class."""
    return with_defaults(choice_settings(choice))


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


SHOWN_ELSEWHERE = ("arm", "command", "notes", "reliability", "importances", "constant_k", "told", "looks_at_gold",
                   "overrides", "asking")
"""Parts of a manifest that the report shows in a section of their own."""

SLOT_PREFIX = "pipeline."
"""Beginning of the names of a manifest's slots."""


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Flatten a manifest to dotted names and short texts.

    >>> flat({"versions": {"polars": "1.2"}, "seeds": [1, 2]})
    {'versions.polars': '1.2', 'seeds': '1, 2'}
    """
    if isinstance(value, dict):
        return {k: v for name, inner in value.items()
                for k, v in flat(inner, f"{prefix}.{name}" if prefix else str(name)).items()}
    if isinstance(value, list | tuple) and any(isinstance(v, dict | list) for v in value):
        return {prefix: f"{len(value)} entries"}
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else _plain(value)
    return {prefix: text if len(text) <= 300 else text[:297] + "..."}


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: EMPTY}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def transpose(tables: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Turn arm -> name -> value into name -> arm -> value; what an arm does not have is ``EMPTY``."""
    names = dict.fromkeys(name for table in tables.values() for name in table)
    return {name: {arm: table.get(name, EMPTY) for arm, table in tables.items()} for name in names}


def manifests(arms: Sequence[ArmRun]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Split the manifests into what all arms share and what differs: name -> value, name -> arm -> value.

    A slot that is empty in all arms is left out.
    """
    rows = transpose({arm.name: _flat_manifest(arm) for arm in arms})
    shared = {name: next(iter(row.values())) for name, row in rows.items() if len(set(row.values())) == 1}
    differing = {name: row for name, row in rows.items() if name not in shared}
    shown = {name: text for name, text in shared.items() if text != EMPTY_SLOT or not name.startswith(SLOT_PREFIX)}
    return shown, differing


def _flat_manifest(arm: ArmRun) -> dict[str, str]:
    """Flatten the manifest of an arm; each slot maps to the display name of its technique."""
    parts = with_display_names({k: v for k, v in arm.manifest.items() if k not in SHOWN_ELSEWHERE})
    if isinstance(pipeline := parts.get("pipeline"), dict):
        pipeline.pop("is", None)  # the same class in all runs
        for slot, name in slot_names(arm).items():  # a manifest's models do not record which file describes them
            if isinstance(pipeline.get(slot), dict):
                pipeline[slot]["is"] = name
    return {name.removesuffix(".is"): text for name, text in flat(parts).items()}


def commands(arms: Sequence[ArmRun]) -> list[str]:
    """Return the distinct lines that started the arms, in the arms' order; those of jobs have none."""
    return list(dict.fromkeys(safe_line(line) for arm in arms if (line := arm.manifest["command"])))


ELSEWHERE = ("contrasts", "track", "name", "ablate", "out", "store")
"""Parts of a configuration that do not describe the arm itself."""

SHARED = ("embedder", "cross_encoder", "chat", "judge_chat", "learn")
"""Parts that count only where a stage uses them, and are repeated there."""

TECHNIQUE = "._target_"
"""Suffix of a setting that is a slot's technique; its value is a display name."""


def by_value(arms: Sequence[ArmRun]) -> dict[str, dict[str, list[str]]]:
    """Return setting -> value -> the arms that have it, for the settings that are not the same in all arms.

    Settings are in the order of config.yaml; arms that lack one are "all others" behind ``EMPTY``.
    """
    rows = transpose({arm.name: flat(with_display_names({
        k: v for k, v in arm.settings.items() if k not in ELSEWHERE + SHARED})) for arm in arms})
    settings: dict[str, dict[str, list[str]]] = {}
    for name, row in rows.items():
        if len(set(row.values())) > 1:
            values: dict[str, list[str]] = settings.setdefault(name.removesuffix(TECHNIQUE), {})
            for arm, value in row.items():
                if value != EMPTY:
                    values.setdefault(value, []).append(arm)
            if EMPTY in row.values():
                values[EMPTY] = ["all others"]
    return settings
