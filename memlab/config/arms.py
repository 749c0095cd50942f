"""The arms that an experiment declares in its file, registered with Hydra: the choice NAME of the group ``arm/EXP``.

    arms:
      ivf:  # Inverted lists, 32 of them searched.
        defaults: [{override /search/dense: ivf}]
        search: {dense: {index: {exact_below: 0}}}

An arm sets what a file ``arm/EXP/ivf.yaml`` with the package ``_global_`` would set.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore

from memlab.config.empty import EMPTY
from memlab.errors import did_you_mean
from memlab.runtime import plain_yaml

ARM = "arm"
"""The group of all arms; a user's folder may hold files below it."""

ARMS = "arms"
"""The key of the mapping in an experiment's file."""

Arms = Mapping[str, Mapping[str, Any]]
"""``arm/EXP/NAME`` -> what the arm sets."""

_NAME = re.compile(r"[\w-]+")


@cache
def own_arms(own: Path) -> dict[str, Mapping[str, Any]]:
    """Return the arms of memlab's experiments, ``arm/EXP/NAME`` -> settings; ``own`` is memlab's configuration."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((own / "exp").glob("*.yaml"))}
    return {f"{ARM}/{path.stem}/{name}": content for path, text in texts.items() if f"\n{ARMS}:" in text
            for name, content in plain_yaml.loads(text)[ARMS].items()}


def register(arms: Arms) -> None:
    """Make these arms, and no others, choices that Hydra knows."""
    store = ConfigStore.instance()
    store.repo.pop(ARM, None)
    for name, content in arms.items():
        group, _, arm = name.rpartition("/")
        store.store(group=group, name=arm, node=dict(content), package="_global_")


def faults(arms: Any, exp: str, files: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the mapping of arms of a user's experiment.

    Args:
        arms: The value of the key ``arms``.
        exp: The experiment's name.
        files: All files of configuration and arms that there are, as ``search/dense/flat``.
    """
    if not isinstance(arms, Mapping):
        yield f"{ARMS}: expected a mapping, NAME: settings"
        return
    for name, content in arms.items():
        where = f"{ARMS}.{name}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield f"{where}: expected a name of letters, digits, _ and -; quote one that is a number"
        elif f"{ARM}/{exp}/{name}" in files:
            yield f"{where}: there is such an arm already, the file {ARM}/{exp}/{name}.yaml; choose another name"
        elif not isinstance(content, Mapping):
            yield f"{where}: expected settings, key: value"
        else:
            yield from (f"{where}: {fault}" for fault in _of_defaults(content.get("defaults", []), files))


def _of_defaults(listed: Any, files: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with a list of defaults: Hydra would name a place where no file is."""
    if not isinstance(listed, list):
        yield "defaults: expected a list, [{override /SLOT: NAME}]"
        return
    choices = {*files, *(f"{slot}/none" for slot in EMPTY)}
    slots = {file.rpartition("/")[0] for file in choices}
    for key, choice in (item for entry in listed if isinstance(entry, Mapping) for item in entry.items()):
        if str(key).startswith("optional "):
            yield f"defaults: '{key}' would be passed over if there is no such file; leave 'optional' out"
        slot = str(key).removeprefix("override ")
        if not slot.startswith("/") or "@" in slot:
            continue
        slot = slot[1:]
        if slot not in slots:
            yield f"defaults: there is no slot '{slot}'; {did_you_mean(slot, slots)}"
        elif isinstance(choice, str) and "${" not in choice and f"{slot}/{choice}" not in choices:
            names = [name.rpartition("/")[2] for name in choices if name.rpartition("/")[0] == slot]
            yield f"defaults: there is no '{choice}' in {slot}; {did_you_mean(choice, names)}"
