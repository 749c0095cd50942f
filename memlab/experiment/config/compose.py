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

from memlab.experiment.config import choices
from memlab.experiment.config.ablation import PLAIN, ablation_of
from memlab.experiment.config.choices import ARM, ARMS, FileStamp
from memlab.experiment.config.composition import CONFIG, composition
from memlab.experiment.config.instantiate import class_defaults, find_class, resolution_faults, with_defaults
from memlab.experiment.config.overrides import (
    Fault,
    Overrides,
    groups,
    jobs,
    parse_all,
    read_overrides,
    unknown_setting,
    valid_overrides,
)
from memlab.support.errors import Faults

LAUNCHER = "hydra.launcher"


@dataclass(frozen=True)
class ArmConfig:
    """The configuration of one arm, and the overrides that it is composed of, as they are written.

    A pipeline of which a part is ``swapped`` by ``ablate`` may be invalid.
    """

    config: DictConfig
    overrides: Overrides
    swapped: bool = False


@dataclass(frozen=True)
class ArmConfigs:
    """One configuration for each arm of a command line, and the keys whose values were swept.

    ``overrides`` are those of the command line that have no fault.
    """

    arms: list[ArmConfig]
    swept: list[str]
    overrides: Overrides

    @property
    def base(self) -> DictConfig:
        """The configuration from which the settings of the whole run are read: they are the same in all arms."""
        return self.arms[0].config


def compose(arguments: Sequence[str], multirun: bool) -> tuple[ArmConfigs | None, list[str]]:
    """Compose the arms without the bad overrides, if possible; return them and all faults."""
    overrides, bad = read_overrides(arguments)
    configs = None
    try:
        configs = _compose_arms(overrides, multirun, bad)
        if unresolved := dict.fromkeys(fault for arm in configs.arms for fault in resolution_faults(arm.config)):
            configs, bad = None, [*bad, *(("", fault) for fault in unresolved)]
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        bad.append(("", hydra_message(error)))
    return configs, [f"{argument}: {fault}" if argument else fault for argument, fault in bad]


def _compose_arms(overrides: Overrides, multirun: bool, bad: list[Fault]) -> ArmConfigs:
    single = {argument: override for argument, override in overrides.items() if not override.is_sweep_override()}
    hydra = _compose_files(_words_for_hydra(single), choices.stamps()).hydra
    multirun = multirun or hydra.mode == RunMode.MULTIRUN.name
    params = parse_all(f"{key}={value}" for key, value in (hydra.sweeper.params or {}).items() if multirun)
    if not multirun and hydra.sweeper.params:
        bad.append(("", "hydra.sweeper.params holds values to sweep; add -m, or hydra.mode=MULTIRUN"))
    lines = {_key(line): line for line in [*params, *overrides]}
    swept = sorted({_key(line).lstrip("+") for line in [*params, *overrides] if line not in single})
    if swept and not multirun:
        bad.append(("", f"{', '.join(swept)} has several values; add -m to run one arm each"))
    arms = jobs({**params, **overrides}) if swept or multirun else [overrides]
    composed = [compose_arm(arm) for arm in arms]
    found: dict[Fault, list[str]] = defaultdict(list)  # fault -> the arms that have it
    for arm, (_, wrong) in zip(arms, composed, strict=True):
        for argument, fault in wrong.items():
            words = [word for word in arm if _key(word).lstrip("+") in swept and _key(word) != _key(argument)]
            found[lines.get(_key(argument), argument), fault].append(" ".join(words))
    bad += [(argument, f"{fault}, with {having[0]}" if argument and len(having) < len(arms) else fault)
            for (argument, fault), having in found.items()]
    return ArmConfigs([arm for arm, _ in composed], swept, valid_overrides(overrides, bad))


def compose_arm(overrides: Overrides) -> tuple[ArmConfig, dict[str, str]]:
    """Return the arm that overrides without sweeps describe, ablated if they ask for it, and override -> its fault.

    Faulty overrides are left out, so that the faults of all others can be found. The fault of an ablation names itself:
    its override is "".

    Raises:
        HydraException: The chosen files cannot be composed.
    """
    config, wrong = _compose(overrides)
    kept, asked = {argument: one for argument, one in overrides.items() if argument not in wrong}, None
    try:
        asked = ablation_of(config)
        if asked and (asked.part or asked.side == PLAIN):
            config = asked.apply(config, _plain(kept))
    except Faults as error:
        wrong[""] = error.faults[0]
    return ArmConfig(config, kept, swapped=bool(asked and asked.part)), wrong


def _plain(overrides: Overrides) -> DictConfig:
    """Compose the plain baseline of a system, by the same overrides with ``system=plain``; raise Faults if it fails."""
    others = {argument: one for argument, one in overrides.items() if one.key_or_group not in ("ablate", "system")}
    try:
        plain, wrong = _compose({**others, **parse_all([f"system={PLAIN}"])})
    except HydraException as error:
        plain, wrong = DictConfig({}), {"": hydra_message(error)}
    for fault in wrong.values():
        raise Faults([f"ablate: the plain baseline cannot be composed with these arguments: {fault}"])
    return plain


def _compose(overrides: Overrides) -> tuple[DictConfig, dict[str, str]]:
    """Return the configuration of the overrides that have no fault, and override -> its fault."""
    chosen = _words_for_hydra(overrides)
    values = {argument: override for argument, override in overrides.items() if argument not in chosen}
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
    return config, wrong


def _words_for_hydra(overrides: Overrides) -> tuple[str, ...]:
    return (*choices.search_path(), *(argument for argument, one in overrides.items() if _for_hydra(one)))


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
