"""Every technique of write/extract makes its stage, with settings that its class knows."""

from __future__ import annotations

import dataclasses

import pytest
from omegaconf import OmegaConf

from memlab.config.instantiate import choice_settings, construct
from memlab.stage import Stage
from tests.chats import ScriptedChat
from tests.choices import comment, names_of


@pytest.mark.parametrize("name", names_of("write/extract"))
def test_a_choice_makes_its_stage_with_settings_of_its_class(name: str) -> None:
    whole = OmegaConf.create({"chat": "CHAT", "this": choice_settings(f"write/extract/{name}")})
    values, faults = OmegaConf.to_container(whole, resolve=True)["this"], list[str]()  # type: ignore[index, call-overload]
    if values.get("chat") == "CHAT":
        values["chat"] = ScriptedChat(str)
    made = construct(values, "write.extract", faults)
    assert not faults
    assert {f.name for f in dataclasses.fields(made)} >= set(values) - {"_target_"}
    assert isinstance(made, Stage)
    assert comment(f"write/extract/{name}")
    assert name.removeprefix("llm_").removeprefix("rules_") in (made.into, "chunked")
