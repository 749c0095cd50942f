"""A command line as Hydra reads it: the configuration of every arm, and all that is wrong with its words.

Composed through Hydra's own parts rather than its entry point: arms are constructed before any of them runs, and Hydra
stops at the first fault, and suggests nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hydra import initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from memlab.config import overrides
from memlab.config.instantiate import CONF


@dataclass(frozen=True)
class Composed:
    """A command line as Hydra reads it: the configuration of every arm, and what they have in common."""

    base: DictConfig
    arms: list[DictConfig]
    swept: list[str]
    multirun: bool


def compose(words: list[str], multirun: bool, bad: list[overrides.Fault]) -> Composed | None:
    """Compose what can be composed without the bad overrides; append what is wrong with the others."""
    with _hydra() as hydra:
        return _composed(hydra, words, multirun, bad)


@contextmanager
def _hydra() -> Iterator[Hydra]:
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(CONF), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        yield hydra
    GlobalHydra.instance().clear()


def _composed(hydra: Hydra, words: list[str], multirun: bool, bad: list[overrides.Fault]) -> Composed | None:
    kept = overrides.settled(words, [word for word, _ in bad])
    try:
        return _compose(hydra, kept, multirun)
    except HydraException as error:
        more = _misspelt(hydra, kept)
        if more:
            bad += more
            return _composed(hydra, kept, multirun, bad)
        try:  # a setting that the default of a swept slot lacks, and all that is swept there have
            first = [f"{slot}={names[0]}" for slot, names in _swept(hydra, kept).items()]
            return _compose(hydra, kept, multirun, first)
        except HydraException:
            bad.append(("", _told(error)))
            return None


def _compose(hydra: Hydra, words: list[str], multirun: bool, first: Sequence[str] = ()) -> Composed:
    """Compose every arm; ``first`` are the techniques that what all arms have in common is composed with."""
    base = hydra.compose_config("config", [*words, *first], RunMode.MULTIRUN, with_log_configuration=False)
    multirun = multirun or base.hydra.mode == RunMode.MULTIRUN
    params = _params(base) if multirun else {}
    given = [word for word in base.hydra.overrides.task if word not in first]
    parsed = OverridesParser.create(config_loader=hydra.config_loader).parse_overrides(
        [*(f"{k}={v}" for k, v in params.items()), *given])
    several = {o.get_key_element().lstrip("+") for o in parsed if o.is_sweep_override()}
    if several and not multirun:
        raise HydraException(f"{', '.join(sorted(several))} has several values; add -m to run one arm each")
    swept = sorted(several | {key.lstrip("+") for key in params}) if multirun else []
    jobs = BasicSweeper.split_arguments(parsed, None)[0] if multirun else [given]
    arms = [hydra.config_loader.load_sweep_config(base, list(job)) for job in jobs]
    for arm in arms:
        OmegaConf.update(arm, "swept", swept, force_add=True)
    return Composed(base, arms, swept, multirun)


def _params(base: DictConfig) -> dict[str, Any]:
    return {str(key): value for key, value in (base.hydra.sweeper.params or {}).items()}


def _misspelt(hydra: Hydra, words: list[str]) -> list[overrides.Fault]:
    """Find the settings that the chosen techniques do not have; a swept slot's, where none of its techniques has them.

    Of a setting that some of the swept techniques have, the others are named.
    """
    chosen = _chosen(words)

    def lacking(*more: str) -> dict[str, str]:
        base = hydra.compose_config("config", [*chosen, *more], RunMode.MULTIRUN, with_log_configuration=False)
        plain: Any = OmegaConf.to_container(base, resolve=False)
        return dict(overrides.misspelt(words, plain))

    try:
        found = lacking()
        for slot, names in _swept(hydra, words).items():
            without = {name: lacking(f"{slot}={name}") for name in names}
            for word in [w for w in words if w.startswith(f"{slot.replace('/', '.')}.")]:
                told = {name: faults[word] for name, faults in without.items() if word in faults}
                found.pop(word, None)  # told of the slot's default, whatever it is
                if told:
                    having = [name for name in names if name not in told]
                    found[word] = next(iter(told.values())) if not having else (
                        f"{slot} is swept, and there is no such setting in {', '.join(told)}. Fix: give what has it, "
                        f"{slot}={','.join(having)}")
    except HydraException:
        return []
    return list(found.items())


def _swept(hydra: Hydra, words: list[str]) -> dict[str, list[str]]:
    """Return the slots in which several techniques are swept, by these words or by their experiment."""
    base = hydra.compose_config("config", _chosen(words), RunMode.MULTIRUN, with_log_configuration=False)
    return overrides.swept([*(f"{key}={value}" for key, value in _params(base).items()), *words])


def _chosen(words: list[str]) -> list[str]:
    """Leave the words that choose one technique for a slot."""
    slots = overrides.groups()
    return [w for w in words if (o := overrides.parsed(w)) and o.key_or_group in slots and not o.is_sweep_override()]


def _told(error: BaseException) -> str:
    """Take the line of Hydra's message that says what is wrong; its advice to print traces is left out."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and "HYDRA_FULL_ERROR" not in line]
    return " ".join(lines[:6])
