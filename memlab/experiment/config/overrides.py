"""The overrides of a command line, checked before Hydra reads them.

Hydra stops at the first bad override and suggests nothing; here all of them are reported, with suggestions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from types import NoneType
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from memlab.data.chats.refusal import OWN, export_at, holds_sessions
from memlab.experiment.config import choices, plugins
from memlab.experiment.config.instantiate import CONF, choice_settings, options, with_defaults
from memlab.support.errors import did_you_mean
from memlab.support.paths import expand, nearest, path_refusal
from memlab.support.shell import data_path

Fault = tuple[str, str]
"""An override, and its fault."""

Words = Mapping[str, Override | None]
"""The words of a command line: each argument -> what it says, None where it cannot be read."""

Overrides = Mapping[str, Override]
"""Those that can be read, by their text."""

MULTIRUN = ("-m", "--multirun")
"""Flags that run one arm per value."""

FOREIGN = ("plugins", "conf_dir")
"""Settings that decide what else is read, before anything is composed: only the command line sets them."""

MOST_ARMS = 1000
"""Arms of one command line; each takes some milliseconds to compose."""

FOLDER = "a folder"
"""What a setting expects that names one."""


@dataclass(frozen=True)
class RunSetting:
    """A setting of the whole command line rather than of a slot.

    types: the types that its value may have, if that is checked here; expected: the same in words. recorded: whether
    the config.yaml of an arm contains it. in_name: whether the name of an arm contains its value.
    """

    name: str
    types: tuple[type, ...] = (object,)
    expected: str = ""
    recorded: bool = True
    in_name: bool = False


RUN_SETTINGS = (
    RunSetting("name"), RunSetting("ablate", in_name=True), RunSetting("contrasts"),
    RunSetting("seed", (int,), "a whole number"),
    RunSetting("plan", (bool,), "true or false", recorded=False),
    RunSetting("out", (str,), FOLDER, recorded=False),
    RunSetting("store", (str, NoneType), FOLDER, recorded=False),
    RunSetting("shards", (int,), "a whole number", recorded=False),
    RunSetting("plugins", recorded=False), RunSetting("conf_dir", (str, NoneType), FOLDER, recorded=False),
)


def groups() -> frozenset[str]:
    """Return the slots: all groups of choices, as ``rank/select``, and ``arm/EXP``."""
    return choices.slots(CONF)


def _top_level() -> frozenset[str]:
    return frozenset({setting.name for setting in RUN_SETTINGS} | {slot.split("/")[0] for slot in groups()})


def read_overrides(arguments: Iterable[str]) -> tuple[Overrides, list[Fault]]:
    """Read each word of a command line once, and the plug-ins and files that it names.

    Return the overrides without a fault, and the faults that can be found without composing.

    >>> overrides, bad = read_overrides(["rank/select=fixd", "seed=1"])
    >>> list(overrides), bad[0][1].startswith("there is no 'fixd' here; did you mean 'fixed'?")
    (['seed=1'], True)
    """
    words = {argument: try_parse(argument) for argument in arguments}
    bad = [*read_foreign(words), *faults(words)]
    return valid_overrides(words, bad), bad


def read_foreign(words: Words) -> list[Fault]:
    """Import the plug-ins that a command line names, and read the files of ``conf_dir``; return the faults of both."""
    bad: list[Fault] = []
    given: dict[str, tuple[str, Any]] = {
        override.key_or_group: (argument, override.value()) for argument, override in words.items()
        if override and override.key_or_group in FOREIGN and not override.is_delete()}
    argument, names = given.get("plugins", ("", None))
    names = [names] if isinstance(names, str) else names or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        bad.append((argument, "expected a name or a list of names, plugins=[mylab]"))
        names = []
    bad += [(argument, fault) for fault in plugins.activate(names)]
    argument, place = given.get("conf_dir", ("", None))
    refusal = path_refusal(place or "") if isinstance(place, str | None) else "expected a folder"
    bad += [(argument, refusal)] if refusal else []
    own = [expand(place).resolve()] if place and not refusal else []
    bad += [(argument, fault) for fault in choices.use([*plugins.conf_folders(), *own], CONF)]
    return bad


def faults(words: Words) -> list[Fault]:
    """Return the faults of the words of a command line by themselves, and of those that are given twice."""
    bad = [(argument, fault) for argument, override in words.items() for fault in _faults(argument, override)]
    good = {argument: override.key_or_group for argument, override in valid_overrides(words, bad).items()}
    last = {key: argument for argument, key in good.items()}
    return bad + [(argument, f"{key} is given again, by {last[key]}; leave one out")  # only the last would count
                  for argument, key in good.items() if last[key] != argument]


def _faults(argument: str, override: Override | None) -> list[str]:
    if argument.startswith("-"):
        key = argument.lstrip("-").partition("=")[0]
        if key in {"exp", *groups(), *_top_level()}:
            return [f"settings have no dashes; write {'+' * (key == 'exp')}{key}=VALUE"]
        return [f"there is no such flag; {did_you_mean(argument, ('--multirun', '-m', '--help'))}"]
    if override is None:
        key = argument.partition("=")[0]
        if "/" in key and "." in key and (slot := key.partition(".")[0]).lstrip("+~") in groups():
            return [f"a slot's setting is written with dots: {argument.replace(slot, slot.replace('/', '.'), 1)}"]
        return ["cannot be read as key=value; quote values that contain spaces, commas, brackets or '=', e.g. "
                "'data.path=\"my file.json\"'"]
    if argument.partition("=")[2].strip() == "???":
        return ["'???' is no value; leave the setting out, or give it one"]
    key, slots = override.key_or_group, groups()
    if key in ("exp", "profile") and not override.is_add() and not override.is_delete():
        return [f"{'an experiment' if key == 'exp' else 'a profile'} is added to the defaults; write +{argument}"]
    if key.split(".")[0] == "hydra" and key.split(".")[1:2] not in (["launcher"], ["mode"]):
        return ["memlab reads nothing else of Hydra's than hydra.launcher and hydra.mode; folders of runs: out=FOLDER"]
    if override.is_delete() and key in {setting.name for setting in RUN_SETTINGS}:
        return ["a setting of the run cannot be deleted; leave it out, or give it a value"]
    if key in slots:
        return _unknown_files(key, override)
    if "." not in key and not override.is_delete() and (below := [s for s in slots if s.startswith(f"{key}/")]):
        return [f"'{key}' holds several slots; name one: {', '.join(sorted(below))}"]
    if "/" in key or override.package:
        return [f"there is no slot '{key}'; {did_you_mean(key, slots)}"]
    if not (choices.more_choices() or key.split(".")[0] in {"hydra", *_top_level()}):  # files may have own keys
        return [f"there is no setting '{key}'; {did_you_mean(key.split('.')[0], slots | _top_level())}"]
    return []


def _unknown_files(slot: str, override: Override) -> list[str]:
    files = options(slot)
    value = (override.input_line or "").partition("=")[2]  # empty for a deletion, ~slot
    names = [name.strip() for name in value.strip("[]").split(",")]
    return [f"there is no '{name}' here; {_offer(slot, name) or did_you_mean(name, files)}"
            for name in names if name and name != "null" and name not in files]


def _offer(slot: str, name: str) -> str:
    """Name the plug-in that has such a choice; empty if none has."""
    for plugin, folder in plugins.offered_folders().items():
        if choices.holds(folder, slot, name):
            return f"a plug-in has it: add plugins=[{plugin}]"
    return ""


def unknown_setting(override: Override, config: Mapping[str, Any]) -> str:
    """Return the fault of an override whose setting a composed configuration (plain values) lacks; empty if it has it.

    >>> unknown_setting(parse("rank.select.kk=3"), {"rank": {"select": {"_target_": "x.Fixed", "k": 10}}})
    "rank.select has no setting 'kk'; did you mean 'k'? (known: k)"
    """
    key = override.key_or_group
    fault = "" if key in groups() else _unknown_setting(key.split("."), config)
    data = config.get("hydra", {}).get("runtime", {}).get("choices", {}).get("data")
    return _without_data(str(override.value()), data) if fault and data and key == "data.path" else fault


def _without_data(place: str, chosen: str) -> str:
    """Return the fault of ``data.path=place`` where the chosen data set reads no path, and the words to write."""
    what = f"data={chosen} is chosen, which reads no file"
    if holds_sessions(Path(place)):
        return f"{what}; write data=custom {data_path(place)}"
    if export := export_at(Path(place)):
        return f"{what}; {export.what.partition(',')[0]}: {export.fix.removeprefix('import it: ')}"
    if (near := nearest(Path(place))) and holds_sessions(near):
        return f"{what}; did you mean data=custom {data_path(str(near))}?"
    readers = [name for name in options("data") if "path" in with_defaults(choice_settings(f"data/{name}"))]
    return (f"{what}; name the data set of this path: data=custom {data_path(place)} (a folder with {OWN}), or data= "
            f"{', '.join(name for name in readers if name != 'custom')}")


def _unknown_setting(path: Sequence[str], config: Mapping[str, Any]) -> str:
    node: Any = config
    if path[0] == "hydra":
        if path[1:2] != ["launcher"]:
            return ""
        if path[2:] and not str(config["hydra"]["launcher"]["_target_"]).startswith("memlab."):
            return "no launcher is chosen that has settings; add hydra/launcher=slurm"
    takes_any_name = False  # the value of a setting, such as weights, and not a part with settings
    for i, name in enumerate(path):
        if not isinstance(node, Mapping) or (takes_any_name and "_target_" not in node):
            break
        if name not in node:
            owner = f"{'.'.join(path[:i])} has" if i else "there is"
            return f"{owner} no setting '{name}'; {did_you_mean(name, [str(k) for k in node if k != '_target_'])}"
        takes_any_name = "_target_" in node
        node = node[name]
    return ""


def valid_overrides(words: Words, bad: Iterable[Fault]) -> Overrides:
    """Return the overrides that have no fault and are no setting of a slot that has one."""
    faulty = {argument for argument, _ in bad}
    slots = tuple(argument.lstrip("+~").partition("=")[0].replace("/", ".") + "." for argument in faulty)
    return {argument: override for argument, override in words.items()
            if override and argument not in faulty and not argument.lstrip("+~").startswith(slots)}


def parse(argument: str) -> Override:
    """Parse an override; raises HydraException if it cannot be read."""
    return OverridesParser.create().parse_override(argument)


def try_parse(argument: str) -> Override | None:
    """Parse an override; return None if it cannot be read."""
    try:
        return parse(argument)
    except (HydraException, ValueError, RecursionError):  # numbers of thousands of digits, deep nesting
        return None


def parse_all(arguments: Iterable[str]) -> Overrides:
    """Return argument -> what it says; raises HydraException if one cannot be read."""
    return {argument: parse(argument) for argument in arguments}


def jobs(overrides: Overrides) -> list[Overrides]:
    """Return the overrides of each arm, which have one value; of several overrides of one key the last counts.

    >>> [[*job] for job in jobs(parse_all(["rank/select=gap,fixed", "seed=1", "seed=2"]))]
    [['rank/select=gap', 'seed=2'], ['rank/select=fixed', 'seed=2']]
    """
    last = {override.key_or_group: override for override in overrides.values()}
    values = {override.get_key_element(): override for override in last.values()}
    lists = [[*islice(override.sweep_string_iterator(), MOST_ARMS + 1)] if override.is_sweep_override()
             else [override.get_value_element_as_str()] for override in values.values()]
    if math.prod(map(len, lists)) > MOST_ARMS:
        raise HydraException(f"this line asks for more than {MOST_ARMS:,} arms. Fix: sweep fewer values")
    words = [[f"{key}={value}" for value in some] for key, some in zip(values, lists, strict=True)]
    return [*map(dict, product(*([(word, parse(word)) for word in some] for some in words)))]
