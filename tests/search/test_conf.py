"""Every file of conf/search makes its stage, with settings that its class knows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from memlab.stage import Stage

CONF = Path(__file__).resolve().parents[2] / "conf" / "search"
FILES = sorted(CONF.glob("*/*.yaml"))


def fields(thing: object) -> dict:
    return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)}  # type: ignore[arg-type]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_a_file_makes_its_stage_with_settings_of_its_class(file: Path) -> None:
    with initialize_config_dir(str(CONF.parent), version_base="1.3"):
        config = compose(config_name=f"search/{file.parent.name}/{file.stem}",
                         overrides=["+embedder._target_=memlab.models.local.embedder.SentenceEmbedder",
                                    "+chat._target_=memlab.models.chat.openai.OpenAIChat", "+chat.model=some",
                                    *([] if file.parent.name != "iterate" else
                                      ["+search.lexical._target_=memlab.search.bm25.BM25",
                                       "+search.dense._target_=memlab.search.bm25.BM25Okapi"])])
    slot = config.search[file.parent.name]
    made = instantiate(config, _convert_="all")["search"][file.parent.name]
    assert isinstance(made, Stage)
    stated = {k for k in slot if k != "_target_"}
    assert stated <= set(fields(made))
    if "index" in stated:
        assert {k for k in slot["index"] if k != "_target_"} <= set(fields(made.index))
