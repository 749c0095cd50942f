"""Ablation: a preset without one of its parts, or the plain baseline with one part of the preset.

``ablate=whole-rerank`` is the chosen system with the reranker of ``system=plain``; ``ablate=plain+rerank`` is the plain
baseline with the system's reranker; ``whole`` and ``plain`` are their comparators. A part is one or more slots with all
their settings.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict

from memlab.experiment.config.compose import compose_arm, hydra_message, overrides_of
from memlab.pipeline.slots import SLOTS
from memlab.support.errors import Faults, did_you_mean


def _parts() -> dict[str, tuple[str, ...]]:
    parts: dict[str, tuple[str, ...]] = {}
    for slot in SLOTS:
        if slot.part:
            parts[slot.part] = (*parts.get(slot.part, ()), slot.config)
    search = parts["lanes"] + parts["score"]
    return {**parts, "search": search, "find": parts["chunk"] + search, "prompt": ("read.prompt",)}


PARTS = _parts()
"""Part -> the places of its configuration. A roll-up comes with the slots that measure and show the units it ranks."""

PLAIN = "plain"
SWAPPED = ("whole-", "plain+")
"""Prefixes of the names of arms that differ by one part."""
_FORM = re.compile(r"(whole|plain)(?:([-+])(\w+))?")


def ablate(config: DictConfig) -> DictConfig:
    """Return the configuration that ``config.ablate`` describes; the configuration itself if it is null.

    Raises Faults for any other value, without a system, or if the baseline cannot be composed.
    """
    if config.ablate is None:
        return config
    argument = str(config.ablate)
    side, sign, part = _parse(argument)
    if not _system(config):
        raise Faults([f"ablate={argument}: no system is chosen; write system=NAME beside it"])
    if argument == "whole":
        return config
    arguments = overrides_of(config)
    plain = _plain(tuple(w for w in arguments if w.lstrip("+").partition("=")[0] not in ("ablate", "system")))
    target, source = (config, plain) if side == "whole" else (plain, config)
    ablated: DictConfig = OmegaConf.masked_copy(config, list(config))
    with open_dict(ablated):
        for places in PARTS.values():
            for place in places:
                OmegaConf.update(ablated, place, OmegaConf.select(target, place), merge=False)
        for place in PARTS[part] if sign else ():
            OmegaConf.update(ablated, place, OmegaConf.select(source, place), merge=False)
    return ablated


def swaps_part(config: DictConfig) -> bool:
    """Return whether a configuration removes or adds a part; such a pipeline may be invalid.

    >>> swaps_part(OmegaConf.create({"ablate": "whole"}))
    False
    """
    try:
        return bool(_parse(str(config.ablate))[1] and _system(config))
    except Faults:
        return False


def _system(config: DictConfig) -> str | None:
    name: str | None = OmegaConf.select(config, "hydra.runtime.choices.system")
    return name


def _parse(argument: str) -> tuple[str, str, str]:
    """Return side, sign and part: whole-rerank is whole, - and rerank."""
    match = _FORM.fullmatch(argument)
    side, sign, part = match.groups(default="") if match else ("", "", "")
    if not side or (sign and sign != {"whole": "-", PLAIN: "+"}[side]):
        raise Faults([f"ablate={argument}: expected whole, plain, whole-PART or plain+PART"])
    if part and part not in PARTS:
        raise Faults([f"ablate={argument}: there is no part '{part}'; {did_you_mean(part, PARTS)}"])
    return side, sign, part


@lru_cache(maxsize=8)
def _plain(arguments: tuple[str, ...]) -> DictConfig:
    """Compose the arguments of a command line with ``system=plain``, once for all ablations."""
    try:
        plain, faults = compose_arm([*arguments, f"system={PLAIN}"])
    except HydraException as error:
        plain, faults = DictConfig({}), {"": hydra_message(error)}
    for fault in faults.values():
        raise Faults([f"ablate: the plain baseline cannot be composed with these arguments: {fault}"])
    return plain
