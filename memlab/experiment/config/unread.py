"""Settings without effect: the places of a configuration that files set and that no arm reads.

A place is read if it lies in a part or setting that the arm is made of, or if a value that is read refers to it
(``${my.k}``). What an argument or a file sets elsewhere changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from memlab.experiment.config import choices
from memlab.experiment.config.choices import ARM, ARMS
from memlab.experiment.config.instantiate import choice_settings

Place = tuple[str, ...]

_REFERENCE = re.compile(r"\$\{([\w./-]+)")


def settings_of(node: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of all settings of a configuration of plain values, but for Hydra's."""
    for name, value in node.items() if isinstance(node, dict) else ():
        if name != "hydra" or place:
            yield (*place, str(name))
            yield from settings_of(value, (*place, str(name)))


def read_places(config: DictConfig, roots: Iterable[str]) -> set[Place]:
    """Return the places of all values at these dotted places, and of all that they refer to."""
    plain: Any = OmegaConf.to_container(config, resolve=False)
    read: set[Place] = set()
    queue = [tuple(root.split(".")) for root in roots]
    while queue:
        root = queue.pop()
        for place, value in _leaves(_at(plain, root), root):
            if place not in read:
                read.add(place)
                queue += _references(value) if isinstance(value, str) else []
    return read


def places_in_files(config: DictConfig) -> dict[Place, Path]:
    """Return place -> file of all values that the chosen experiment, system and arms set in files of others.

    Those that the file itself refers to are left out: another arm of the experiment may read them.
    """
    found: dict[Place, Path] = {}
    for slot, name in config.hydra.runtime.choices.items():
        choice = choices.more_choices().get(f"{slot}/{name}")
        if choice and slot.partition("/")[0] in ("exp", "system", ARM):
            own = _references(choice.path.read_text(encoding="utf-8", errors="replace"))
            found |= {place: choice.path for key, node in choice_settings(f"{slot}/{name}").items()
                      if key not in ("defaults", "hydra", ARMS) for place, _ in _leaves(node, (str(key),))
                      if not any(place[:len(one)] == one for one in own)}
    return found


def _leaves(node: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield (place, value) of the innermost values of a node; an empty mapping or list is one."""
    items = list(node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ())
    for name, value in items:
        yield from _leaves(value, (*place, str(name)))
    if not items:
        yield place, node


def _references(text: str) -> list[Place]:
    return [tuple(name.strip(".").split(".")) for name in _REFERENCE.findall(text)]


def _at(plain: Any, place: Place) -> Any:
    for name in place:
        plain = plain.get(name) if isinstance(plain, dict) else None
    return plain
