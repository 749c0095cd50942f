"""Models of sentence-transformers, one on each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from memlab.models.local.backend import Runtime, disable_progress_bars, one_thread
from memlab.models.local.batching import Room
from memlab.support.errors import MemlabError
from memlab.support.progress import say


class LoadedModels(Sequence[Any]):
    """One model per device, each loaded when it is first used."""

    def __init__(self, load: Callable[[str], Any], devices: tuple[str, ...]) -> None:
        self._load, self._devices = load, devices
        self._here: dict[int, Any] = {}
        self.room: Room = {}

    def __len__(self) -> int:
        return len(self._devices)

    def __getitem__(self, at: Any) -> Any:
        if at not in self._here:
            self._here[at] = self._load(self._devices[at])
        return self._here[at]


@lru_cache(maxsize=8)
def load_on_devices(kind: str, folder: Path, runtime: Runtime, code: str | None, wrap: Callable[..., Any] | None = None,
                    *options: Any) -> LoadedModels:
    """Return sentence-transformers' class ``kind`` on each device, loaded once per process at its first use.

    ``MiniLM`` is memlab's own form of the embedded model, for the CPU in fp32. Each is ``wrap(model, device,
    *options)``, or the model itself. ``code`` is None if no code of a model is run, "" for code in its folder, and else
    the commit of the repository that its code comes from.
    """
    return LoadedModels(partial(_load_one, kind, folder, runtime, code, wrap, options), runtime.devices)


def _load_one(kind: str, folder: Path, runtime: Runtime, code: str | None, wrap: Callable[..., Any] | None,
              options: tuple[Any, ...], device: str) -> Any:
    say(f"loading the {'reranker' if kind == 'CrossEncoder' else 'encoder'} ...")
    model = _load_minilm(folder) if kind == "MiniLM" else _load_library(kind, folder, runtime, code, device)
    loaded = wrap(model, device, *options) if wrap else model  # it may change weights
    if runtime.backend == "onednn":
        from memlab.models.local.onednn import pack_linears

        with one_thread():
            pack_linears(model)
    return loaded


def _load_minilm(folder: Path) -> Any:
    from memlab.models.local.minilm import load_minilm  # torch takes a second to import

    return load_minilm(folder).eval()


def _load_library(kind: str, folder: Path, runtime: Runtime, code: str | None, device: str) -> Any:
    """Return sentence-transformers' class ``kind`` on a device; raise MemlabError if there is none, or weights lack."""
    import sentence_transformers
    import torch

    load = getattr(sentence_transformers, kind, None)
    if load is None:
        raise MemlabError(f"this sentence-transformers has no {kind}", fix="pip install 'sentence-transformers>=6'")
    disable_progress_bars()
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[runtime.dtype]

    def load_model(flash: bool) -> Any:
        kernel = {"attn_implementation": "flash_attention_2"} if flash else {}
        pinned = {"code_revision": code} if code else {}
        return load(str(folder), device=device, trust_remote_code=code is not None,
                    model_kwargs={"dtype": dtype, **kernel, **pinned},
                    **({"config_kwargs": pinned} if pinned else {})).eval()

    model = None
    if not runtime.cpu and runtime.dtype != "fp32" and _has_flash_attention(device):
        with suppress(ValueError, ImportError):  # a model without it; padded batches would take a slower kernel
            model = load_model(flash=True)
    if model is None:
        model = load_model(flash=False)
    if code is None:  # code of a model may load weights in its own way
        check_weights(model, folder)
    return model


def check_weights(model: Any, folder: Path) -> None:
    """Raise MemlabError if weights of a model are in no file: transformers makes random ones, others in each process.

    From version 5 on transformers marks each weight that it has read. An encoder's pooler is left out unless a
    classifier is behind it: sentence vectors do not use it.
    """
    from transformers import PreTrainedModel

    for part in model.modules():
        if not isinstance(part, PreTrainedModel):
            continue
        classifier = type(part).__name__.endswith("ForSequenceClassification")
        read = {name: hasattr(weight, "_is_hf_initialized") for name, weight in part.named_parameters()
                if classifier or "pooler." not in name}
        missing = [name for name, is_read in read.items() if not is_read]
        if missing and len(missing) < len(read):
            raise MemlabError(f"the files hold no weights {', '.join(missing[:3])}, which would be random",
                              where=str(folder), fix="give a trained reranker, or train one (memlab train reranker)"
                              if classifier else "give a complete copy of the model")


def _has_flash_attention(device: str) -> bool:
    """Return whether the package is installed and has kernels for a GPU, which needs compute capability 8.0."""
    import torch
    from transformers.utils.import_utils import is_flash_attn_2_available  # another package may bear the same name

    return bool(is_flash_attn_2_available()) and torch.cuda.get_device_capability(device) >= (8, 0)
