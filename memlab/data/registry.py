"""The datasets by name: each is a file of ``conf/data``, made without Hydra for the small commands."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from memlab.data.dataset import Dataset
from memlab.errors import MemlabError, did_you_mean

CONF = Path(__file__).resolve().parents[2] / "conf" / "data"


def names() -> list[str]:
    """Return the names of all datasets."""
    return sorted(file.stem for file in CONF.glob("*.yaml"))


def make(name: str, **fields: Any) -> Dataset:
    """Build a dataset from its file in ``conf/data``, some fields replaced; raises MemlabError if it is unknown."""
    from omegaconf import OmegaConf

    if name not in names():
        raise MemlabError(f"there is no dataset '{name}'", fix=did_you_mean(name, names()))
    settings = OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"))
    assert isinstance(settings, dict)
    options = {str(option): value for option, value in settings.items()}
    module, _, cls = str(options.pop("_target_")).rpartition(".")
    if not module.startswith("memlab."):
        raise MemlabError(f"_target_ lies outside memlab: {module}", where=f"conf/data/{name}.yaml")
    unknown = [field for field in fields if field not in options]
    if unknown:
        raise MemlabError(f"dataset '{name}' has no option '{unknown[0]}'", fix=did_you_mean(unknown[0], options))
    dataset: Dataset = getattr(import_module(module), cls)(**{**options, **fields})
    return dataset
