"""Every file of conf/write/extract makes its stage, with settings that its class knows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memlab.config.instantiate import construct
from memlab.stage import Stage
from tests.chats import ScriptedChat

FILES = sorted((Path(__file__).resolve().parents[3] / "conf" / "write" / "extract").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_file_makes_its_stage_with_settings_of_its_class(path: Path) -> None:
    whole = OmegaConf.create({"chat": "CHAT", "this": OmegaConf.load(path)})
    values, faults = OmegaConf.to_container(whole, resolve=True)["this"], list[str]()  # type: ignore[index, call-overload]
    if values.get("chat") == "CHAT":
        values["chat"] = ScriptedChat(str)
    made = construct(values, "write.extract", faults)
    assert not faults
    assert {f.name for f in dataclasses.fields(made)} >= set(values) - {"_target_"}
    assert isinstance(made, Stage)
    assert path.read_text().startswith("# ")
    assert path.stem == "none" or path.stem.removeprefix("llm_").removeprefix("rules_") in (made.into, "chunked")
