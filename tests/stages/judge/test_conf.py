"""Every judge of the configuration makes its judge, with settings that its class knows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memlab.commands.judge_files import make_judge
from memlab.experiment.config.instantiate import choice_settings, construct
from memlab.pipeline.stage import Stage
from memlab.stages.judge.cases import READS
from memlab.store import Store
from tests.choices import names_of
from tests.stages.judge.script import put
from tests.stages.judge.worlds import one

NAMES = names_of("judge")
CHAT = {"_target_": "memlab.models.chat.openai.OpenAIChat", "model": "tiny", "url": "http://127.0.0.1:1/v1"}


@pytest.fixture(autouse=True)
def script(memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memlab_home, monkeypatch)


def made(name: str) -> tuple[dict, Stage]:
    whole = OmegaConf.create({"judge_chat": CHAT, "judge": choice_settings(f"judge/{name}")})
    node = OmegaConf.to_container(whole, resolve=True)
    faults: list[str] = []
    judge = construct(node["judge"], "judge", faults)  # type: ignore[index, call-overload]
    assert faults == []
    return node["judge"], judge  # type: ignore[index, call-overload, return-value]


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_makes_its_judge_with_settings_of_its_class(name: str) -> None:
    node, judge = made(name)
    assert isinstance(judge, Stage)
    assert tuple(judge.writes) == ("verdicts",)
    assert tuple(judge.reads) == READS
    for part, one_judge in zip(node.get("judges", [node]), getattr(judge, "judges", (judge,)), strict=True):
        fields = {f.name: f for f in dataclasses.fields(one_judge)}
        assert {k for k in part if k != "_target_"} <= set(fields)
        for key, field in fields.items():
            varies = key in ("name", "style", "chat", "writes")
            assert varies or getattr(one_judge, key) == field.default, key


def test_none_asks_nobody(tmp_path: Path) -> None:
    judge = make_judge("none", None, {})
    assert judge.run(one("a", "b").only(judge.reads), Store(tmp_path))["verdicts"].is_empty()
