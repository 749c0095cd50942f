"""Class defaults as plain configuration: they complete files, which state only what differs from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import MISSING
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from memlab.config import plugins


def with_defaults(node: Any) -> Any:
    """Return a plain configuration node in which each part with a ``_target_`` has all settings of its class.

    The settings are in the order of the class's fields. A setting that the class does not have, and a part whose class
    cannot be found, stay as they are: constructing them raises the fault.

    >>> with_defaults({"_target_": "memlab.rank.select.Fixed"})
    {'_target_': 'memlab.rank.select.Fixed', 'k': 10}
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
    value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if isinstance(value, FieldInfo):  # pydantic keeps the default there
        value = value.get_default(call_default_factory=True)
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
