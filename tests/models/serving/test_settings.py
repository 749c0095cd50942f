from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memlab.models.serving.settings import Settings, served_names, settings
from memlab.models.serving.vllm_command import check_room
from memlab.support.errors import MemlabError
from tests.models.serving.fakes import model_folder


def test_every_file_of_settings_is_read_and_says_where_the_model_is() -> None:
    assert {"embedded", "minilm", "qwen2.5-0.5b", "qwen2.5-7b", "qwen2.5-72b", "llama-3.1-8b", "llama-3.3-70b",
            "gpt-oss-20b", "gpt-oss-120b", "gemma-3-12b", "gemma-3-27b"} <= set(served_names())
    for name in served_names():
        found = settings(name)
        assert found.weights_gb, name
        assert "/" in found.model or name in {"embedded", "minilm"}, name
        cards = [143_771 if name.endswith(("-int8", "-fp8")) else 81_559] * found.tensor_parallel  # MiB: H200, H100
        check_room(replace(found, data_parallel=1), cards)


def test_a_folder_and_a_hub_name_have_the_defaults(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    assert settings(str(folder)) == Settings(model=str(folder))
    assert settings("someone/a-model") == Settings(model="someone/a-model")
    assert settings("smollm2-135m-instruct") == settings("embedded")
    assert settings("Qwen/Qwen2.5-72B-Instruct") == settings("qwen2.5-72b")


@pytest.mark.parametrize("name", ["./absent", "/no/such/folder", "a/b/c", "../x"])
def test_a_path_is_not_taken_for_a_hub_name(name: str) -> None:
    with pytest.raises(MemlabError, match="no such model folder"):
        settings(name)


@pytest.mark.parametrize(("gpus", "share"), [
    ([24_564], .76),              # 25.76 GB: 6 of them are 0.233
    ([81_559], .9), ([143_771], .9),
    ([12_288], .53), ([8_192], .5),  # half at least
    ([24_564] * 2, .9),           # the run has the other card
    ([81_559, 24_564], .9), ([], .9)])
def test_a_server_leaves_room_for_a_run_where_it_takes_every_card(gpus: list[int], share: float) -> None:
    assert settings("qwen2.5-7b").share(gpus) == share
    assert replace(settings("qwen2.5-7b"), gpu_memory=.3).share(gpus) == .3
    assert len(gpus) != 2 or replace(settings("qwen2.5-7b"), data_parallel=2).share([24_564] * 2) == .76
