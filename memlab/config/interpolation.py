"""Values that refer to others, ``${seed}`` or ``${oc.env:NAME}``.

Those that cannot be resolved are faults; those from the environment are remembered as secrets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from omegaconf.resolvers import oc

from memlab.runtime.redaction import remember


def remember_environment() -> None:
    """Replace the resolver ``oc.env`` by one that returns the same values and remembers them."""
    OmegaConf.register_new_resolver("oc.env", _env, replace=True)


def _env(key: str, *default: str | None) -> str | None:
    remember([os.environ[key]] if key in os.environ else [])
    return oc.env(key, *default)


def resolved(config: DictConfig, left_out: Container[str]) -> dict[str, Any]:
    """Return the plain values of a configuration without some keys, to which the others may still refer.

    >>> resolved(OmegaConf.create({"out": "runs", "name": "in ${out}"}), ["out"])
    {'name': 'in runs'}
    """
    return {str(key): _plain(config.get(key)) for key in config if key not in left_out}


def unresolved(config: DictConfig) -> list[str]:
    """Return ``place: why`` for every value that cannot be resolved, but for Hydra's own settings.

    >>> unresolved(OmegaConf.create({"seed": "${nope}", "rank": {"k": "${seed}", "n": "${oc.decode:3}"}}))[0]
    "seed: '${nope}' cannot be resolved (Interpolation key 'nope' not found)"
    """
    return [fault for key in config if key != "hydra" for fault in _faults(config, key, str(key))]


def unresolvable(config: DictConfig, place: str) -> str:
    """Return why the value at a dotted place, or one within it, cannot be resolved; empty if all can.

    >>> unresolvable(OmegaConf.create({"a": "${b}", "b": "${a}"}), "a")
    'Recursive interpolation detected'
    """
    return _why(lambda: OmegaConf.select(config, place))


def _faults(holder: DictConfig | ListConfig, key: Any, place: str) -> list[str]:
    """Return the faults of the innermost values at a place; what it refers to has a place of its own."""
    why = _why(lambda: holder.get(key))
    if not why:
        return []
    node = None if OmegaConf.is_interpolation(holder, key) else holder.get(key)
    if isinstance(node, DictConfig):
        return [fault for name in node for fault in _faults(node, name, f"{place}.{name!s}")]
    if isinstance(node, ListConfig):
        return [fault for i in range(len(node)) for fault in _faults(node, i, f"{place}[{i}]")]
    written: Any = OmegaConf.to_container(holder, resolve=False)
    return [f"{place}: {written[key]!r:.200} cannot be resolved ({why})"]


def _why(read: Callable[[], Any]) -> str:
    try:
        _plain(read())
    except OmegaConfBaseException as error:
        return str(error).splitlines()[0]
    except RecursionError:
        return "it contains itself"
    return ""


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
