"""Construction of a pipeline and a data set from a composed configuration."""

from __future__ import annotations

from omegaconf import DictConfig
from pydantic import ValidationError

from memlab.config.instantiate import part
from memlab.data.dataset import Dataset
from memlab.errors import Faults
from memlab.pipeline import Pipeline
from memlab.slots import SLOTS

PLACES = {**{slot.name: slot.config for slot in SLOTS}, "tokens": "read.tokens"}
"""Pipeline field -> place of its configuration."""


def build(cfg: DictConfig) -> tuple[Pipeline, Dataset]:
    """Construct an arm's pipeline and data set; raise Faults with everything that is wrong.

    ``leak_guard: true`` turns the guard of stages on, for as long as the process lives.
    """
    if cfg.get("leak_guard"):
        from memlab.harness import leak_guard

        leak_guard.install()
    faults: list[str] = []
    stages = {slot: part(cfg, place, faults) for slot, place in PLACES.items()}
    dataset = part(cfg, "data", faults)
    if dataset is not None and not isinstance(dataset, Dataset):
        faults.append(f"data: {type(dataset).__name__} is not a data set")
    if not faults:
        try:
            return Pipeline(**stages), dataset
        except ValidationError as error:
            faults.extend(f"{PLACES.get(str((e['loc'] or ('',))[0]), 'pipeline')}: "
                          f"{e['msg'].removeprefix('Value error, ')}" for e in error.errors())
    raise Faults(dict.fromkeys(faults))  # a part that several slots borrow is faulty once
