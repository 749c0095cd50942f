"""Which arms a command line means: the sweep composed, named and constructed before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hydra import initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from memlab import overrides
from memlab.arm import Arm
from memlab.config import CONF, build
from memlab.errors import Faults, MemlabError
from memlab.evaluate.contrast import Contrast

QUIET = ("data", "out", "store", "plan", "track", "name", "contrasts", "swept", "seed", "exp", "hydra", "embedder.device")
"""Overrides that say where and on what, not how: they do not enter the name of a single arm."""


@dataclass(frozen=True)
class Sweep:
    """All that one command line asks for."""

    arms: list[Arm]
    contrasts: list[Contrast]
    swept: list[str]
    multirun: bool
    settings: DictConfig


@contextmanager
def _hydra() -> Iterator[GlobalHydra]:
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(CONF), version_base="1.3"):
        yield GlobalHydra.instance()
    GlobalHydra.instance().clear()


def read(words: list[str], multirun: bool = False) -> Sweep:
    """Compose every arm of a command line and construct its objects; raise Faults with all that is wrong."""
    wrong = overrides.faults(words)
    if wrong:
        raise Faults(wrong)
    with _hydra() as state:
        hydra = state.hydra
        assert hydra is not None
        try:
            base = hydra.compose_config("config", words, RunMode.MULTIRUN, with_log_configuration=False)
            multirun = multirun or base.hydra.mode == RunMode.MULTIRUN
            params = [f"{k}={v}" for k, v in (base.hydra.sweeper.params or {}).items()] if multirun else []
            given = list(base.hydra.overrides.task)
            parsed = OverridesParser.create(config_loader=hydra.config_loader).parse_overrides([*params, *given])
            several = {o.get_key_element().lstrip("+") for o in parsed if o.is_sweep_override()}
            swept = several | {p.split("=")[0].lstrip("+") for p in params}
            if several and not multirun:
                raise MemlabError(f"{', '.join(sorted(several))} has several values", fix="add -m to run one arm each")
            batches = BasicSweeper.split_arguments(parsed, None)[0] if multirun else [given]
            cfgs = [hydra.config_loader.load_sweep_config(base, list(job)) for job in batches]
        except HydraException as error:
            raise Faults([_told(error)]) from error
        arms: list[Arm] = []
        for cfg in cfgs:
            if multirun:
                OmegaConf.update(cfg, "swept", sorted(swept), force_add=True)
            try:
                arms.append(arm_of(cfg))
            except Faults as error:
                wrong += [f"{f}" for f in error.faults if f not in wrong]
    try:
        contrasts = [Contrast(**dict(c)) for c in OmegaConf.to_container(base.contrasts) or ()]
    except (TypeError, ValueError) as error:
        wrong.append(f"contrasts: {str(error).splitlines()[0]}; expected arm, comparator, metric, direction")
        contrasts = []
    twins = {a.digest() for a in arms}
    if not wrong and len(twins) < len(arms):
        names = ", ".join(a.name for a in arms)
        wrong.append(f"two arms of this sweep are the same configuration (arms: {names})")
    if wrong:
        raise Faults(wrong)
    return Sweep(arms, contrasts, sorted(swept) if multirun else [], multirun, base)


def _told(error: BaseException) -> str:
    """Take the line of Hydra's message that says what is wrong; its advice to print traces is left out."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and "HYDRA_FULL_ERROR" not in line]
    return " ".join(lines[:6])


def arm_of(cfg: DictConfig) -> Arm:
    """Construct the arm that a composed configuration describes; raise Faults with all that is wrong."""
    pipeline, dataset = build(cfg)
    experiment = OmegaConf.select(cfg, "hydra.runtime.choices.exp") or "single"
    plain = OmegaConf.masked_copy(cfg, [k for k in cfg if k not in ("hydra", "plan", "out", "store", "swept")])
    return Arm(name=cfg.name or arm_name(cfg), experiment=str(experiment), pipeline=pipeline, dataset=dataset,
               out=Path(str(cfg.out)), seed=int(cfg.seed), config=OmegaConf.to_yaml(plain, resolve=True))


def arm_name(cfg: DictConfig) -> str:
    """Name an arm by the values that were swept, or, run alone, by what it changes of the defaults."""
    swept = set(OmegaConf.select(cfg, "swept") or [])
    parts: list[str] = []
    for word in cfg.hydra.overrides.task:
        key, _, value = str(word).lstrip("+~").partition("=")
        if key in swept or (not swept and not _quiet(key)):
            parts.append(value.rsplit("/", 1)[-1] if "." not in key else f"{key.rsplit('.', 1)[-1]}={value}")
    return "+".join(parts) or "default"


def _quiet(key: str) -> bool:
    return any(key == q or key.startswith((f"{q}.", f"{q}/")) for q in QUIET)
