"""Settings that nothing reads: of a composed configuration, and of what an arm is made of.

A place is read if it is a setting of the run, a setting of the class of a part, or if a value that is read refers to
it (``${my.k}``). A misspelt key is none of these, whether a word or a file has set it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from memlab.config import choices
from memlab.config.choices import ARMS, GLOBAL, FileStamp
from memlab.config.instantiate import CONF, choice_settings, class_defaults, find_class, options
from memlab.errors import did_you_mean

Place = tuple[str, ...]

HYDRA = ("launcher", "mode", "sweeper", "overrides", "runtime", "searchpath")
"""Settings of Hydra's that memlab reads, and those that Hydra writes while it composes."""

_NAME = re.compile(r"(?<!\.)\.*[^\W\d][\w./@-]*")


@cache
def known_places() -> tuple[frozenset[Place], frozenset[Place]]:
    """Return the places of all slots, and those of the settings that ``conf/config.yaml`` states itself."""
    whole: Any = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"))
    chosen = [slot for entry in whole.pop("defaults") if isinstance(entry, dict) for slot in entry]
    slots = frozenset(tuple(slot.split("/")) for slot in chosen if slot not in GLOBAL)
    return slots, frozenset(place for place, _ in _leaves(whole, ()))


def slots_with(technique: str) -> list[str]:
    """Return the slots that have a technique of this name.

    >>> slots_with("gap"), slots_with("round")
    (['rank/select'], ['read/measure', 'write/chunk'])
    """
    slots = [*("/".join(slot) for slot in known_places()[0]), "system"]
    return sorted(slot for slot in slots if technique in options(slot))


def settings_of(node: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of all settings of a configuration of plain values, but for Hydra's."""
    for name, value in node.items() if isinstance(node, dict) else ():
        if name != "hydra" or place:
            yield (*place, str(name))
            yield from settings_of(value, (*place, str(name)))


def unread_settings(config: DictConfig, untouched: Mapping[str, Any]) -> dict[Place, str]:
    """Return place -> fault of every setting of a composed configuration that no class and no value reads.

    ``untouched`` holds Hydra's own settings (plain values) as they are without a word and without a file.
    """
    plain: Any = OmegaConf.to_container(config, resolve=False)
    hydra = plain.pop("hydra")
    slots, own = known_places()
    read, faults = _follow(plain, [*slots, *own, *_references(choices.stamps())], slots)
    faults.update(_of_hydra(hydra, untouched))
    for place, _ in _leaves(plain, ()):
        if place not in read and not any(place[:n] in faults for n in range(1, len(place) + 1)):
            wrong, fault = _no_setting(place, {*slots, *own, *read})
            faults[wrong] = fault
    return faults


def read_places(config: DictConfig, roots: Iterable[str]) -> set[Place]:
    """Return the places of all values that the parts and settings at these dotted places read."""
    plain: Any = OmegaConf.to_container(config, resolve=False)
    return _follow(plain, [tuple(root.split(".")) for root in roots], known_places()[0])[0]


@lru_cache(maxsize=8)
def _references(stamps: tuple[FileStamp, ...]) -> frozenset[Place]:
    """Return the places that the files of these stamps refer to: a helper of an arm may stand in its experiment."""
    texts = (Path(path).read_text(encoding="utf-8", errors="replace") for path, _ in stamps)
    return frozenset(tuple(name.strip(".").split(".")) for text in texts for part in text.split("${")[1:]
                     for name in _NAME.findall(part.partition("}")[0]) if not name.startswith("."))


def origin(place: Place) -> Path | None:
    """Return the file beside memlab's own that sets a place, or the end of it; None if there is none."""
    ends = [place[start:] for start in range(len(place))]
    return next((choice.path for end in ends for name, choice in choices.more_choices().items()
                 if _at(choice_settings(name), end) is not None), None)


def places_in_files(config: DictConfig) -> dict[Place, Path]:
    """Return place -> file of all values that the chosen experiment and system set, if their files are not memlab's.

    Those that the file itself refers to are left out: an arm reads them, whether it is chosen or not.
    """
    found: dict[Place, Path] = {}
    for slot in ("exp", "system"):
        name = f"{slot}/{config.hydra.runtime.choices.get(slot)}"
        if choice := choices.more_choices().get(name):
            own = _references(tuple(stamp for stamp in choices.stamps() if stamp[0] == str(choice.path)))
            found |= {place: choice.path for key, node in choice_settings(name).items()
                      if key not in ("defaults", "hydra", ARMS) for place, _ in _leaves(node, (str(key),))
                      if not any(place[:len(one)] == one for one in own)}
    return found


def _follow(plain: Any, roots: Iterable[Place], slots: Iterable[Place]) -> tuple[set[Place], dict[Place, str]]:
    """Return the places that are read from ``roots``, and the faults of settings that their classes do not have."""
    read: set[Place] = set()
    faults: dict[Place, str] = {}
    queue, seen = [*roots], set[Place]()
    while queue:
        root = queue.pop()
        node = _at(plain, root)
        if root in seen or (root in slots and isinstance(node, dict) and "_target_" not in node):
            continue
        seen.add(root)
        for place, value in _leaves(node, root, faults):
            read.add(place)
            if isinstance(value, str) and "${" in value:
                queue += [source for part in value.split("${")[1:] for name in _NAME.findall(part.partition("}")[0])
                          if (source := _existing(plain, name, place))]
    return read, faults


def _leaves(node: Any, place: Place, faults: dict[Place, str] | None = None) -> Iterator[tuple[Place, Any]]:
    """Yield (place, value) of the innermost values of a node; an empty mapping or list is one.

    With ``faults``, settings that the classes in the node do not have are added there, and not yielded.
    """
    items = list(node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ())
    if not items:
        yield place, node
    target = node.get("_target_") if isinstance(node, dict) and faults is not None else None
    cls = find_class(str(target), "", []) if target is not None else None
    known = class_defaults(cls) if cls else {}
    for name, value in items:
        if faults is None or cls is None or name in ("_target_", *known):
            yield from _leaves(value, (*place, str(name)), faults)
        else:
            faults[*place, str(name)] = f"{'.'.join(place)} has no setting '{name}'; {did_you_mean(str(name), known)}"


def _at(plain: Any, place: Place) -> Any:
    for name in place:
        plain = plain.get(name) if isinstance(plain, dict) else None
    return plain


def _existing(plain: Any, name: str, place: Place) -> Place:
    """Return the place that a reference at ``place`` names, as far as it exists: the rest may be computed."""
    up = len(name) - len(name.lstrip("."))
    full = (*(place[:-up] if up else ()), *name.strip(".").split("."))
    return full[:next((n for n, _ in enumerate(full) if _at(plain, full[:n + 1]) is None), len(full))]


def _no_setting(place: Place, known: set[Place]) -> tuple[Place, str]:
    """Return the first part of a place that leads nowhere, and its fault."""
    depth = max(n for n in range(len(place)) if not n or any(one[:n] == place[:n] for one in known))
    names = {one[depth] for one in known if one[:depth] == place[:depth] and len(one) > depth}
    owner = f"{'.'.join(place[:depth])} has" if depth else "there is"
    if not names:
        slot = ".".join(place[:depth])
        return place[:depth + 1], f"nothing reads {slot}.{place[depth]}; {slot} names no class (_target_)"
    return place[:depth + 1], f"{owner} no setting '{place[depth]}'; {did_you_mean(place[depth], names)}"


def _of_hydra(node: Any, untouched: Mapping[str, Any]) -> dict[Place, str]:
    """Return place -> fault of settings of Hydra's that it does not have, or of which memlab reads nothing."""
    faults: dict[Place, str] = {("hydra", str(name)): f"memlab reads nothing of hydra.{name}"
                                for name in node if name not in HYDRA and node[name] != untouched.get(name)}
    faults |= {("hydra", "sweeper", str(name)): f"memlab reads nothing of hydra.sweeper.{name}, only params"
               for name, value in node["sweeper"].items()
               if name != "params" and value != untouched["sweeper"].get(name)}
    if find_class(str(node["launcher"]["_target_"]), "", []):
        list(_leaves(node["launcher"], ("hydra", "launcher"), faults))
        return faults
    return faults | {("hydra", "launcher", str(name)): "no launcher is chosen that has settings; add "
                     "hydra/launcher=slurm" for name in node["launcher"] if name != "_target_"}
