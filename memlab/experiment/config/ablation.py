"""Ablation: a preset without one of its parts, or the plain baseline with one part of the preset.

``ablate=whole-rerank`` is the chosen system with the reranker of ``system=plain``; ``ablate=plain+rerank`` is the plain
baseline with the system's reranker; ``whole`` and ``plain`` are their comparators. A part is one or more slots with all
their settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from omegaconf import DictConfig, OmegaConf, open_dict

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


@dataclass(frozen=True)
class Ablation:
    """What ``ablate`` asks for: ``whole-rerank`` is the side whole and the part rerank; "" is no part."""

    side: str
    part: str

    def apply(self, config: DictConfig, plain: DictConfig) -> DictConfig:
        """Return the configuration of a system, or the plain baseline, with the part of the other."""
        target, source = (plain, config) if self.side == PLAIN else (config, plain)
        ablated: DictConfig = OmegaConf.masked_copy(config, list(config))
        with open_dict(ablated):
            for places in PARTS.values():
                for place in places:
                    OmegaConf.update(ablated, place, OmegaConf.select(target, place), merge=False)
            for place in PARTS[self.part] if self.part else ():
                OmegaConf.update(ablated, place, OmegaConf.select(source, place), merge=False)
        return ablated


def ablation_of(config: DictConfig) -> Ablation | None:
    """Return what the ``ablate`` of a configuration asks for; None if it is null.

    Raises Faults for any other value, and without a system.

    >>> ablation_of(OmegaConf.create({"ablate": "whole", "hydra": {"runtime": {"choices": {"system": "best"}}}}))
    Ablation(side='whole', part='')
    """
    if config.ablate is None:
        return None
    argument = str(config.ablate)
    match = _FORM.fullmatch(argument)
    side, sign, part = match.groups(default="") if match else ("", "", "")
    if not side or (sign and sign != {"whole": "-", PLAIN: "+"}[side]):
        raise Faults([f"ablate={argument}: expected whole, plain, whole-PART or plain+PART"])
    if part and part not in PARTS:
        raise Faults([f"ablate={argument}: there is no part '{part}'; {did_you_mean(part, PARTS)}"])
    if not OmegaConf.select(config, "hydra.runtime.choices.system"):
        raise Faults([f"ablate={argument}: no system is chosen; write system=NAME beside it"])
    return Ablation(side, part)
