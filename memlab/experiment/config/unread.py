"""Settings without effect: the places of a configuration that files set and that no arm reads.

A place is read if it lies in a part or setting that the arm is made of, or if a value that is read refers to it
(``${my.k}``). What an argument or a file sets elsewhere changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from memlab.experiment.config import choices
from memlab.experiment.config.choices import ARM, ARMS, GLOBAL
from memlab.experiment.config.compose import ArmConfigs
from memlab.experiment.config.instantiate import choice_settings

Place = tuple[str, ...]

PLACES_OF_WORK = ("embedder.device", *(f"{chat}.{field}" for chat in ("chat", "judge_chat") for field in (
    "url", "key_env", "concurrency", "timeout", "patience", "retries")))
"""Settings that say where and on what models run: a line may state them whether its arms ask a model or not."""

_REFERENCE = re.compile(r"\$\{([\w./-]+)")


def unread(arguments: Sequence[str], configs: ArmConfigs, parts: Sequence[str], without: Sequence[str]) -> list[str]:
    """Return faults for arguments and files that set what nothing reads.

    ``parts`` are the places that an arm is made of; the command does not read those of ``without``.
    """
    arms = [arm.config for arm in configs.arms]
    given = {argument: tuple(re.split("[./]", one.key_or_group)) for argument, one in configs.overrides.items()}
    faults = [f"{argument}: this command does not read {argument.partition('=')[0].lstrip('+~')}, so that it changes "
              "nothing; leave it out"
              for argument, place in given.items() if within(".".join(place), without)]
    if given.keys() == {*arguments} and not without:  # of files: swept values, what an experiment or a system states
        swept = {key: tuple(re.split("[./]", key)) for key in configs.swept}
        given |= {key: place for key, place in swept.items() if place not in given.values()}
        given |= {f"{path}, {'.'.join(place)}": place for arm in arms for place, path in places_in_files(arm).items()}
    if any(arm.ablate is not None for arm in arms):  # the baseline of the parts may read what the system does not
        return faults
    read = {place for arm in arms for place in read_places(arm, [one for one in parts if not within(one, without)])}
    for argument, place in given.items():
        dotted = ".".join(place)
        if place[0] in (*GLOBAL, ARM, "hydra") or within(dotted, (*without, *PLACES_OF_WORK)) or any(
                one[:len(place)] == place[:len(one)] for one in read):
            continue
        near = get_close_matches(dotted, map(".".join, read), n=1, cutoff=0.85)
        faults.append(f"{argument}: no part that these arguments choose reads {dotted}, so that it changes nothing; "
                      + (f"did you mean {near[0]}?" if near else "leave it out, or choose a part that reads it"))
    return faults


def within(key: str, places: Iterable[str]) -> bool:
    """Return whether a key, ``rank/select`` or ``rank.select.k``, is one of these dotted places or lies in one.

    >>> within("rank/select", ["rank"]), within("ranks", ["rank"])
    (True, False)
    """
    dotted = key.replace("/", ".")
    return any(dotted == place or dotted.startswith(f"{place}.") for place in places)


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
