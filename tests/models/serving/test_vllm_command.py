"""The command line of vLLM, and what is refused before a model loads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memlab.commands.serve import _parser
from memlab.models.serving import vllm_command
from memlab.models.serving.environment import Device
from memlab.models.serving.servers import LOOPBACK, Address
from memlab.models.serving.settings import Settings, settings
from memlab.models.serving.vllm_command import CPU_WINDOW, Plan, check_room, for_gpus
from memlab.support.errors import MemlabError

PYTHON = Path("/env/bin/python")
CARD24, GIB80, H200, L4 = 24_564, 81_920, 143_771, 23_034  # MiB
FP8 = "fp8_per_tensor"


def plan(given: Settings, device: Device = "gpu", extra: tuple[str, ...] = (), host: str = LOOPBACK) -> Plan:
    return Plan("m", given, ("m", "long/m"), PYTHON, device, (), 4, extra, Address(host))


def option(line: list[str], name: str) -> str | None:
    return line[line.index(name) + 1] if name in line else None


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Make the plan of a command line, for cards of so many MiB."""
    monkeypatch.setattr(vllm_command.environment, "interpreter", lambda env: PYTHON)

    def make_plan(gpus: list[int], *words: str, extra: tuple[str, ...] = ()) -> Plan:
        monkeypatch.setattr(vllm_command.environment, "gpus", lambda: gpus)
        return vllm_command.make_plan(_parser().parse_args(words), tmp_path, extra, print)

    return make_plan


def test_a_large_model_on_gpus() -> None:
    chosen = for_gpus(replace(settings("llama-3.3-70b"), revision="abc"), [GIB80] * 8)  # two copies on four each
    line = plan(chosen, host="10.0.0.3").line(9)
    assert line[:5] == ["/env/bin/python", "-m", "vllm.entrypoints.launchers.api_server.entry", "--model",
                        "meta-llama/Llama-3.3-70B-Instruct"]
    expected = {"--tensor-parallel-size": "4", "--data-parallel-size": "2", "--max-model-len": "131072",
                "--dtype": "auto", "--revision": "abc", "--gpu-memory-utilization": "0.9", "--host": "10.0.0.3",
                "--port": "9", "--runner": "generate", "--quantization": None}
    assert {name: option(line, name) for name in expected} == expected
    assert "--enforce-eager" not in line
    at = line.index("--served-model-name")
    assert line[at + 1:at + 3] == ["m", "long/m"]
    assert for_gpus(settings("llama-3.3-70b"), []).data_parallel == 1
    assert option(plan(settings("llama-3.3-70b")).line(9), "--data-parallel-size") is None


def test_on_a_cpu(make: Any, tmp_path: Path) -> None:
    line = make([], "qwen2.5-7b", extra=("--seed", "3")).line(9)
    assert (option(line, "--dtype"), option(line, "--max-model-len")) == ("float32", str(CPU_WINDOW))
    assert "--enforce-eager" in line
    assert not {"--gpu-memory-utilization", "--tensor-parallel-size"} & {*line}
    assert line[-2:] == ["--seed", "3"]
    assert option(plan(Settings(model="a/b"), "cpu").line(9), "--max-model-len") == "auto"
    assert "--max-model-len" not in plan(Settings(model="a/b", runner="pooling"), "cpu").line(9)
    variables = plan(Settings(model=str(tmp_path), kv_cache=3), "cpu").variables()
    assert variables.items() >= {"OMP_NUM_THREADS": "4", "VLLM_CPU_KVCACHE_SPACE": "3", "HF_HUB_OFFLINE": "1"}.items()
    assert not {"OMP_NUM_THREADS", "HF_HUB_OFFLINE"} & {*plan(Settings(model="a/b")).variables()}
    assert vllm_command.outer_variables({"PYTHONPATH": "x", "HF_TOKEN": "y"}) == {"HF_TOKEN": "y"}
    with pytest.raises(MemlabError, match="quantization fp8_per_tensor needs a GPU"):
        make([], "qwen2.5-7b", "--device", "cpu", "--quantization", FP8)


def test_options_of_a_model_come_before_the_users() -> None:
    line = plan(settings("gemma-3-12b"), extra=("--limit-mm-per-prompt", "{}")).line(9)
    assert line[-4:] == ["--limit-mm-per-prompt", json.dumps({"image": 0}), "--limit-mm-per-prompt", "{}"]


def test_the_device() -> None:
    assert vllm_command.choose_device("auto", "gpu", [GIB80]) == "gpu"
    assert vllm_command.choose_device("cpu", None, [GIB80]) == "cpu"
    one = [GIB80]
    for asked, build, gpus in (("gpu", "cpu", one), ("auto", "gpu", []), ("gpu", None, []), ("cpu", "gpu", one)):
        with pytest.raises(MemlabError, match="--create-env"):
            vllm_command.choose_device(asked, build, gpus)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "fields", "gpus", "message"), [
    ("llama-3.3-70b", {}, [GIB80] * 4, ""), ("llama-3.3-70b", {"data_parallel": 2}, [GIB80] * 8, ""),
    ("llama-3.3-70b", {}, [GIB80], r"share 4 GPUs; this machine shows 1.*--tensor-parallel 1"),
    ("llama-3.3-70b", {"data_parallel": 2}, [GIB80] * 7, "share 8 GPUs; .* shows 7.*--data-parallel auto"),
    ("llama-3.3-70b", {"tensor_parallel": 1}, [GIB80], r"the weights take 141\.\d GB; 1 GPU\(s\) give 77\.\d GB"),
    ("qwen2.5-72b", {"tensor_parallel": 1}, [H200], "weights take 145.*--quantization fp8_per_tensor"),
    ("qwen2.5-72b", {"tensor_parallel": 1, "quantization": FP8}, [H200], ""),
    ("qwen2.5-72b", {"tensor_parallel": 1, "quantization": FP8}, [GIB80], r"weights take 82\.\d GB"),
    ("qwen2.5-72b", {}, [H200], "this machine shows 1.*a smaller model"),
    ("qwen2.5-7b", {"gpu_memory": .5}, [L4], r"take 15\.2 GB; 1 GPU\(s\) give 12\.\d GB.*--gpu-memory SHARE"),
    ("qwen2.5-7b", {"quantization": FP8}, [L4], ""), ("qwen2.5-7b", {}, [L4], "")])
def test_what_does_not_fit_on_the_cards_is_refused_with_a_smaller_form(
        name: str, fields: dict[str, Any], gpus: list[int], message: str) -> None:
    given = replace(settings(name), **fields)
    if message:
        with pytest.raises(MemlabError, match=message):
            check_room(given, gpus)
    else:
        check_room(given, gpus)


def test_the_only_card_is_left_in_part_to_the_models_of_a_run(make: Any) -> None:
    alone = make([CARD24], "qwen2.5-14b-awq")
    assert option(alone.line(9), "--gpu-memory-utilization") == "0.76"
    given = make([CARD24], "qwen2.5-7b", "--gpu-memory", "0.8", "--max-len", "8192", "--quantization", FP8)
    line = given.line(9)
    assert [option(line, f"--{name}") for name in ("gpu-memory-utilization", "max-model-len", "quantization")] == [
        "0.8", "8192", FP8]
    assert given.settings.loaded_gb() == pytest.approx(.57 * 15.2)
