from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from memlab.errors import MemlabError
from memlab.servers import LOOPBACK, Address
from memlab.serving import vllm_command
from memlab.serving.environment import Device
from memlab.serving.settings import Settings, settings
from memlab.serving.vllm_command import Plan
from tests.serving.fakes import model_folder

PYTHON = Path("/env/bin/python")
CARD24, GIB80, H200 = 24_564, 81_920, 143_771  # MiB
FP8 = "fp8_per_tensor"


def build(given: Settings, names: list[str], python: Path, port: int, device: Device, extra: Sequence[str] = (),
          host: str = LOOPBACK) -> list[str]:
    return Plan("m", given, tuple(names), python, device, (), 1, tuple(extra), Address(host)).line(port)


def variables(given: Settings, device: Device, threads: int) -> dict[str, str]:
    return Plan("m", given, ("m",), PYTHON, device, (), threads).variables()


def option(line: list[str], name: str) -> str | None:
    return line[line.index(name) + 1] if name in line else None


def test_a_large_model_on_gpus() -> None:
    line = build(replace(settings("llama-3.3-70b"), revision="abc"), ["llama-3.3-70b", "m/L"], PYTHON, 9, "gpu")
    assert line[:5] == ["/env/bin/python", "-m", "vllm.entrypoints.launchers.api_server.entry", "--model",
                        "meta-llama/Llama-3.3-70B-Instruct"]
    said = {name: option(line, name) for name in ("--tensor-parallel-size", "--max-model-len", "--dtype", "--revision",
                                                  "--gpu-memory-utilization", "--host", "--port", "--runner")}
    assert said == {"--tensor-parallel-size": "4", "--max-model-len": "131072", "--dtype": "auto", "--revision": "abc",
                    "--gpu-memory-utilization": "0.9", "--host": "127.0.0.1", "--port": "9", "--runner": "generate"}
    assert "--enforce-eager" not in line
    at = line.index("--served-model-name")
    assert line[at + 1:at + 3] == ["llama-3.3-70b", "m/L"]


def test_on_a_cpu() -> None:
    given = vllm_command.for_cpu(settings("qwen2.5-7b"))
    line = build(given, ["q"], PYTHON, 9, "cpu", ["--seed", "3"])
    assert option(line, "--dtype") == "float32"
    assert option(line, "--max-model-len") == str(vllm_command.CPU_WINDOW)
    assert "--enforce-eager" in line
    assert "--gpu-memory-utilization" not in line
    assert "--tensor-parallel-size" not in line
    assert line[-2:] == ["--seed", "3"]
    assert option(build(Settings(model="a/b"), ["b"], PYTHON, 9, "cpu"), "--max-model-len") == "auto"
    encoder = build(Settings(model="a/b", runner="pooling"), ["b"], PYTHON, 9, "cpu")
    assert "--max-model-len" not in encoder
    assert vllm_command.for_cpu(Settings(model="a/b", max_len=100)).max_len == 100


def test_options_of_a_model_come_before_the_users(tmp_path: Path) -> None:
    line = build(settings("gemma-3-12b"), ["g"], PYTHON, 9, "gpu", ["--limit-mm-per-prompt", "{}"])
    assert line[-4:] == ["--limit-mm-per-prompt", '{"image": 0}', "--limit-mm-per-prompt", "{}"]


def test_variables(tmp_path: Path) -> None:
    gpu = variables(Settings(model="a/b"), "gpu", 4)
    assert "OMP_NUM_THREADS" not in gpu
    assert "HF_HUB_OFFLINE" not in gpu
    cpu = variables(Settings(model=str(tmp_path), kv_cache=3), "cpu", 4)
    assert (cpu["OMP_NUM_THREADS"], cpu["VLLM_CPU_KVCACHE_SPACE"], cpu["HF_HUB_OFFLINE"]) == ("4", "3", "1")
    assert vllm_command.outer_variables({"PYTHONPATH": "x", "HF_TOKEN": "y"}) == {"HF_TOKEN": "y"}


def test_the_device() -> None:
    assert vllm_command.choose_device("auto", "gpu", [GIB80]) == "gpu"
    assert vllm_command.choose_device("cpu", None, [GIB80]) == "cpu"
    one = [GIB80]
    for asked, build, gpus in (("gpu", "cpu", one), ("auto", "gpu", []), ("gpu", None, []), ("cpu", "gpu", one)):
        with pytest.raises(MemlabError, match="--create-env"):
            vllm_command.choose_device(asked, build, gpus)  # type: ignore[arg-type]


def test_what_cannot_fit_is_told_before_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = settings("llama-3.3-70b")
    vllm_command.check_room(large, "gpu", [GIB80] * 4)
    with pytest.raises(MemlabError, match=r"share 4 GPUs; this machine shows 1.*--tensor-parallel 1"):
        vllm_command.check_room(large, "gpu", [GIB80])
    with pytest.raises(MemlabError, match=r"the weights take 141 GB; 1 GPU\(s\) give 77 GB"):
        vllm_command.check_room(replace(large, tensor_parallel=1), "gpu", [GIB80])

    folder = str(model_folder(tmp_path / "m", size=3_000_000_000))  # a hole, not bytes
    free = psutil.virtual_memory()
    needed = 6.0 + 1.07 + 1.5  # bf16 weights doubled, the cache, the server
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free._replace(available=int((needed + 0.1) * 1e9)))
    vllm_command.check_room(Settings(model=folder, kv_cache=1), "cpu", [])
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free._replace(available=int((needed - 0.1) * 1e9)))
    with pytest.raises(MemlabError, match=r"needs 8\.6 GB of memory \(6\.0 GB of weights in float32\), 8\.5 GB are"):
        vllm_command.check_room(Settings(model=folder, kv_cache=1), "cpu", [])
    vllm_command.check_room(Settings(model=folder, kv_cache=1, dtype="bfloat16"), "cpu", [])
    vllm_command.check_room(Settings(model="un/known"), "cpu", [])


def test_copies_of_the_weights_fill_the_gpus() -> None:
    chosen = vllm_command.for_gpus(settings("llama-3.3-70b"), [GIB80] * 8)
    line = build(chosen, ["llama-3.3-70b"], PYTHON, 9, "gpu", host="10.0.0.3")
    assert [option(line, name) for name in ("--tensor-parallel-size", "--data-parallel-size", "--host")] == [
        "4", "2", "10.0.0.3"]
    assert option(build(settings("llama-3.3-70b"), ["l"], PYTHON, 9, "gpu"), "--data-parallel-size") is None
    vllm_command.check_room(chosen, "gpu", [GIB80] * 8)
    with pytest.raises(MemlabError, match="share 8 GPUs; this machine shows 7.*--data-parallel auto"):
        vllm_command.check_room(chosen, "gpu", [GIB80] * 7)
    assert vllm_command.for_gpus(settings("llama-3.3-70b"), []).data_parallel == 1


def made(words: list[str], gpus: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    monkeypatch.setattr(vllm_command.environment, "gpus", lambda: gpus)
    monkeypatch.setattr(vllm_command.environment, "interpreter", lambda env: PYTHON)
    return vllm_command.make_plan(arguments(words), tmp_path, [], print)


def test_the_only_card_is_left_in_part_to_the_models_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It took 90 % of a card of 24 GB, and the encoder and the reranker of the run did not fit into the rest."""
    alone = made(["qwen2.5-14b-awq"], [CARD24], monkeypatch, tmp_path)
    assert option(alone.line(9), "--gpu-memory-utilization") == "0.76"
    assert alone.memory() == ("takes 0.76 of 1 card(s), 19.6 GB of each, and leaves 6.2 GB for the models of a run; "
                              "another share: --gpu-memory SHARE")
    beside = made(["qwen2.5-7b"], [CARD24] * 3, monkeypatch, tmp_path)
    assert option(beside.line(9), "--gpu-memory-utilization") == "0.9"
    assert "leaves 2.6 GB; a run on the other cards: CUDA_VISIBLE_DEVICES=1,2;" in beside.memory()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,7")
    assert "CUDA_VISIBLE_DEVICES=5,7;" in beside.memory()
    given = made(["qwen2.5-7b", "--gpu-memory", "0.8"], [CARD24], monkeypatch, tmp_path)
    assert option(given.line(9), "--gpu-memory-utilization") == "0.8"
    assert made(["qwen2.5-7b", "--device", "cpu"], [], monkeypatch, tmp_path).memory() == ""


def test_the_cache_of_a_window_and_vllms_own_memory_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path
                                                                 ) -> None:
    """15.2 GB of weights fit into 0.75 of 24 GB; vLLM would load them and end, since no window's cache fits."""
    small = [round(22.5 * 1024)]  # an L4: 24.2 GB
    whole = made(["qwen2.5-7b"], small, monkeypatch, tmp_path)
    with pytest.raises(MemlabError, match=r"the weights take 15\.2 GB, the attention cache of 32,768 tokens "
                                          r"1\.9 GB, vLLM itself 1\.5 GB; 1 GPU\(s\) give 18\.1 GB.*"
                                          "--quantization fp8_per_tensor"):
        vllm_command.check_room(whole.settings, "gpu", small)
    with pytest.raises(MemlabError, match=r"the weights take 0\.1 GB, vLLM itself 1\.5 GB; 1 GPU\(s\) give 0\.4 GB"):
        vllm_command.check_room(settings("minilm"), "gpu", [4096])
    for words in (["--max-len", "8192"], ["--quantization", FP8], ["--gpu-memory", "0.9"]):
        fitting = made(["qwen2.5-7b", *words], small, monkeypatch, tmp_path)
        vllm_command.check_room(fitting.settings, "gpu", small)


def test_quantised_weights_are_counted_as_they_will_be() -> None:
    """The README's line for one H200 was refused in every form: by bf16's size, also with a quantisation to 8 bits."""
    large = replace(settings("qwen2.5-72b"), tensor_parallel=1)
    with pytest.raises(MemlabError, match=r"weights take 145 GB.*--quantization fp8_per_tensor"):
        vllm_command.check_room(large, "gpu", [H200])
    smaller = replace(large, quantization="fp8_per_tensor")
    vllm_command.check_room(smaller, "gpu", [H200])
    assert option(build(smaller, ["q"], PYTHON, 9, "gpu"), "--quantization") == "fp8_per_tensor"
    with pytest.raises(MemlabError, match=r"weights take 83 GB \(fp8_per_tensor\)"):
        vllm_command.check_room(smaller, "gpu", [GIB80])
    assert "--quantization" not in build(large, ["q"], PYTHON, 9, "gpu")


def test_a_model_that_is_too_large_names_its_smaller_forms() -> None:
    for gpus, form in (([H200], "qwen2.5-72b-int8"), ([GIB80], "qwen2.5-72b-awq")):
        with pytest.raises(MemlabError, match=f"share 4 GPUs; this machine shows 1.*memlab serve {form}"):
            vllm_command.check_room(settings("qwen2.5-72b"), "gpu", gpus)
    with pytest.raises(MemlabError) as error:
        vllm_command.check_room(settings("qwen2.5-72b"), "gpu", [24_564])
    assert "memlab.serve qwen2.5-72b" not in str(error.value)


def arguments(words: list[str]) -> argparse.Namespace:
    from memlab.serve import _parser

    return _parser().parse_args(words)


@pytest.mark.parametrize("words", [["--quantization", FP8], ["--", "--quantization", FP8],
                                   ["--", f"--quantization={FP8}"], ["--", "-q", FP8]])
def test_quantisation_is_known_wherever_it_stands(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vllm_command.environment, "gpus", lambda: [H200])
    monkeypatch.setattr(vllm_command.environment, "interpreter", lambda env: PYTHON)
    at = words.index("--") if "--" in words else len(words)
    own = arguments(["qwen2.5-72b", "--tensor-parallel", "1", *words[:at]])
    made = vllm_command.make_plan(own, tmp_path, words[at + 1:], print)
    assert made.settings.quantization == FP8
    assert made.line(9).count("--quantization") == 1
    vllm_command.check_room(made.settings, made.device, made.gpus)


def test_another_quantisation_of_vllms_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vllm_command.environment, "gpus", lambda: [H200])
    monkeypatch.setattr(vllm_command.environment, "interpreter", lambda env: PYTHON)
    made = vllm_command.make_plan(arguments(["qwen2.5-72b-awq"]), tmp_path, ["--quantization", "awq"], print)
    assert made.settings.quantization is None
    assert made.line(9)[-2:] == ["--quantization", "awq"]


def test_a_cpu_does_not_quantise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vllm_command.environment, "gpus", lambda: [])
    monkeypatch.setattr(vllm_command.environment, "interpreter", lambda env: PYTHON)
    with pytest.raises(MemlabError, match="quantization fp8_per_tensor needs a GPU"):
        vllm_command.make_plan(arguments(["qwen2.5-7b", "--device", "cpu", "--quantization", FP8]), tmp_path, [], print)
