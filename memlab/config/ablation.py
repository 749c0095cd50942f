"""Ablation: a preset without one of its parts, or the plain baseline with one part of the preset put in.

``ablate=whole-rerank`` is the chosen system with the reranker of ``system=plain``; ``ablate=plain+rerank`` the plain
baseline with the system's; ``whole`` and ``plain`` are what they are compared with. Parts are slots, taken over with
all their settings.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict

from memlab.config.compose import compose_arm, error_message
from memlab.errors import Faults, did_you_mean
from memlab.pipeline import SLOTS


def _parts() -> dict[str, tuple[str, ...]]:
    parts: dict[str, tuple[str, ...]] = {}
    for slot in SLOTS:
        if slot.part:
            parts[slot.part] = (*parts.get(slot.part, ()), slot.config)
    search = parts["lanes"] + parts["score"]
    return {**parts, "search": search, "find": parts["chunk"] + search, "prompt": ("read.prompt",)}


PARTS = _parts()
"""Part -> where its configuration lies. A roll-up comes with what is measured and shown of what it ranks."""

PLAIN = "plain"
SWAPPED = ("whole-", "plain+")
"""How the names of arms begin that differ by one part."""
_FORM = re.compile(r"(whole|plain)(?:([-+])(\w+))?")


def applied(cfg: DictConfig) -> DictConfig:
    """Return the configuration that ``cfg.ablate`` describes; the configuration itself where it is null.

    Raises Faults for a word that is none of the above, without a system, or where the baseline cannot be composed.
    """
    if cfg.ablate is None:
        return cfg
    word = str(cfg.ablate)
    side, sign, part = _read(word)
    if not _system(cfg):
        raise Faults([f"ablate={word}: no system is chosen; write system=NAME beside it"])
    if word == "whole":
        return cfg
    words = tuple(str(o) for o in cfg.hydra.overrides.task)
    plain = _plain(tuple(w for w in words if w.lstrip("+").partition("=")[0] not in ("ablate", "system")))
    into, source = (cfg, plain) if side == "whole" else (plain, cfg)
    made: DictConfig = OmegaConf.masked_copy(cfg, list(cfg))
    with open_dict(made):
        for places in PARTS.values():
            for place in places:
                OmegaConf.update(made, place, OmegaConf.select(into, place), merge=False)
        for place in PARTS[part] if sign else ():
            OmegaConf.update(made, place, OmegaConf.select(source, place), merge=False)
    return made


def swaps(cfg: DictConfig) -> bool:
    """Tell whether a configuration takes a part out or puts one in, so that it may be impossible.

    >>> swaps(OmegaConf.create({"ablate": "whole"}))
    False
    """
    try:
        return bool(_read(str(cfg.ablate))[1] and _system(cfg))
    except Faults:
        return False


def _system(cfg: DictConfig) -> str | None:
    chosen: str | None = OmegaConf.select(cfg, "hydra.runtime.choices.system")
    return chosen


def _read(word: str) -> tuple[str, str, str]:
    found = _FORM.fullmatch(word)
    if found is None or (found[2] and found[2] != {"whole": "-", PLAIN: "+"}[found[1]]):
        raise Faults([f"ablate={word}: expected whole, plain, whole-PART or plain+PART"])
    if found[3] and found[3] not in PARTS:
        raise Faults([f"ablate={word}: there is no part '{found[3]}'; {did_you_mean(found[3], PARTS)}"])
    return found[1], found[2] or "", found[3] or ""


@lru_cache(maxsize=8)
def _plain(words: tuple[str, ...]) -> DictConfig:
    """Compose the words of a command line with ``system=plain``, once for all ablations."""
    try:
        plain, faults = compose_arm([*words, f"system={PLAIN}"])
    except HydraException as error:
        plain, faults = DictConfig({}), {"": error_message(error)}
    for fault in faults.values():
        raise Faults([f"ablate: the plain baseline cannot be composed with these words: {fault}"])
    return plain
