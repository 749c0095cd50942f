"""Every technique of search makes its stage, with settings that its class knows."""

from __future__ import annotations

import dataclasses

import pytest
from hydra.utils import instantiate

from memlab.pipeline.stage import Stage
from tests.choices import choices_of, composed


def fields(thing: object) -> dict:
    return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)}  # type: ignore[arg-type]


@pytest.mark.parametrize("name", choices_of("search"))
def test_a_choice_makes_its_stage_with_settings_of_its_class(name: str) -> None:
    lane = name.split("/")[1]
    config = composed(name, "+embedder._target_=memlab.models.local.embedder.SentenceEmbedder",
                      "+chat._target_=memlab.models.chat.openai.OpenAIChat", "+chat.model=some",
                      *([] if lane != "iterate" else ["+search.lexical._target_=memlab.stages.search.bm25.BM25",
                                                      "+search.dense._target_=memlab.stages.search.bm25.BM25Okapi"]))
    slot = config.search[lane]
    made = instantiate(config, _convert_="all")["search"][lane]
    assert isinstance(made, Stage)
    stated = {k for k in slot if k != "_target_"}
    assert stated <= set(fields(made))
    if "index" in stated:
        assert {k for k in slot["index"] if k != "_target_"} <= set(fields(made.index))
