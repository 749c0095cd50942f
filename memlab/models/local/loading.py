"""Models of sentence-transformers, one per device: in this process, or each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from memlab.errors import MemlabError
from memlab.models.local.backend import Runtime, disable_progress_bars
from memlab.models.local.processes import RemoteModel

APART_PAYS = 20_000_000
"""Tokens above which several GPUs get a process each: starting one takes some ten seconds. Estimated, not measured."""


class LoadedModels(Sequence[Any]):
    """One model per device, each loaded when it is first used."""

    def __init__(self, load: Callable[[str], Any], devices: tuple[str, ...]) -> None:
        self._load, self._devices = load, devices
        self._here: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._devices)

    def __getitem__(self, at: Any) -> Any:
        if at not in self._here:
            self._here[at] = self._load(self._devices[at])
        return self._here[at]

    def workers(self, tokens: int) -> Sequence[Any]:
        """Return the models for a job of this many tokens; for a long one, all but the first in their own processes.

        The first stays here, where its tokenizer is. Those in processes return arrays, no tensors.
        """
        return [self[0], *self._apart] if len(self) > 1 and tokens > APART_PAYS else self

    @cached_property
    def _apart(self) -> list[RemoteModel]:
        return [RemoteModel(self._load, device) for device in self._devices[1:]]


@lru_cache(maxsize=8)
def load_on_devices(kind: str, folder: Path, runtime: Runtime, code: str | None, wrap: Callable[..., Any] | None = None,
                    *options: Any) -> LoadedModels:
    """Return sentence-transformers' class ``kind`` on each device, loaded once per process at its first use.

    Each is ``wrap(model, device, *options)``, or the model itself. ``code`` is None if no code of a model is run, ""
    for code in its folder, and else the commit of the repository that its code comes from.
    """
    return LoadedModels(partial(_load_one, kind, folder, runtime, code, wrap, options), runtime.devices)


def _load_one(kind: str, folder: Path, runtime: Runtime, code: str | None, wrap: Callable[..., Any] | None,
              options: tuple[Any, ...], device: str) -> Any:
    import sentence_transformers
    import torch

    load = getattr(sentence_transformers, kind, None)
    if load is None:
        raise MemlabError(f"this sentence-transformers has no {kind}", fix="pip install 'sentence-transformers>=6'")
    disable_progress_bars()
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[runtime.dtype]

    def loaded(attention: str) -> Any:
        kernel = {} if attention == "auto" else {"attn_implementation": attention}
        pinned = {"code_revision": code} if code else {}
        return load(str(folder), device=device, trust_remote_code=code is not None,
                    model_kwargs={"dtype": dtype, **kernel, **pinned},
                    **({"config_kwargs": pinned} if pinned else {})).eval()

    attention: str = runtime.attention
    if attention == "auto" and not runtime.cpu and runtime.dtype != "fp32" and _has_flash_attention(device):
        attention = "flash_attention_2"  # padded batches would take a slower kernel of PyTorch's own
    try:
        model = loaded(attention)
    except (ValueError, ImportError):
        if attention == runtime.attention:
            raise
        model = loaded("auto")  # a model without it
    if runtime.backend == "onednn":
        from memlab.models.local.onednn import pack_linears

        pack_linears(model)
    return wrap(model, device, *options) if wrap else model


def _has_flash_attention(device: str) -> bool:
    """Return whether the package is installed and has kernels for a GPU, which needs compute capability 8.0."""
    import torch
    from transformers.utils.import_utils import is_flash_attn_2_available  # another package may bear the same name

    return bool(is_flash_attn_2_available()) and torch.cuda.get_device_capability(device) >= (8, 0)
