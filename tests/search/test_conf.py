"""Every file of conf/search makes its stage and states every field, with the default that the class has.

A file that builds on another states only what differs from it.
"""

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
def test_config_is_the_constructor_one_to_one(file: Path) -> None:
    with initialize_config_dir(str(CONF.parent), version_base="1.3"):
        config = compose(config_name=f"search/{file.parent.name}/{file.stem}",
                         overrides=["+embedder._target_=memlab.models.local.embedder.SentenceEmbedder"])
    slot = config.search[file.parent.name]
    made = instantiate(config, _convert_="all")["search"][file.parent.name]
    assert isinstance(made, Stage)
    stated = {k for k in slot if k != "_target_"}
    assert stated == set(fields(made))
    if file.stem == "none" or file.read_text().startswith("defaults:") or "\ndefaults:" in file.read_text():
        return
    plain = type(made)(**{k: v for k, v in fields(made).items() if dataclasses.is_dataclass(v)})
    assert plain == made
    if "index" in stated:
        assert type(made.index)() == made.index
        assert {k for k in slot["index"] if k != "_target_"} == set(fields(made.index))
