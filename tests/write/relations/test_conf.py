"""Every file of conf/write/relate and conf/write/prune makes its stage, with the defaults of its class."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memlab.config.instantiate import construct
from memlab.stage import Stage
from tests.search.world import WordEmbedder

CONF = Path(__file__).resolve().parents[3] / "conf" / "write"
FILES = sorted(path for slot in ("relate", "prune") for path in (CONF / slot).glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_makes_its_stage_with_the_defaults_of_its_class(path: Path) -> None:
    whole = OmegaConf.create({"embedder": "EMBEDDER", "this": OmegaConf.load(path)})
    values, faults = OmegaConf.to_container(whole, resolve=True)["this"], list[str]()
    if "embedder" in values:
        values["embedder"] = WordEmbedder()
    made = construct(values, "write", faults)
    assert not faults
    assert isinstance(made, Stage)
    assert {f.name for f in dataclasses.fields(made)} >= set(values) - {"_target_"}
    alone = {"embedder": values["embedder"]} if "embedder" in values else {}
    if not path.stem.endswith("_corrected"):
        assert made == type(made)(**alone)
    assert path.read_text().startswith("# ")
