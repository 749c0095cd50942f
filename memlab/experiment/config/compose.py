"""The configuration of each arm of a command line, and all faults of its overrides.

Hydra composes the chosen files. Values are set here, after every part has been completed with the defaults of its
class: a setting can be overridden even if no file states it, and all faults are reported at once.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from memlab.experiment.config import choices, instantiate, plugins
from memlab.experiment.config.choices import ARM, ARMS, FileStamp
from memlab.experiment.config.composition import CONFIG, composition
from memlab.experiment.config.instantiate import CONF, class_defaults, find_class, with_defaults
from memlab.experiment.config.overrides import (
    Fault,
    faults,
    groups,
    jobs,
    parse,
    try_parse,
    unknown_setting,
    valid_overrides,
)
from memlab.support.paths import expand, path_refusal

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


def _compose_arms(arguments: list[str], multirun: bool, bad: list[Fault]) -> ArmConfigs:
    single = [argument for argument in arguments if not parse(argument).is_sweep_override()]
    first, _ = compose_arm(single)
    multirun = multirun or first.hydra.mode == RunMode.MULTIRUN.name
    params = [f"{key}={value}" for key, value in (first.hydra.sweeper.params or {}).items()] if multirun else []
    if not multirun and first.hydra.sweeper.params:
        bad.append(("", "hydra.sweeper.params holds values to sweep; add -m, or hydra.mode=MULTIRUN"))
    lines = {_key(line): line for line in [*params, *arguments]}
    several = [argument for argument in arguments if argument not in single]
    swept = sorted({_key(line).lstrip("+") for line in [*params, *several]})
    if swept and not multirun:
        bad.append(("", f"{', '.join(swept)} has several values; add -m to run one arm each"))
    arms = [[f"{key}={value}" for key, value in job.items()] if swept or multirun else arguments
            for job in jobs([*params, *arguments])]
    composed = [compose_arm(arm) for arm in arms]
    found: dict[Fault, list[str]] = defaultdict(list)  # fault -> the arms that have it
    for arm, (_, wrong) in zip(arms, composed, strict=True):
        for argument, fault in wrong.items():
            words = [word for word in arm if _key(word).lstrip("+") in swept and _key(word) != _key(argument)]
            found[lines.get(_key(argument), argument), fault].append(" ".join(words))
    bad += [(argument, fault if len(having) == len(arms) else f"{fault}, with {having[0]}")
            for (argument, fault), having in found.items()]
    return ArmConfigs([config for config, _ in composed], swept, multirun)


def compose_arm(arguments: Sequence[str]) -> tuple[DictConfig, dict[str, str]]:
    """Return the configuration that overrides without sweeps describe, and override -> its fault.

    Faulty overrides are left out, so that the faults of all others can be found.

    Raises:
        HydraException: The chosen files cannot be composed.
    """
    overrides = {argument: parse(argument) for argument in arguments}
    values = {argument: override for argument, override in overrides.items() if not _for_hydra(override)}
    chosen = (*choices.search_path(), *(argument for argument in arguments if argument not in values))
    config = copy.deepcopy(_compose_files(chosen, choices.stamps()))
    plain: Any = OmegaConf.to_container(config, resolve=False)
    wrong: dict[str, str] = {}
    for argument, override in values.items():
        try:
            if fault := unknown_setting(override, plain):
                wrong[argument] = fault
            else:
                _set(config, override)
        except (ValueError, TypeError, IndexError):
            wrong[argument] = ("does not fit what is there: the items of a list are numbered from 0, and a list is "
                               "replaced as a whole")
        except OmegaConfBaseException as error:
            wrong[argument] = str(error).splitlines()[0]
    config.hydra.overrides.task = [argument for argument in arguments if argument not in wrong]
    return config, wrong


def overrides_of(config: DictConfig) -> list[str]:
    """Return the overrides of a composed configuration as they are written: ``${seed}`` is not replaced."""
    arguments: Any = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    return [str(argument) for argument in arguments]


def _for_hydra(override: Override) -> bool:
    """Return True for the choice of a file, and for a setting of Hydra itself."""
    key = override.key_or_group
    if key == ARM or any(f"{group}/".startswith(f"{key}/") for group in groups()):
        return not isinstance(override.value(), dict)
    return key.startswith("hydra.") and not f"{key}.".startswith(f"{LAUNCHER}.")


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
    """Set or delete one value; a deleted setting of a class takes its default."""
    key = override.key_or_group
    if not override.is_delete():
        OmegaConf.update(config, key, override.value(), merge=True, force_add=True)
        return
    place, _, name = key.rpartition(".")
    node: Any = OmegaConf.select(config, place) if place else config
    if isinstance(node, ListConfig):
        del node[int(name)]
        return
    if not isinstance(node, DictConfig):
        raise OmegaConfBaseException(f"{place} is a value, and has no settings to delete")
    cls = find_class(str(node["_target_"]), "", []) if "_target_" in node else None
    defaults: Mapping[str, Any] = class_defaults(cls) if cls else {}
    with open_dict(node):
        del node[name]
        if name in defaults:
            node[name] = defaults[name]


def _key(argument: str) -> str:
    return argument.partition("=")[0]


def hydra_message(error: BaseException) -> str:
    """Return Hydra's message in one line, without its advice to print traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and "HYDRA_FULL_ERROR" not in line]
    return " ".join(lines[:6])
