"""Folders of configuration files beside memlab's own: those of plug-ins, and the one that ``conf_dir`` names.

They have the layout of ``conf``: ``FOLDER/search/lexical/trigram.yaml`` is the technique ``trigram`` of that slot. A
file may stand in every slot that memlab has and below ``arm``, under a name that memlab does not use there; a file of
``exp`` may declare arms.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from memlab.config import arms
from memlab.errors import did_you_mean
from memlab.runtime import plain_yaml

FileStamp = tuple[str, int, int]
"""Path, time of the last change in nanoseconds, and bytes."""

_folders: list[Path] = []
_files: dict[str, Path] = {}
_arms: dict[str, Mapping[str, Any]] = {}
_stamps: list[FileStamp] = []


def use(folders: Sequence[Path], own: Path) -> list[str]:
    """Replace the folders that are read beside ``own``, memlab's; return the faults of their files."""
    _files.clear()
    _arms.clear()
    faults = [fault for folder in folders for fault in _read(folder, own)]
    _folders[:] = [folder for folder in folders if any(path.is_relative_to(folder) for path in _files.values())]
    if _stamps != (stamps := list(_stamps_of((own, *_folders)))):
        _stamps[:] = stamps
        arms.own_arms.cache_clear()
        arms.register(all_arms(own))
    return faults


def _read(folder: Path, own: Path) -> Iterator[str]:
    """Take the files of one folder; yield what is wrong with them."""
    if not folder.is_dir():
        yield f"there is no folder {folder}"
        return
    paths = [path for top in sorted({arms.ARM, *(slot.split("/")[0] for slot in slots(own))})
             for path in sorted((folder / top).rglob("*.y*ml"))]
    if not paths:
        yield f"{folder} holds no file for a slot, such as {folder}/search/lexical/NAME.yaml"
    for path in paths:
        place = path.relative_to(folder)
        group, name = place.parent.as_posix(), place.with_suffix("").as_posix()
        if path.suffix != ".yaml":
            yield f"{path}: expected a name that ends in .yaml"
        elif group not in slots(own) and place.parts[0] != arms.ARM:
            yield f"{path}: there is no slot '{group}'; {did_you_mean(group, slots(own))}"
        elif (own / place).is_file() or name in _files:
            yield f"{path}: there is such a file already, {_files.get(name, own / place)}; choose another name"
        elif name in all_arms(own):
            yield f"{path}: there is such an arm already, in exp/{place.parent.name}.yaml; choose another name"
        elif fault := _unreadable(path):
            yield f"{path}: {fault}"
        else:
            _files[name] = path
    yield from _read_arms(folder, own)


def _read_arms(folder: Path, own: Path) -> Iterator[str]:
    """Take the arms that the experiments of one folder declare; yield what is wrong with them."""
    for name, path in list(_files.items()):
        if not path.is_relative_to(folder) or arms.ARMS not in (content := plain_yaml.read(path) or {}):
            continue
        slot, _, exp = name.rpartition("/")
        faults = list(arms.faults(content[arms.ARMS], exp, {*_own_files(own), *_files, *all_arms(own)})
                      if slot == "exp" else [f"{arms.ARMS}: only the file of an experiment declares arms"])
        yield from (f"{path}: {fault}" for fault in faults)
        if not faults:  # numbers are read as in every other file
            declared: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
            _arms.update({f"{arms.ARM}/{exp}/{arm}": settings for arm, settings in declared[arms.ARMS].items()})


@cache
def _own_files(own: Path) -> frozenset[str]:
    """Return memlab's files of all slots, as ``search/dense/flat``."""
    return frozenset(path.relative_to(own).with_suffix("").as_posix() for path in own.rglob("*.yaml"))


def _unreadable(path: Path) -> str:
    """Return why a file cannot be used; empty if it can."""
    try:
        content = plain_yaml.read(path)
        if not isinstance(content, dict | None):
            return "expected key: value lines"
        OmegaConf.load(path)
        listed = (content or {}).get("defaults")
        for entry in listed if isinstance(listed, list) else ():
            if any(str(key).startswith("optional ") for key in entry if isinstance(entry, dict)):
                return f"{entry} in defaults would be passed over if there is no such file; leave 'optional' out"
    except (OSError, YAMLError, ValueError, TypeError, RecursionError, OmegaConfBaseException) as error:
        return f"cannot be read as YAML ({' '.join(str(error).split())[:300]})"
    return ""


@cache
def slots(own: Path) -> frozenset[str]:
    """Return the slots of memlab: every folder of its configuration that holds files, as ``rank/select``."""
    return frozenset({name.rpartition("/")[0] for name in _own_files(own)} - {""})


def all_arms(own: Path) -> dict[str, Mapping[str, Any]]:
    """Return the arms that experiments declare, memlab's and others: ``arm/ann/flat`` -> settings."""
    return {**arms.own_arms(own), **_arms}


def more_slots() -> frozenset[str]:
    """Return the slots of the files beside memlab's own."""
    return frozenset(name.rpartition("/")[0] for name in _files)


def more_files() -> dict[str, Path]:
    """Return the files beside memlab's own: ``search/lexical/trigram`` -> path."""
    return dict(_files)


def search_path() -> list[str]:
    """Return the override that makes Hydra read the folders; [] if there is none."""
    quoted = (str(folder).replace("\\", "\\\\").replace('"', '\\"') for folder in _folders)
    return ["hydra.searchpath=[" + ",".join(f'"file://{name}"' for name in quoted) + "]"] if _folders else []


def stamps() -> tuple[FileStamp, ...]:
    """Return path, time and size of all files that are read, as they were when the folders were named."""
    return tuple(_stamps)


def _stamps_of(folders: Sequence[Path]) -> Iterator[FileStamp]:
    for path in (path for folder in folders for path in sorted(folder.rglob("*.yaml"))):
        if (status := _status(path)) is not None:
            yield str(path), status.st_mtime_ns, status.st_size


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file, None for one that is gone."""
    try:
        return path.stat()
    except OSError:
        return None
