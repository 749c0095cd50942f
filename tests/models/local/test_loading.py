"""Models on devices: attention kernels, and where each is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.models.local import loading
from memlab.models.local.backend import resolve
from memlab.models.local.loading import load_on_devices


class Loads:
    """Sentence-transformers' loader, which refuses flash attention for some models as transformers does."""

    def __init__(self, flash: bool) -> None:
        self.flash = flash
        self.asked: list[dict[str, Any]] = []

    def __call__(self, path: str, **options: Any) -> Loads:
        self.asked.append(options)
        if options["model_kwargs"].get("attn_implementation") == "flash_attention_2" and not self.flash:
            raise ValueError("BertModel does not support Flash Attention 2.0 yet.")
        return self

    def eval(self) -> Loads:
        return self

    def modules(self) -> list[Any]:
        return []


@pytest.mark.parametrize(("flash", "installed", "device", "dtype", "expected"), [
    (True, True, "cuda:0", "bf16", ["flash_attention_2"]), (False, True, "cuda:0", "fp16", ["flash_attention_2", None]),
    (True, False, "cuda:0", "fp16", [None]), (True, True, "cuda:0", "fp32", [None]),  # flash attention is for halves
    (True, True, "cpu", "fp32", [None])])
def test_flash_attention_where_it_is_installed_and_the_model_has_it(
    flash: bool, installed: bool, device: Any, dtype: Any, expected: list[str | None], gpus: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sentence_transformers

    loads = Loads(flash)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", loads)
    monkeypatch.setattr(loading, "_has_flash_attention", lambda device: installed)
    load_on_devices.cache_clear()
    list(load_on_devices("SentenceTransformer", tmp_path, resolve(device, dtype, "torch", tmp_path), None))
    assert [options["model_kwargs"].get("attn_implementation") for options in loads.asked] == expected
    load_on_devices.cache_clear()


@pytest.mark.parametrize(("installed", "capability", "expected"), [
    (True, (8, 0), True), (True, (9, 0), True), (False, (9, 0), False),
    (True, (7, 5), False),  # it loads, and fails at the first batch
])
def test_flash_attention_has_kernels_for_newer_gpus(
    installed: bool, capability: tuple[int, int], expected: bool, gpus: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.utils import import_utils

    gpus["capability"] = capability
    monkeypatch.setattr(import_utils, "is_flash_attn_2_available", lambda: installed)
    assert loading._has_flash_attention("cuda:0") is expected


def test_code_of_a_commit_is_pinned_for_the_model_and_its_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sentence_transformers

    loads = Loads(flash=False)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", loads)
    load_on_devices.cache_clear()
    for code in ("c0ffee", "", None):
        list(load_on_devices("SentenceTransformer", tmp_path, resolve("cpu", "auto", "torch", tmp_path), code))
    load_on_devices.cache_clear()
    assert [options["trust_remote_code"] for options in loads.asked] == [True, True, False]
    assert [options["model_kwargs"].get("code_revision") for options in loads.asked] == ["c0ffee", None, None]
    assert [options.get("config_kwargs") for options in loads.asked] == [{"code_revision": "c0ffee"}, None, None]
