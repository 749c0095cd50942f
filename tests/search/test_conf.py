"""Every file of conf/search makes its stage, and states every field with the default that the class has."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from memlab.stage import Stage

CONF = Path(__file__).resolve().parents[2] / "conf" / "search"
FILES = sorted(CONF.glob("*/*.yaml"))


def fields(thing: object) -> dict:
    return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)}  # type: ignore[arg-type]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_config_is_the_constructor_one_to_one(file: Path) -> None:
    embedder = {"_target_": "memlab.models.embedder.SentenceEmbedder"}
    config = OmegaConf.create({"embedder": embedder, "slot": OmegaConf.load(file)})
    made = instantiate(config, _convert_="all")["slot"]
    assert isinstance(made, Stage)
    stated = {k for k in config["slot"] if k != "_target_"}
    assert stated == set(fields(made))
    plain = type(made)(**{k: v for k, v in fields(made).items() if dataclasses.is_dataclass(v)})
    assert plain == made
    if "index" in stated:
        assert type(made.index)() == made.index
        assert {k for k in config["slot"]["index"] if k != "_target_"} == set(fields(made.index))
