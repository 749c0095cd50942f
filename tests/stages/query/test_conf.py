"""Every technique of query and write/context makes its stage, with settings that its class knows."""

from __future__ import annotations

import dataclasses

import pytest
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

from memlab.experiment.config.instantiate import choice_settings
from memlab.pipeline.stage import Stage, declaration, spec
from memlab.pipeline.tables import GOLD
from tests.choices import choices_of

EMBEDDER = {"_target_": "memlab.models.http.HttpEmbedder", "url": "http://127.0.0.1:1/v1", "model": "some",
            "dimensions": 8}
CHAT = {"_target_": "memlab.models.chat.openai.OpenAIChat", "model": "some"}


@pytest.mark.parametrize("name", choices_of("query", "write/context"))
def test_a_choice_makes_its_stage_with_settings_of_its_class(name: str) -> None:
    config = OmegaConf.create({"chat": CHAT, "embedder": EMBEDDER, "seed": 0, "learn": {"folds": 5, "by": "auto"},
                               "slot": choice_settings(name)})
    if name == "query/where/filter":
        config["slot"]["only"] = {"role": "user"}
    given = {k for k in config["slot"] if k != "_target_"}
    assert given <= {f.name for f in dataclasses.fields(get_class(config["slot"]["_target_"]))}
    made = instantiate(config, _convert_="all")["slot"]
    assert isinstance(made, Stage)
    assert not GOLD & {*made.reads, *made.writes} or "gold" in declaration(made).sees
    assert "ids" not in made.reads
    assert spec(made)
