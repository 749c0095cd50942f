"""A pass over the command line before Hydra reads it: every bad override at once, with the nearest right one.

Hydra stops at the first bad override and suggests nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from memlab.config import CONF
from memlab.errors import did_you_mean


def groups() -> set[str]:
    """Name the slots: every configuration folder that holds files, as ``rank/select``."""
    return {p.parent.relative_to(CONF).as_posix() for p in CONF.rglob("*.yaml")} - {"."}


def faults(words: Iterable[str]) -> list[str]:
    """Say what is wrong with each override, as far as it can be told without composing.

    >>> faults(["rank/select=fixd"])[0].startswith("rank/select=fixd: there is no 'fixd' here; did you mean 'fixed'?")
    True
    """
    found: list[str] = []
    slots = groups()
    for word in words:
        try:
            override = OverridesParser.create().parse_override(word)
        except HydraException:
            found.append(f"{word}: cannot be read as key=value; quote values that hold spaces, commas, brackets "
                         "or '=', e.g. 'data.path=\"my file.json\"'")
            continue
        key = override.key_or_group
        if key == "exp" and not override.is_add() and not override.is_delete():
            found.append(f"{word}: an experiment is added to the defaults; write +{word}")
        elif key in slots:
            found.extend(_unknown_files(word, key, override))
        elif "/" in key:
            found.append(f"{word}: there is no slot '{key}'; {did_you_mean(key, slots)}")
        elif not key.startswith("hydra") and key.split(".")[0] not in _top():
            known = slots | _top()
            found.append(f"{word}: there is no setting '{key}'; {did_you_mean(key.split('.')[0], known)}")
    return found


def _unknown_files(word: str, key: str, override: Override) -> list[str]:
    files = {p.stem for p in (CONF / key).rglob("*.yaml")} | {
        p.relative_to(CONF / key).with_suffix("").as_posix() for p in (CONF / key).rglob("*.yaml")}
    values = [v.strip() for v in (override.get_value_string() or "").strip("[]").split(",")]
    return [f"{word}: there is no '{v}' here; {did_you_mean(v, files)}"
            for v in values if v and v != "null" and v not in files]


def _top() -> set[str]:
    """Name the top-level keys of the configuration."""
    own = {"name", "contrasts", "seed", "out", "store", "plan", "swept", "exp", "arm", "system"}
    return own | {slot.split("/")[0] for slot in groups()}
