"""The base of models that FlagEmbedding runs: loading, one copy per device, and the digest of the weights.

FlagEmbedding is an extra (``pip install 'memlab[flag]'``) and is imported when a model loads. It runs the first batch
of every call twice, to find a batch size that fits, so each call gets a long block of texts sorted by length. It takes
any RuntimeError for a lack of memory and shrinks the batch down to no text at all, so each model is guarded.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.local.backend import Runtime, disable_progress_bars
from memlab.models.local.base import ModelFiles
from memlab.models.local.batching import attempt
from memlab.models.local.files import files_digest
from memlab.models.protocols import Ints
from memlab.runtime.machine import is_lack
from memlab.stage import stage

FlagDtype = Literal["auto", "fp32", "fp16"]
Batch = Annotated[int, Field(ge=1)]
Result = TypeVar("Result")

BLOCK = 16
"""Batches per call: running one of 16 batches twice costs 6 %, and results are still stored often."""

_DEVICE = "device=cpu tells whether it is the device; else check the model's files"

_WITH_BARS = ("FlagEmbedding.inference.embedder.encoder_only.m3", "FlagEmbedding.inference.reranker.encoder_only.base",
              "FlagEmbedding.inference.reranker.decoder_only.base")


def flag_embedding() -> Any:
    """Return the package FlagEmbedding; raises MemlabError if it is not installed."""
    try:
        package = importlib.import_module("FlagEmbedding")
    except ImportError as error:
        raise MemlabError(f"FlagEmbedding cannot be imported ({error})", fix="pip install 'memlab[flag]'") from error
    for name in _WITH_BARS:  # its progress bars would be drawn over memlab's own
        module: Any = importlib.import_module(name)
        module.tqdm, module.trange = lambda items, **_: items, lambda *bounds, **_: range(*bounds)
    return package


@lru_cache(maxsize=4)
def load(kind: str, folder: Path, devices: tuple[str, ...], dtype: str) -> tuple[Any, ...]:
    """Load FlagEmbedding's class ``kind`` on each device, once per process."""
    make = getattr(flag_embedding(), kind)
    disable_progress_bars()
    brain_float = {"use_bf16": True} if dtype == "bf16" else {}
    models = tuple(make(str(folder), use_fp16=dtype == "fp16", **brain_float, devices=[device]) for device in devices)
    for one in models:
        guard(one.model, str(folder))
    return models


def guard(module: Any, where: str) -> None:
    """Let FlagEmbedding see no other error of a PyTorch module than a lack of memory for several texts.

    Its forward pass raises ``torch.OutOfMemoryError`` for that, and MemlabError for every other RuntimeError.
    """
    import torch

    forward = module.forward

    def guarded(*arguments: Any, **inputs: Any) -> Any:
        try:
            return forward(*arguments, **inputs)
        except RuntimeError as error:
            if not is_lack(error):
                raise MemlabError(f"the model failed: {error}", where=where, fix=_DEVICE) from error
            texts = len((arguments[0] if arguments else inputs)["input_ids"])
            if texts == 1:
                raise _too_large() from error
            raise torch.OutOfMemoryError(str(error)) from error

    module.forward = guarded


def run_smaller(call: Callable[[int], Result], batch: int) -> Result:
    """Return ``call(batch)`` of FlagEmbedding, with half the batch where memory runs out.

    Raises MemlabError if one text does not fit, or if the call fails: an error of the device comes up anywhere in it.
    """
    try:
        while (result := attempt(partial(call, batch))) is None:
            if batch == 1:
                raise _too_large()
            batch //= 2
    except MemlabError:
        raise
    except Exception as error:
        raise MemlabError(f"FlagEmbedding failed: {type(error).__name__}: {error}", fix=_DEVICE) from error
    return result


def _too_large() -> MemlabError:
    return MemlabError("one text alone does not fit into the device's memory",
                       fix="a smaller max_length, or device=cpu; or end what else runs on this device")


@lru_cache(maxsize=8)
def weights_digest(folder: Path) -> str:
    """Return a digest of a model folder, with the heads that bge-m3 keeps in ``.pt`` files."""
    total = hashlib.blake2b(files_digest(folder).encode(), digest_size=16)
    for file in sorted(folder.glob("*.pt")):
        with file.open("rb") as handle:
            total.update(file.name.encode() + hashlib.file_digest(handle, "blake2b").digest())
    return total.hexdigest()


@stage
class FlagModel(ModelFiles):
    """A model that FlagEmbedding runs."""

    max_length: Annotated[int, Field(ge=8)] = 8192  # tokens; the model's own limit
    batch: Batch = 16  # texts per batch; made smaller where memory runs out
    # fp32 on a CPU; on a GPU fp16, or bf16 (encoders: fp32) if the model's own files ask for its range
    dtype: FlagDtype = "auto"

    def _identity(self, kind: str, /, **settings: Any) -> dict[str, Any]:
        """Return a model's identity; the weights count by their digest, so a path never enters."""
        return {"is": kind, **settings, "weights": weights_digest(self._folder()), "max_length": self.max_length,
                "dtype": self._runtime().dtype, "backend": "FlagEmbedding"}

    def _class(self) -> str:
        """Return the name of FlagEmbedding's class."""
        return "BGEM3FlagModel"

    def _models(self) -> tuple[Any, ...]:
        runtime = self._runtime()
        return load(self._class(), self._folder(), runtime.devices, runtime.dtype)

    def _runtime(self) -> Runtime:
        runtime = super()._runtime()
        return replace(runtime, dtype="fp32") if runtime.dtype == "bf16" and not self._has_bf16() else runtime

    def _has_bf16(self) -> bool:
        """Return whether FlagEmbedding's class can be loaded in bf16."""
        return False


def by_length(texts: Sequence[str], size: int) -> Iterator[Ints]:
    """Yield positions of texts in blocks of ``size``, longest first (characters stand in for tokens).

    >>> [block.tolist() for block in by_length(["a", "bbb", "cc"], 2)]
    [[1, 2], [0]]
    """
    order = np.argsort([-len(text) for text in texts], kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]
