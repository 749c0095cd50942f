"""Objects from configuration; all faults are reported at once.

``_target_`` may name only classes of memlab and of the plug-ins that the command line names. For an unknown key the
nearest setting of the class is suggested.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from memlab.config import folders, plugins
from memlab.config.defaults import find_class, with_defaults
from memlab.config.empty import EMPTY
from memlab.errors import MemlabError, did_you_mean
from memlab.runtime.home import shipped
from memlab.runtime.paths import refusal_message
from memlab.text.display import sanitise

CONF = shipped("conf")
"""The configuration folder: beside the package in a clone, inside it when memlab was installed from a wheel."""


def construct(node: Any, where: str, faults: list[str]) -> Any:
    """Construct the object that a configuration node describes; return None, with faults appended, if that fails."""
    if isinstance(node, list):
        return [construct(item, f"{where}[{i}]", faults) for i, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    fields = {k: construct(v, f"{where}.{k}", faults) for k, v in node.items() if k != "_target_"}
    if "_target_" not in node:
        return fields
    before = len(faults)
    cls = find_class(str(node["_target_"]), where, faults)
    if cls is None:
        return None
    settings = [f.name for f in dataclasses.fields(cls) if f.init]
    for name, value in fields.items():
        if name not in settings:
            faults.append(f"{where}.{name}: {cls.__name__} has no such setting; {did_you_mean(name, settings)}")
        elif isinstance(node[name], str) and node[name] == MISSING:
            faults.append(f"{where}.{name}: a value is required, e.g. {where}.{name}=...")
        elif _contains_failure(node[name], value):
            return None
    if len(faults) > before:
        return None
    try:
        return cls(**fields)
    except ValidationError as error:
        for fault in error.errors():
            place = ".".join([where, *map(str, fault["loc"])])
            value_shown = "" if fault["type"] == "missing" else f" (given: {sanitise(repr(fault['input']), 80)})"
            faults.append(f"{place}: {fault['msg'].removeprefix('Value error, ')}{value_shown}")
    except MemlabError as error:
        faults.append(f"{where}: {error}")
    except OSError as error:
        faults.append(f"{where}: {refusal_message(error)}")
    except Exception as error:
        if plugins.owner(str(node["_target_"])) == plugins.OWN:
            raise
        faults.append(f"{where}: {cls.__name__} cannot be made ({plugins.one_line(error)})")
    return None


def _contains_failure(node: Any, value: Any) -> bool:
    """Return whether an object in this node could not be constructed; its own fault is already reported."""
    if isinstance(node, list):
        return any(map(_contains_failure, node, value))
    return value is None and isinstance(node, dict)


def part(config: DictConfig, where: str, faults: list[str]) -> Any:
    """Construct the object configured at a dotted place; return None, with a fault appended, if that fails."""
    try:
        node = OmegaConf.select(config, where)
        plain = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    except OmegaConfBaseException as error:
        faults.append(f"{where}: {str(error).splitlines()[0]}")
        return None
    if not isinstance(plain, dict) or "_target_" not in plain:
        faults.append(f"{where}: nothing is chosen here; choose one of: {', '.join(options(where))}")
        return None
    before = len(faults)
    instance = construct(plain, where, faults)
    for place, source in _references(OmegaConf.to_container(node), where):  # name the place that can be fixed
        faults[before:] = [fault.replace(f"{place}.", f"{source}.") for fault in faults[before:]]
    return instance


def _references(node: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield (place, source) of every part that refers to another: ``chat: ${judge_chat}``."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        place = f"{where}[{key}]" if isinstance(node, list) else f"{where}.{key}"
        if isinstance(value, str) and (match := re.fullmatch(r"\$\{([\w.]+)\}", value)):
            yield place, match[1]
        yield from _references(value, place)


def file_names(group: str) -> list[str]:
    """List the files of a configuration folder, those of plug-ins and of ``conf_dir`` as well, or an experiment's arms.

    >>> "locomo" in file_names("data")
    True
    """
    own = (path.stem for path in (CONF / group).glob("*.yaml"))
    more = (name.rpartition("/") for name in (*folders.more_files(), *folders.all_arms(CONF)))
    return sorted([*own, *(name for place, _, name in more if place == group)])


def options(slot: str) -> list[str]:
    """List the techniques of a slot, ``rank.select`` or ``rank/select``: its files, and ``none`` if it may be empty.

    >>> "fixed" in options("rank.select"), "none" in options("rank/select"), "none" in options("rank/rerank")
    (True, False, True)
    """
    group = slot.replace(".", "/")
    return sorted([*file_names(group), *(["none"] if group in EMPTY else [])])


def make_dataset(name: str, **fields: Any) -> Any:
    """Construct a data set from its file in ``conf/data`` with some fields replaced.

    Raises:
        MemlabError: There is no data set of that name, or it has no such field.
    """
    if name not in file_names("data"):
        raise MemlabError(f"there is no dataset '{name}'", fix=did_you_mean(name, file_names("data")))
    file = folders.more_files().get(f"data/{name}", CONF / "data" / f"{name}.yaml")
    settings = with_defaults(OmegaConf.to_container(OmegaConf.load(file)))
    unknown = [field for field in fields if field not in settings]
    if unknown:
        raise MemlabError(f"dataset '{name}' has no option '{unknown[0]}'",
                          fix=did_you_mean(unknown[0], [key for key in settings if key != "_target_"]))
    faults: list[str] = []
    cls = find_class(str(settings.pop("_target_")), f"conf/data/{name}.yaml", faults)
    if cls is None:
        raise MemlabError(faults[0])
    return cls(**{**settings, **fields})
