"""A pass over the command line before Hydra reads it: every bad override at once, with the nearest right one.

Hydra stops at the first bad override and suggests nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from memlab.config.instantiate import CONF, options
from memlab.errors import did_you_mean

Fault = tuple[str, str]
"""An override, and what is wrong with it."""

HELP = ("-h", "--help")
"""Flags that ask for help."""


@lru_cache
def groups() -> frozenset[str]:
    """Name the slots: every configuration folder that holds files, as ``rank/select``."""
    return frozenset({p.parent.relative_to(CONF).as_posix() for p in CONF.rglob("*.yaml")} - {"."})


def faults(words: Iterable[str]) -> list[Fault]:
    """Say what is wrong with each override, as far as it can be told without composing.

    >>> faults(["rank/select=fixd"])[0][1].startswith("there is no 'fixd' here; did you mean 'fixed'?")
    True
    """
    found: list[Fault] = []
    slots = groups()
    for word in words:
        override = parsed(word)
        if word.startswith("-"):
            found.append((word, f"there is no such flag; {did_you_mean(word, ('--multirun', '-m', '--help'))}"))
            continue
        if override is None:
            found.append((word, "cannot be read as key=value; quote values that hold spaces, commas, brackets "
                                "or '=', e.g. 'data.path=\"my file.json\"'"))
            continue
        key = override.key_or_group
        if key == "exp" and not override.is_add() and not override.is_delete():
            found.append((word, f"an experiment is added to the defaults; write +{word}"))
        elif override.is_hydra_override() and override.is_sweep_override():
            found.append((word, "settings of Hydra and of the launcher cannot be swept"))
        elif key in slots:
            found.extend((word, fault) for fault in _unknown_files(key, override))
        elif "." not in key and not override.is_delete() and (below := [s for s in slots if s.startswith(f"{key}/")]):
            found.append((word, f"'{key}' holds several slots; name one: {', '.join(sorted(below))}"))
        elif "/" in key:
            found.append((word, f"there is no slot '{key}'; {did_you_mean(key, slots)}"))
        elif not key.startswith("hydra") and key.split(".")[0] not in _top():
            known = slots | _top()
            found.append((word, f"there is no setting '{key}'; {did_you_mean(key.split('.')[0], known)}"))
    return found


def misspelt(words: Iterable[str], config: Mapping[str, Any]) -> list[Fault]:
    """Name the overrides of settings that a composed configuration (plain values) does not have.

    >>> misspelt(["rank.select.kk=3"], {"rank": {"select": {"k": 10}}})
    [('rank.select.kk=3', "rank.select has no setting 'kk'; did you mean 'k'? (known: k)")]
    """
    found: list[Fault] = []
    slots = groups()
    for word in words:
        override = parsed(word)
        if override is None or override.is_add() or override.key_or_group in slots | {"exp"}:
            continue
        node: Any = config
        parts = override.key_or_group.split(".")
        if parts[:2] == ["hydra", "launcher"] and len(parts) > 2:
            found.extend((word, fault) for fault in _launcher_lacks(parts[2], config))
            continue
        for i, part in enumerate(parts):
            if part.startswith("hydra") or not isinstance(node, Mapping):
                break
            if part not in node:
                known = [str(k) for k in node if k != "_target_"]
                owner = f"{'.'.join(parts[:i])} has" if i else "there is"
                found.append((word, f"{owner} no setting '{part}'; {did_you_mean(part, known)}"))
                break
            node = node[part]
    return found


def _launcher_lacks(name: str, config: Mapping[str, Any]) -> list[str]:
    """Say that the chosen launcher has no such setting, or that none was chosen."""
    node = config.get("hydra", {}).get("launcher", {})
    if name in node:
        return []
    if not str(node.get("_target_", "")).startswith("memlab."):
        return ["no launcher is chosen that has settings; add hydra/launcher=slurm"]
    return [f"hydra.launcher has no setting '{name}'; {did_you_mean(name, [str(k) for k in node if k != '_target_'])}"]


def valid_overrides(words: Sequence[str], bad: Iterable[str]) -> list[str]:
    """Return the overrides that can be judged without the bad ones: neither bad nor a setting of a bad slot."""
    dropped = set(bad)
    slots = [word.lstrip("+~").partition("=")[0].replace("/", ".") + "." for word in dropped]
    return [w for w in words if w not in dropped and not w.lstrip("+~").startswith(tuple(slots))]


def parse_all(words: Iterable[str]) -> list[tuple[str, Override]]:
    """Parse overrides; raises HydraException for the first that cannot be read."""
    return [(word, _parse(word)) for word in words]


def parsed(word: str) -> Override | None:
    """Parse an override; None where it cannot be read."""
    try:
        return _parse(word)
    except HydraException:
        return None


@lru_cache(maxsize=1024)
def _parse(word: str) -> Override:
    return OverridesParser.create().parse_override(word)


def _unknown_files(slot: str, override: Override) -> list[str]:
    files = options(slot)
    given = (override.input_line or "").partition("=")[2]  # empty for a deletion, ~slot
    values = [v.strip() for v in given.strip("[]").split(",")]
    return [f"there is no '{v}' here; {did_you_mean(v, files)}"
            for v in values if v and v != "null" and v not in files]


def _top() -> set[str]:
    """Name the top-level keys of the configuration."""
    own = {"name", "contrasts", "seed", "out", "store", "plan", "shards", "swept", "exp", "arm", "system", "ablate"}
    return own | {slot.split("/")[0] for slot in groups()}
