"""Which arms a command line means: the sweep composed, named and constructed before anything runs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from memlab.config import ablation, overrides
from memlab.config.compose import compose
from memlab.config.instantiate import part
from memlab.errors import Faults, MemlabError
from memlab.evaluate.contrast import Contrast
from memlab.harness.arm import Arm, refusal
from memlab.harness.build import build

QUIET = ("data", "out", "store", "plan", "shards", "track", "name", "contrasts", "swept", "seed", "exp", "hydra",
         "embedder.device", "attribute",
         *(f"{chat}.{field}" for chat in ("chat", "judge_chat")
           for field in ("url", "key_env", "concurrency", "timeout", "patience", "retries")))
"""Overrides that say where and on what, not how: they do not enter the name of a single arm."""

MOST_CONTRASTS = 3
"""Every further declared contrast costs the others power."""


@dataclass(frozen=True)
class Sweep:
    """All that one command line asks for."""

    arms: list[Arm]
    contrasts: list[Contrast]
    track: Any
    swept: list[str]
    multirun: bool
    settings: DictConfig
    left_out: dict[str, str]
    launcher: Any = None
    """One of memlab.cluster; None for this process."""


def read(words: list[str], multirun: bool = False) -> Sweep:
    """Compose every arm of a command line and construct its objects; raise Faults with all that is wrong."""
    bad = overrides.faults(words)
    found = compose(words, multirun, bad)
    wrong = [f"{word}: {fault}" if word else fault for word, fault in bad]
    if found is None:
        raise Faults(wrong)
    arms: list[Arm] = []
    left_out: dict[str, str] = {}
    for cfg in found.arms:
        try:
            arms.append(arm_of(cfg))
        except Faults as error:
            if ablation.swaps(cfg):  # a part that cannot stand where the others are
                left_out[str(cfg.ablate)] = error.faults[0]
            else:
                wrong += [fault for fault in error.faults if fault not in wrong]
    track = part(found.base, "track", wrong)
    contrasts = _contrasts(found.base, wrong)
    launcher = None
    if str(found.base.hydra.launcher._target_).startswith("memlab."):
        launcher = part(found.base, "hydra.launcher", wrong)
    if type(found.base.shards) is int and found.base.shards < 1:
        wrong.append(f"shards: {found.base.shards} parts; 1 is the whole, 8 are eight jobs")
    if type(found.base.shards) is int and found.base.shards > 1:
        wrong += dict.fromkeys(f"shards: {why}" for arm in arms if (why := refusal(arm.pipeline)))
    if not wrong:
        arms = _moving(arms, left_out)
        _tell_apart(arms, wrong)
    if wrong:
        raise Faults(wrong)
    return Sweep(arms, contrasts, track, found.swept, found.multirun, found.base, left_out, launcher)


def _contrasts(base: DictConfig, wrong: list[str]) -> list[Contrast]:
    made: list[Contrast] = []
    listed: Any = OmegaConf.to_container(base.contrasts) or []
    for i, given in enumerate(listed):
        try:
            made.append(Contrast(**given))
        except MemlabError as error:
            wrong.append(f"contrasts[{i}]: {error}")
        except TypeError:
            wrong.append(f"contrasts[{i}]: expected arm, comparator, metric and direction, given {given}")
    if len(made) > MOST_CONTRASTS:
        wrong.append(f"contrasts: {len(made)} are declared, at most {MOST_CONTRASTS} may be; what else is compared is "
                     "shown as exploratory")
    return made


def _moving(arms: list[Arm], left_out: dict[str, str]) -> list[Arm]:
    """Leave out the ablations that change no setting: the system does not have that part, or has the plain one."""
    bases = {arm.digest(): arm.name for arm in reversed(arms) if arm.name in ("whole", ablation.PLAIN)}
    for arm in arms:
        if arm.name.startswith(ablation.SWAPPED) and arm.digest() in bases:
            left_out[arm.name] = f"the same settings as {bases[arm.digest()]}"
    return [arm for arm in arms if arm.name not in left_out]


def _tell_apart(arms: list[Arm], wrong: list[str]) -> None:
    """Refuse arms of one name, or of one configuration: a report could not tell them apart."""
    try:
        digests = Counter(arm.digest() for arm in arms)
    except MemlabError as error:  # a file that is there but cannot be read
        wrong.append(str(error))
        return
    names = Counter((arm.arms_folder(), arm.name) for arm in arms)
    wrong += [f"{n} arms of this sweep are named '{name}'; leave name out" for (_, name), n in names.items() if n > 1]
    # two ablations of a system of two parts are one configuration with two comparators
    same = [arm.name for arm in arms if digests[arm.digest()] > 1 and not arm.name.startswith(ablation.SWAPPED)]
    if same:
        wrong.append(f"arms of this sweep are the same configuration: {', '.join(same)}")


def arm_of(cfg: DictConfig) -> Arm:
    """Construct the arm that a composed configuration describes; raise Faults with all that is wrong."""
    wrong = [f"{key}: {cfg[key]!r} is not {what}" for key, kinds, what in SETTINGS
             if type(cfg[key]) not in kinds]
    cfg = ablation.applied(cfg)
    try:
        pipeline, dataset = build(cfg)
    except Faults as error:
        raise Faults([*wrong, *error.faults]) from None
    if wrong:
        raise Faults(wrong)
    experiment = OmegaConf.select(cfg, "hydra.runtime.choices.exp") or "single"
    beside = ("hydra", "plan", "out", "store", "swept", "shards")
    plain = OmegaConf.masked_copy(cfg, [str(k) for k in cfg if k not in beside])
    return Arm(name=str(cfg.name or arm_name(cfg)), experiment=str(experiment), pipeline=pipeline, dataset=dataset,
               out=Path(cfg.out), seed=cfg.seed, config=OmegaConf.to_yaml(plain, resolve=True))


SETTINGS = (("seed", (int,), "a whole number"), ("plan", (bool,), "true or false"), ("out", (str,), "a folder"),
            ("store", (str, type(None)), "a folder"), ("shards", (int,), "a whole number"))
"""Settings of the run itself, with their types."""


def arm_name(cfg: DictConfig) -> str:
    """Name an arm by the values that were swept, or, run alone, by what it changes of the defaults."""
    swept = set(OmegaConf.select(cfg, "swept") or [])
    parts: list[str] = []
    for word in cfg.hydra.overrides.task:
        key, _, value = str(word).lstrip("+~").partition("=")
        if key in swept or (not swept and not _quiet(key)):
            nameless = not swept and value == "none"  # of which slot, only the key can tell
            last = re.split(r"[./]", key)[-1]
            parts.append(f"{last}={value}" if "." in key or nameless else value.rsplit("/", 1)[-1])
    return "+".join(parts) or "default"


def _quiet(key: str) -> bool:
    return any(key == q or key.startswith((f"{q}.", f"{q}/")) for q in QUIET)
