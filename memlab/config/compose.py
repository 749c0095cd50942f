"""The configuration of each arm of a command line, and all faults of its overrides.

Hydra composes the chosen files. Values are set here, after every part has been completed with the defaults of its
class: a setting can be overridden even if no file states it, and all faults are reported at once.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import MISSING, DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from memlab.config import choices, instantiate, plugins
from memlab.config.choices import ARM, ARMS, FileStamp
from memlab.config.composition import CONFIG, composition
from memlab.config.instantiate import CONF, class_defaults, find_class, with_defaults
from memlab.config.overrides import Fault, faults, groups, jobs, parse, try_parse, unknown_settings, valid_overrides
from memlab.config.unread import Place, origin, unread_settings
from memlab.runtime.paths import expand, path_refusal

LAUNCHER = "hydra.launcher"

FOREIGN = ("plugins", "conf_dir")
"""Settings that decide what else is read, before anything is composed: only the command line sets them."""


@dataclass(frozen=True)
class ArmConfigs:
    """One configuration for each arm of a command line, and the keys whose values were swept."""

    arms: list[DictConfig]
    swept: list[str]
    multirun: bool

    @property
    def base(self) -> DictConfig:
        """The configuration from which the settings of the whole run are read: they are the same in all arms."""
        return self.arms[0]


def compose(arguments: Sequence[str], multirun: bool) -> tuple[ArmConfigs | None, list[str]]:
    """Compose the arms without the bad overrides, if possible; return them and all faults."""
    bad = read_foreign(arguments)
    bad += faults(arguments)
    configs = None
    try:
        configs = _compose_arms(valid_overrides(arguments, [argument for argument, _ in bad]), multirun, bad)
        if unresolved := dict.fromkeys(fault for arm in configs.arms for fault in instantiate.resolution_faults(arm)):
            configs, bad = None, [*bad, *(("", fault) for fault in unresolved)]
        elif not any(argument.partition("=")[0] in FOREIGN for argument, _ in bad):
            bad += _from_files(arguments, configs)
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        bad.append(("", hydra_message(error)))
    return configs, [f"{argument}: {fault}" if argument else fault for argument, fault in bad]


def read_foreign(arguments: Sequence[str]) -> list[Fault]:
    """Import the plug-ins that the arguments name, and read the files of ``conf_dir``; return the faults of both."""
    bad: list[Fault] = []
    given: dict[str, tuple[str, Any]] = {}
    for argument in arguments:
        override = try_parse(argument)
        if override and override.key_or_group in FOREIGN and not override.is_delete():
            if override.is_sweep_override():
                bad.append((argument, "holds for all arms; several names are a list, plugins=[one,two]"))
            else:
                given[override.key_or_group] = argument, override.value()
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


def _from_files(arguments: Sequence[str], configs: ArmConfigs) -> list[Fault]:
    """Return the faults of files that name plug-ins or a folder: only the command line does."""
    given = {_key(argument).lstrip("+") for argument in arguments}
    return [("", f"{key}: a configuration file sets it; name it on the command line, {key}=...")
            for key in FOREIGN if key not in given and any(config.get(key) for config in configs.arms)]


def _compose_arms(arguments: list[str], multirun: bool, bad: list[Fault]) -> ArmConfigs:
    single = [argument for argument in arguments if not parse(argument).is_sweep_override()]
    first, _ = compose_arm(single)
    multirun = multirun or first.hydra.mode == RunMode.MULTIRUN.name
    params = [f"{key}={value}" for key, value in (first.hydra.sweeper.params or {}).items()] if multirun else []
    if not multirun and first.hydra.sweeper.params:
        bad.append(("", "hydra.sweeper.params holds values to sweep; add -m, or hydra.mode=MULTIRUN"))
    several = [argument for argument in arguments if argument not in single]
    swept = sorted({_key(argument).lstrip("+") for argument in [*params, *several]})
    if swept and not multirun:
        bad.append(("", f"{', '.join(swept)} has several values; add -m to run one arm each"))
    arms = jobs([*params, *arguments])
    composed = [compose_arm([f"{key}={value}" for key, value in job.items()] if swept or multirun else arguments)
                for job in arms]
    bad += _merge_faults([*params, *arguments], arms, [wrong for _, wrong in composed])
    return ArmConfigs([config for config, _ in composed], swept, multirun)


def compose_arm(arguments: Sequence[str]) -> tuple[DictConfig, dict[str, str]]:
    """Return the configuration that overrides without sweeps describe, and override or file -> its fault.

    Faulty overrides and settings of files are left out, so that the faults of all others can be found.

    Raises:
        HydraException: The chosen files cannot be composed.
    """
    values = [argument for argument in arguments if not _for_hydra(parse(argument))]
    chosen = (*choices.search_path(), *(argument for argument in arguments if argument not in values))
    config = copy.deepcopy(_compose_files(chosen, choices.stamps()))
    plain: Any = OmegaConf.to_container(config, resolve=False)
    wrong = unknown_settings(values, plain)
    for argument in values:
        if argument not in wrong:
            try:
                _set(config, parse(argument))
            except (ValueError, TypeError, IndexError):  # of a list's item
                wrong[argument] = "there is no such item: those of a list are numbered from 0; or set the whole list"
            except OmegaConfBaseException as error:
                wrong[argument] = str(error).splitlines()[0]
    unread = unread_settings(config, _hydra_alone())
    dead = {argument: fault for argument in arguments if argument not in wrong if (fault := (
        _overridden(argument, arguments, config) or _reason(argument, unread) or _dangling(argument, config)))}
    if dead:
        config, wrong = compose_arm([argument for argument in arguments if argument not in dead])
        return config, {**wrong, **dead}
    for place, fault in unread.items():
        wrong[str(origin(place) or ".".join(place))] = fault
        _delete(config, place)
    config.hydra.overrides.task = [argument for argument in arguments if argument not in wrong]
    return config, wrong


def _reason(argument: str, unread: Mapping[Place, str]) -> str:
    """Return why nothing reads what an argument sets; empty if something does."""
    key = () if _is_folder(parse(argument).key_or_group) else tuple(parse(argument).key_or_group.split("."))
    return next((fault for place, fault in unread.items() if key and key[:len(place)] == place[:len(key)]), "")


def _dangling(argument: str, config: DictConfig) -> str:
    """Return why the references of an argument cannot be resolved, or "". A sweep's argument escapes braces."""
    why = instantiate.unresolvable(config, parse(argument).key_or_group) if "${" in str(parse(argument).value()) else ""
    return f"cannot be resolved ({why})" if why else ""


def _overridden(argument: str, arguments: Sequence[str], config: DictConfig) -> str:
    """Return the fault of an argument whose value a later one replaces; empty if none does."""
    key = parse(argument).key_or_group
    later = [other for other in arguments[arguments.index(argument) + 1:]
             if (name := parse(other).key_or_group) != key and
             f"{name}.".startswith(f"{key}.") or f"{key}.".startswith(f"{name}.")]
    stated: Any = parse(argument).value()
    if not later or _is_folder(key) or parse(argument).is_delete() or (
            isinstance(stated, list) and all(parse(other).is_delete() for other in later)):  # of items of the list
        return ""
    held = OmegaConf.select(config, key, throw_on_missing=False, throw_on_resolution_failure=False)
    plain = OmegaConf.to_container(held, resolve=False) if OmegaConf.is_config(held) else held
    return "" if _holds(plain, stated) else f"{later[-1]} replaces it, so that it changes nothing; leave one out"


def _holds(node: Any, stated: Any) -> bool:
    """Return whether a node has all values that are stated."""
    if isinstance(stated, dict) and isinstance(node, dict):
        return all(name in node and _holds(node[name], value) for name, value in stated.items())
    return bool(node == stated)


def _delete(config: DictConfig, place: Place) -> None:
    """Delete a place, so that what reads the rest finds no more faults."""
    node: Any = config
    for name in place[:-1]:
        node = node[int(name)] if isinstance(node, ListConfig) else node._get_node(name)
    with open_dict(node):
        del node[place[-1]]


def overrides_of(config: DictConfig) -> list[str]:
    """Return the overrides of a composed configuration as they are written: ``${seed}`` is not replaced."""
    arguments: Any = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    return [str(argument) for argument in arguments]


def _is_folder(key: str) -> bool:
    """Return whether a key is a slot, or a folder of slots."""
    return key == ARM or any(f"{group}/".startswith(f"{key}/") for group in groups())


def _for_hydra(override: Override) -> bool:
    """Return True for the choice of a file, and for a setting of Hydra itself."""
    key = override.key_or_group
    if _is_folder(key):
        return not isinstance(override.value(), dict)
    return key.startswith("hydra.") and not f"{key}.".startswith(f"{LAUNCHER}.")


@cache
def _hydra_alone() -> dict[str, Any]:
    """Return Hydra's own settings (plain values) as they are without files and arguments."""
    settings: dict[str, Any] = composition(None)["hydra"]
    settings["job"]["config_name"] = CONFIG
    return settings


@lru_cache(maxsize=64)
def _compose_files(chosen: tuple[str, ...], stamps: tuple[FileStamp, ...]  # noqa: ARG001  (the key)
                   ) -> DictConfig:
    """Return the files of these stamps as Hydra composes them, with the defaults of every class.

    Arms of a sweep share the result, and command lines of one process do while no file changes.
    """
    plain = composition(CONFIG, chosen)
    plain.pop(ARMS, None)  # of the experiment; each is a choice
    whole = {key: with_defaults(node) if key != "hydra" else node for key, node in plain.items()}
    whole["hydra"]["job"]["override_dirname"] = ""  # Hydra's own, of the choices
    whole["hydra"]["launcher"] = with_defaults(whole["hydra"]["launcher"])
    config = OmegaConf.create(whole)
    OmegaConf.set_struct(config, value=True)
    return config


def _set(config: DictConfig, override: Override) -> None:
    """Set, add or delete one value, as Hydra does."""
    key, value = override.key_or_group, override.value()
    if override.is_delete():
        place, _, name = key.rpartition(".")
        node = OmegaConf.select(config, place) if place else config
        if isinstance(node, ListConfig):
            del node[int(name)]
        elif isinstance(node, DictConfig):
            _delete_setting(node, name, override)
        else:
            raise OmegaConfBaseException(f"{place} is a value, and has no settings to delete")
    elif (override.is_add() and not isinstance(value, dict | list)
          and OmegaConf.select(config, key, throw_on_missing=False) is not None):
        raise OmegaConfBaseException("there is such a setting; leave the + out")
    elif isinstance(value, dict) and isinstance(OmegaConf.select(config, key, throw_on_missing=False), ListConfig):
        raise OmegaConfBaseException("expected a list, given a mapping")
    else:
        OmegaConf.update(config, key, value, merge=True, force_add=override.is_add() or override.is_force_add())


def _delete_setting(node: DictConfig, name: str, override: Override) -> None:
    """Delete a key; a setting of a class takes its default."""
    held: Any = OmegaConf.to_container(node, resolve=False)
    if "=" in (override.input_line or "") and held[name] != override.value():
        raise OmegaConfBaseException(f"its value is {held[name]!r:.80}, so that this deletes nothing")
    cls = find_class(str(held["_target_"]), "", []) if "_target_" in held else None
    default = class_defaults(cls).get(name, MISSING) if cls else MISSING
    if default == held[name]:
        raise OmegaConfBaseException(f"its default is {default!r:.80} as well, so that this changes nothing")
    with open_dict(node):
        del node[name]
        if cls:
            node[name] = default


def _merge_faults(arguments: Sequence[str], jobs: list[dict[str, str]], by_arm: list[dict[str, str]]) -> list[Fault]:
    """Return the faults of all arms and files, each once; of a setting that only some arms have, name the others."""
    by_key = [{_key(argument): fault for argument, fault in wrong.items()} for wrong in by_arm]
    merged: list[Fault] = []
    for argument in dict.fromkeys(arguments):
        lacking = [_key(argument) in wrong for wrong in by_key]
        if any(lacking):
            fault = by_key[lacking.index(True)][_key(argument)]
            merged.append((argument, fault if all(lacking) else _lacking_message(jobs, lacking) or fault))
    keys = {_key(argument) for argument in arguments}
    return [*merged, *dict.fromkeys(item for wrong in by_arm for item in wrong.items() if _key(item[0]) not in keys)]


def _lacking_message(jobs: list[dict[str, str]], lacking: list[bool]) -> str:
    """Name the swept techniques that lack a setting, and those to sweep instead."""
    for key in jobs[0]:
        without = dict.fromkeys(job[key] for job, lacks in zip(jobs, lacking, strict=True) if lacks)
        having = dict.fromkeys(job[key] for job, lacks in zip(jobs, lacking, strict=True) if not lacks)
        if _is_folder(key.lstrip("+")) and not {*without} & {*having}:
            return (f"{key.lstrip('+')} is swept, and there is no such setting in {', '.join(without)}. Fix: sweep "
                    f"only {key}={','.join(having)}")
    return ""


def _key(argument: str) -> str:
    return argument.partition("=")[0]


def hydra_message(error: BaseException) -> str:
    """Return Hydra's message in one line, without its advice to print traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and "HYDRA_FULL_ERROR" not in line]
    return " ".join(lines[:6])
