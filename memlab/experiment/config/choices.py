"""The choices of every slot: memlab's own, and those in the folders of plug-ins and of ``conf_dir``.

A choice is a file, ``SLOT/NAME.yaml``, or an entry of a mapping; Hydra takes entries from its ConfigStore:

* ``techniques.yaml`` holds techniques with few settings, SLOT: NAME: settings.
* ``arms`` in the file of an experiment holds its arms, which are the choices of ``arm/EXP``. An arm sets what a file
  with the package ``_global_`` would set:

      arms:
        ivf:  # Inverted lists, 32 of them searched.
          defaults: [{override /search/dense: ivf}]
          search: {dense: {index: {exact_below: 0}}}

* ``none`` is a choice of each slot that may be empty.

A folder beside memlab's has the same layout: ``FOLDER/search/lexical/trigram.yaml`` is the technique ``trigram`` of
that slot. Its choices are of slots that memlab has and of ``arm``, under names that memlab does not use there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from memlab.pipeline.slots import SLOTS
from memlab.pipeline.stage import EmptyStage
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.files import open_plain
from memlab.support.foreign import load_yaml, read_yaml

ARM = "arm"
"""The group of all arms; a user's folder may hold files below it."""

ARMS = "arms"
"""The key of the mapping in an experiment's file."""

TECHNIQUES = "techniques"
"""Name of the file of all techniques with few settings."""

GLOBAL = frozenset({"exp", "profile", "system"})
"""Slots whose files set places outside them."""

EMPTY = {slot.config.replace(".", "/"): slot.empty for slot in SLOTS if slot.optional}
"""Configuration group -> tables that its empty stage writes."""

FileStamp = tuple[str, str]
"""Path, and the digest of the content."""


@dataclass(frozen=True)
class Choice:
    """One choice: the file that states it, and its settings if it is an entry there."""

    path: Path
    settings: Mapping[str, Any] | None = None


Choices = dict[str, Choice]
"""Choices by their slot and name, ``rank/select/gap``."""


@dataclass(frozen=True)
class Beside:
    """What is read beside memlab's files: folders, their choices, and the stamps of all files, memlab's too."""

    folders: tuple[Path, ...] = ()
    choices: Mapping[str, Choice] = field(default_factory=dict)
    stamps: tuple[FileStamp, ...] = ()


_beside = Beside()
"""Of the last command line."""


@cache
def own_choices(own: Path) -> Choices:
    """Return all choices of a configuration like memlab's, in a folder; raise MemlabError if one cannot be read."""
    none = f"{EmptyStage.__module__}.{EmptyStage.__name__}"
    choices = {path.relative_to(own).with_suffix("").as_posix(): Choice(path) for path in sorted(own.rglob("*.yaml"))}
    for slot, tables in EMPTY.items():  # no empty list: an arm that puts a stage in its place inherits no setting
        settings = {"_target_": none, **({"writes": list(tables)} if tables else {})}
        choices[f"{slot}/none"] = Choice(own / "config.yaml", settings)
    for name, choice in [*choices.items()]:
        if name == TECHNIQUES or name.startswith("exp/"):
            text = choice.path.read_text(encoding="utf-8")
            try:
                content = load_yaml(text) if name == TECHNIQUES or f"\n{ARMS}:" in text else {}
                choices |= {f"{group}/{entry}": Choice(choice.path, {**settings})
                            for group, table in _tables(name, content).items() for entry, settings in table.items()}
            except (YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
                raise MemlabError(f"cannot be read as NAME: settings ({' '.join(str(error).split())[:300]})",
                                  where=str(choice.path), fix="compare it with the entries around it") from error
    return choices


def _tables(file: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return group -> name -> settings of the entries of a file."""
    if file == TECHNIQUES:
        return {str(slot): table for slot, table in content.items()}
    return {f"{ARM}/{file.removeprefix('exp/')}": content[ARMS]} if ARMS in content else {}


def use(folders: Sequence[Path], own: Path) -> list[str]:
    """Replace the folders that are read beside ``own``, memlab's; return the faults of their files."""
    global _beside
    more: Choices = {}
    faults = [fault for folder in folders for fault in _read(folder, own, more)]
    used = tuple(folder for folder in folders if any(one.path.is_relative_to(folder) for one in more.values()))
    _beside = Beside(used, more, _beside.stamps)
    slots.cache_clear()
    if _beside.stamps != (stamps := tuple(_stamps_of((own, *used)))):
        own_choices.cache_clear()
        _beside = Beside(used, more, stamps)
    return faults


@lru_cache(maxsize=1)
def register(own: Path, stamps: tuple[FileStamp, ...]) -> None:  # noqa: ARG001  (the second is the key)
    """Make the entries among all choices, whose files have these stamps, and no others, choices that Hydra knows."""
    choices = all_choices(own)
    store = ConfigStore.instance()
    for top in {ARM, *(group.partition("/")[0] for group in groups_of(choices))} - {"hydra"}:
        store.repo.pop(top, None)
    for name, choice in choices.items():
        if choice.settings is not None:
            group, _, entry = name.rpartition("/")
            store.store(group=group, name=entry, node=choice.settings,
                        package="_global_" if group.startswith(f"{ARM}/") else None)


def _read(folder: Path, own: Path, more: Choices) -> Iterator[str]:
    """Add the choices of one folder to ``more``; yield what is wrong with them."""
    if not folder.is_dir():
        yield f"there is no folder {folder}"
        return
    groups = groups_of(own_choices(own))
    paths = [path for top in sorted({ARM, *(group.split("/")[0] for group in groups)})
             for path in sorted((folder / top).rglob("*.y*ml"))] + sorted(folder.glob(f"{TECHNIQUES}.y*ml"))
    if not paths:
        yield f"{folder} holds no file for a slot, such as {folder}/search/lexical/NAME.yaml"
    for path in paths:
        name = path.relative_to(folder).with_suffix("").as_posix()
        try:
            content = _content(path)
            entries = dict(_entries(path, _tables(name, content)))
        except ValueError as error:
            yield f"{path}: {error}"
            continue
        added = {**entries, **({} if name == TECHNIQUES else {name: Choice(path)})}
        known = {**own_choices(own), **more}
        unknown = [group for group in map(_group, added) if group not in groups and group.partition("/")[0] != ARM]
        if ARMS in content and not name.startswith("exp/"):
            yield f"{path}: {ARMS}: only the file of an experiment declares arms"
        elif unknown:
            yield f"{path}: there is no slot '{unknown[0]}'; {did_you_mean(unknown[0], groups)}"
        elif taken := sorted(added.keys() & known):
            yield f"{path}: there is such a choice already, in {known[taken[0]].path}; choose another name"
        else:
            more |= added if name != TECHNIQUES else {f"{name}-{len(more)}": Choice(path), **added}


def _entries(path: Path, tables: Mapping[str, Any]) -> Iterator[tuple[str, Choice]]:
    """Yield name -> choice of the entries of a user's file; raise ValueError for one of another form."""
    for group, table in tables.items():
        if group in GLOBAL:
            raise ValueError(f"{group} has a file for each choice, {group}/NAME.yaml")
        if not isinstance(table, Mapping):
            raise ValueError(f"{group}: expected a mapping, NAME: settings")
        for entry, settings in table.items():
            if not isinstance(settings, Mapping):
                raise ValueError(f"{group}.{entry}: expected settings, key: value")
            yield f"{group}/{entry}", Choice(path, settings)


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a user's file, as plain values; raise ValueError if it cannot be used."""
    if path.suffix != ".yaml":
        raise ValueError("expected a name that ends in .yaml")
    try:
        is_mapping = isinstance(read_yaml(path), dict | None)
        plain: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False) if is_mapping else {}  # own numbers
    except (OSError, YAMLError, ValueError, TypeError, RecursionError, OmegaConfBaseException) as error:
        raise ValueError(f"cannot be read as YAML ({' '.join(str(error).split())[:300]})") from error
    if not is_mapping:
        raise ValueError("expected key: value lines")
    return {str(key): value for key, value in plain.items()}


def holds(folder: Path, slot: str, name: str) -> bool:
    """Return whether a folder has a choice, as a file or as an entry of its table; it need not be a valid one."""
    try:
        table = read_yaml(folder / f"{TECHNIQUES}.yaml")
        techniques = table.get(slot, {})
    except (OSError, YAMLError, ValueError, RecursionError, AttributeError):  # no table
        techniques = {}
    return (folder / slot / f"{name}.yaml").is_file() or (isinstance(techniques, dict) and name in techniques)


def all_choices(own: Path) -> Choices:
    """Return the choices of memlab and of the folders beside it."""
    return {**own_choices(own), **_beside.choices}


def more_choices() -> Choices:
    """Return the choices of the folders beside memlab's, and each table of techniques as a whole."""
    return dict(_beside.choices)


@cache
def slots(own: Path) -> frozenset[str]:
    """Return all slots that have a choice, as ``rank/select``, and ``arm/EXP``."""
    return groups_of(all_choices(own))


def groups_of(choices: Iterable[str]) -> frozenset[str]:
    """Return the slots of these choices, as ``rank/select``."""
    return frozenset(map(_group, choices)) - {""}


def _group(choice: str) -> str:
    return choice.rpartition("/")[0]


def names_in(group: str, choices: Iterable[str]) -> list[str]:
    """Return the names of the choices of one slot."""
    return sorted(name.rpartition("/")[2] for name in choices if _group(name) == group)


def read_choice(name: str, own: Path) -> Any:
    """Return what a choice states, ``data/locomo``, as plain values; raise KeyError if there is no such choice."""
    choice = all_choices(own)[name]
    if choice.settings is not None:
        return dict(choice.settings)
    return OmegaConf.to_container(OmegaConf.load(choice.path), resolve=False)


def search_path() -> list[str]:
    """Return the override that makes Hydra read the folders; [] if there is none."""
    quoted = (str(folder).replace("\\", "\\\\").replace('"', '\\"') for folder in _beside.folders)
    return ["hydra.searchpath=[" + ",".join(f'"file://{name}"' for name in quoted) + "]"] if _beside.folders else []


def stamps() -> tuple[FileStamp, ...]:
    """Return the stamps of all files that are read, as they were when the folders were named."""
    return _beside.stamps


def _stamps_of(folders: Sequence[Path]) -> Iterator[FileStamp]:
    for path in (path for folder in folders for path in sorted(folder.rglob("*.yaml"))):
        with suppress(OSError), open_plain(path) as file:  # it is gone, or a pipe
            yield str(path), hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
