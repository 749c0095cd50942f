"""Objects from composed configurations: defaults of constructors, interpolations, and the faults of both.

Values may refer to others, ``${seed}`` or ``${oc.env:NAME}``. Those that cannot be resolved are faults; those from the
environment are remembered as secrets.

All faults are reported at once. ``_target_`` may name only classes of memlab and of the plug-ins that the command line
names. For an unknown key the nearest setting of the class is suggested. Files state only what differs from the
defaults of a class.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from omegaconf.resolvers import oc
from pydantic import ValidationError
from pydantic_core import PydanticUndefined

from memlab.experiment.config import choices, plugins
from memlab.pipeline.stage import default_of
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.paths import refusal_message, shipped_path
from memlab.support.redaction import remember
from memlab.support.text.display import safe_line


def _env(key: str, *default: str | None) -> str | None:
    """Return what ``oc.env`` does, and remember it as a secret."""
    remember([os.environ[key]] if key in os.environ else [])
    return oc.env(key, *default)


OmegaConf.register_new_resolver("oc.env", _env, replace=True)


def resolve_plain(config: DictConfig, left_out: Container[str]) -> dict[str, Any]:
    """Return the plain values of a configuration without some keys, to which the others may still refer.

    >>> resolve_plain(OmegaConf.create({"out": "runs", "name": "in ${out}"}), ["out"])
    {'name': 'in runs'}
    """
    return {str(key): _as_text(config.get(key)) for key in config if key not in left_out}


def resolution_faults(config: DictConfig) -> list[str]:
    """Return ``place: why`` for each part with a value that cannot be resolved, but for Hydra's own settings.

    >>> resolution_faults(OmegaConf.create({"seed": "${nope}", "rank": {"k": "${seed}", "n": "${oc.decode:3}"}}))[0]
    "seed: cannot be resolved (Interpolation key 'nope' not found)"
    """
    faults = []
    for key in config:
        try:
            if key != "hydra":
                _as_text(config.get(key))
        except (OmegaConfBaseException, RecursionError) as error:
            place = getattr(error, "full_key", None) or str(key)
            why = str(error).splitlines()[0] if not isinstance(error, RecursionError) else "it contains itself"
            faults.append(f"{place}: cannot be resolved ({why})")
    return faults


def _as_text(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


CONF = shipped_path("conf")
"""The configuration folder: beside the package in a clone, inside it when memlab was installed from a wheel."""

with suppress(MemlabError):  # whoever composes tells it
    choices.use([], CONF)


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
            faults.append(f"{place}: {_words_of(fault)}")
    except MemlabError as error:
        faults.append(f"{where}: {error}")
    except OSError as error:
        faults.append(f"{where}: {refusal_message(error)}")
    except Exception as error:
        if plugins.owner(str(node["_target_"])) == plugins.OWN:
            raise
        faults.append(f"{where}: {cls.__name__} cannot be made ({plugins.one_line(error)})")
    return None


def _words_of(fault: Any) -> str:
    """Return a fault of pydantic in words, with what was given."""
    given, kind = fault["input"], fault["type"]
    if kind == "is_instance_of" and dataclasses.is_dataclass(given):
        about = (type(given).__doc__ or "").partition("\n")[0].rstrip(".")
        return (f"{type(given).__name__} cannot serve as {fault['ctx']['class']} ({about}). Fix: another choice here, "
                "or none for the stage that needs it")
    value_shown = "" if kind == "missing" else f" (given: {safe_line(repr(given), 80)})"
    return f"{fault['msg'].removeprefix('Value error, ')}{value_shown}"


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


def with_defaults(node: Any) -> Any:
    """Return a plain configuration node in which each part with a ``_target_`` has all settings of its class.

    The settings are in the order of the class's fields. A setting that the class does not have, and a part whose class
    cannot be found, stay as they are: constructing them raises the fault.

    >>> with_defaults({"_target_": "memlab.stages.rank.select.Fixed"})
    {'_target_': 'memlab.stages.rank.select.Fixed', 'k': 10}
    """
    if isinstance(node, list):
        return [with_defaults(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    cls = find_class(str(node["_target_"]), "", []) if "_target_" in node else None
    if cls is None:
        return {key: with_defaults(value) for key, value in node.items()}
    defaults = class_defaults(cls)
    stated = {key: _complete(defaults[key], value) if key in defaults else value for key, value in node.items()}
    head = {"_target_": stated.pop("_target_")}
    return {**head, **{key: with_defaults(value) for key, value in {**defaults, **stated}.items()}}


@cache
def class_defaults(cls: type) -> dict[str, Any]:
    """Return the settings of a class with their defaults as plain values; objects become nodes with a ``_target_``."""
    return {field.name: _plain(_default(field)) for field in dataclasses.fields(cls) if field.init}


def _default(field: dataclasses.Field[Any]) -> Any:
    value = default_of(field)
    return MISSING if value is dataclasses.MISSING or value is PydanticUndefined else value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        cls = type(value)
        return {"_target_": f"{cls.__module__}.{cls.__qualname__}",
                **{f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _complete(default: Any, stated: Any) -> Any:
    """Complete a part that is stated without its class: it gets the class and the settings of the default."""
    if isinstance(default, dict) and isinstance(stated, Mapping) and "_target_" in default and "_target_" not in stated:
        return {**default, **{key: _complete(default.get(key), value) for key, value in stated.items()}}
    return stated


def find_class(target: str, where: str, faults: list[str]) -> Any:
    """Return the class of memlab or of a named plug-in that a ``_target_`` names; append a fault if there is none."""
    owner = plugins.owner(target)
    if owner is None:
        faults.append(f"{where}._target_: {plugins.refusal(target)}")
        return None
    try:
        cls = plugins.load_class(target)
    except (ImportError, AttributeError) as error:
        faults.append(f"{where}._target_: '{target}' cannot be found ({error})")
        return None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls) and cls.__module__.partition(".")[0] == owner):
        faults.append(f"{where}._target_: '{target}' is not a class of {owner} that is made from configuration")
        return None
    if owner != plugins.OWN:
        try:
            class_defaults(cls)
        except Exception as error:
            faults.append(f"{where}._target_: the defaults of '{target}' cannot be made ({plugins.one_line(error)})")
            return None
    return cls


def options(slot: str) -> list[str]:
    """List the techniques of a slot, ``rank.select`` or ``rank/select``: memlab's, and those of further folders.

    >>> "fixed" in options("rank.select"), "none" in options("rank/select"), "none" in options("rank/rerank")
    (True, False, True)
    """
    return choices.names_in(slot.replace(".", "/"), choices.all_choices(CONF))


def choice_settings(choice: str) -> Any:
    """Return what a choice states, as plain values.

    >>> choice_settings("rank/select/fixed_5")
    {'defaults': ['fixed', '_self_'], 'k': 5}
    """
    return choices.read_choice(choice, CONF)


def make_dataset(name: str, **fields: Any) -> Any:
    """Construct a data set from its file in ``conf/data`` with some fields replaced.

    Raises:
        MemlabError: There is no data set of that name, or it has no such field.
    """
    if name not in options("data"):
        raise MemlabError(f"there is no dataset '{name}'", fix=did_you_mean(name, options("data")))
    settings = with_defaults(choice_settings(f"data/{name}"))
    unknown = [field for field in fields if field not in settings]
    if unknown:
        raise MemlabError(f"dataset '{name}' has no option '{unknown[0]}'",
                          fix=did_you_mean(unknown[0], [key for key in settings if key != "_target_"]))
    faults: list[str] = []
    cls = find_class(str(settings.pop("_target_")), f"conf/data/{name}.yaml", faults)
    if cls is None:
        raise MemlabError(faults[0])
    return cls(**{**settings, **fields})
