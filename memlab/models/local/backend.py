"""Devices, number formats and backends of this machine, and one loaded encoder on one device.

The build of PyTorch is detected without importing torch: that costs a second, and a plan needs no model.
Sentence-transformers reads the model's own modules (transformer, pooling, dense, normalise), so that every model
keeps the pooling it was trained with; memlab brings its own batches.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import string
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from threadpoolctl import ThreadpoolController

from memlab.models.local.adapter import apply_update
from memlab.models.protocols import Floats, Ints
from memlab.support.errors import DiskFault, MemlabError, error_message
from memlab.support.files import write_json
from memlab.support.foreign import read_json
from memlab.support.paths import home

GPU_BUILD = re.compile(r"^(?:cuda|hip|rocm)\b[^=]*=\s*(?!None\b)\S", re.MULTILINE)
"""A line of ``torch/version.py`` that names a GPU toolkit."""

FEW = 128
"""Tokens of a batch, such as a question, that are read on one thread of the processor."""

VARIABLES = ("ATEN_", "DNNL_", "ONEDNN_", "TORCH_")
"""Beginnings of environment variables that change what oneDNN does."""

Pooling = Literal["cls", "mean", "max", "lasttoken", "weightedmean"]
Dtype = Literal["auto", "fp32", "fp16", "bf16"]
Device = Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")]
Backend = Literal["auto", "torch", "onednn"]

CPU_BUDGET, GPU_BUDGET = 2048, 65536
"""Padded tokens per batch: few enough for a CPU's caches, and enough to keep a GPU busy."""

WIDE_RANGE = ("gemma", "modernbert", "qwen", "t5")
"""Beginnings of model types whose activations may overflow fp16."""


def gpu_count() -> int:
    """Return the number of GPUs that this process sees; PyTorch is imported unless it is built for CPUs alone."""
    text = _version_file()
    if "torch" not in sys.modules and text and not GPU_BUILD.search(text):
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def onednn_usable() -> bool:
    """Return whether this PyTorch has oneDNN's linear layers and this processor runs them.

    The answer is kept in ``$MEMLAB_HOME`` for this build, processor and environment.
    """
    record, key = home() / "onednn.json", _key()
    if "torch" not in sys.modules and isinstance(known := _read(record).get(key), bool):
        return known
    from memlab.models.local.onednn import usable

    answer = usable()
    with suppress(DiskFault):
        answers = _read(record)
        if answers.get(key) is not answer:
            write_json(record, {**answers, key: answer})
    return answer


def _read(file: Path) -> dict[str, Any]:
    """Return the JSON object of a file; empty if there is none."""
    with suppress(OSError, ValueError):
        return read_json(file)
    return {}


@cache
def _version_file() -> str:
    """Return the text of ``torch/version.py``; empty if there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return ""
    try:
        return Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return ""


def _key() -> str:
    """Return the digest of all that the answer depends on."""
    try:
        flags = re.search(r"^flags.*$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        flags = None
    parts = [_version_file(), sys.version, platform.machine(), flags.group() if flags else "",
             *(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES))]
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Runtime:
    """The devices, number format and backend that ``auto`` stands for on this machine."""

    devices: tuple[str, ...]
    dtype: Literal["fp32", "fp16", "bf16"]
    backend: Literal["torch", "onednn"]

    @property
    def cpu(self) -> bool:
        """Whether the model runs on the CPU."""
        return self.devices == ("cpu",)

    @property
    def budget(self) -> int:
        """Padded tokens per batch if the configuration does not set them."""
        return CPU_BUDGET if self.cpu else GPU_BUDGET


@lru_cache(maxsize=32)
def resolve(device: Device, dtype: Dtype, backend: Backend, folder: Path | None = None) -> Runtime:
    """Resolve ``auto``: every GPU if there is one, else the CPU in fp32 with oneDNN's linear layers.

    On GPUs a model runs in fp16, unless the configuration in its folder asks for more range: then in bf16, or in fp32
    on GPUs without bf16 (before compute capability 8.0). Raises MemlabError for a device that is not there.
    """
    gpus = gpu_count()
    if device.startswith("cuda") and not gpus:
        raise MemlabError(f"device={device}, but this process sees no GPU", fix="device=auto")
    number = int(device.partition(":")[2] or 0)
    if number >= max(gpus, 1):
        raise MemlabError(f"device={device}, but this process sees {gpus} GPUs", fix="device=auto")
    gpu = bool(gpus) and device != "cpu"
    devices = tuple(f"cuda:{i}" for i in ([number] if ":" in device else range(gpus))) if gpu else ("cpu",)
    kind: Any = dtype
    if dtype == "auto":
        kind = "fp32" if not gpu else "fp16"
        if gpu and folder is not None and _needs_range(folder):
            import torch

            kind = "bf16" if all(torch.cuda.get_device_capability(one) >= (8, 0) for one in devices) else "fp32"
    if kind == "fp16" and not gpu:
        raise MemlabError("dtype=fp16 on a CPU loses precision and time", fix="dtype=auto")
    packs = False
    if not gpu and kind == "fp32" and backend != "torch":
        packs = onednn_usable()
    if backend == "onednn" and not packs:
        raise MemlabError("backend=onednn needs fp32 on a CPU and a PyTorch with oneDNN", fix="backend=auto")
    return Runtime(devices, kind, "onednn" if packs else "torch")


def _needs_range(folder: Path) -> bool:
    """Return whether a model was made for bf16, or is of a type whose activations may overflow fp16."""
    for file in [folder / "config.json", *sorted(folder.glob("*/config.json"))]:
        config = _read(file)
        layers = [config, config.get("text_config") or {}]
        if any((one.get("dtype") or one.get("torch_dtype")) == "bfloat16"
               or str(one.get("model_type", "")).startswith(WIDE_RANGE) for one in layers):
            return True
    return False


def disable_progress_bars() -> None:
    """Hide the progress bars of libraries that load weights."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")


def to_device(array: Any, device: str) -> Any:
    """Return an array, or a tensor, on a device; a GPU copies it from pinned memory while the CPU goes on."""
    import torch

    tensor = torch.as_tensor(array)
    return tensor if device == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def free_bytes(device: str) -> int:
    """Return the bytes of a GPU's memory that tensors can still take; 0 for the CPU."""
    import torch

    if torch.device(device).type != "cuda":
        return 0
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # of freed tensors
    return int(torch.cuda.mem_get_info(device)[0]) + kept


@cache
def _threads() -> ThreadpoolController:
    import torch  # noqa: F401  (its library of threads is found once it is loaded)

    return ThreadpoolController()


def one_thread(if_true: bool = True) -> AbstractContextManager[object]:
    """Let torch compute on one thread: where there is little to do, threads that wait cost 10 x the processor time.

    Other threads of Python keep their number.
    """
    return _threads().limit(limits=1, user_api="openmp") if if_true else nullcontext()


class Encoder:
    """A ``SentenceTransformer`` on one device, its weights changed by an update if there is one.

    ``head`` is a file with a linear layer of the token vectors, and ``digest`` that of the update's file when it was
    checked.
    """

    def __init__(self, model: Any, device: str, pooling: Pooling | None, head: Path | None = None,
                 update: Path | None = None, digest: str | None = None) -> None:
        self.model, self.tokenizer, self.device = model, model.tokenizer, device
        self.max_length = int(self.model.max_seq_length or 512)
        self.config = self.model[0].auto_model.config
        self.width = _dimension(model, "get_sentence_embedding_dimension")
        self.pad = int(self.tokenizer.pad_token_id or 0)
        self.position_limit = self._positions()
        width, self.head = _dimension(model[0], "get_word_embedding_dimension"), None
        if head is not None:
            weight, bias = read_head(head)
            if weight.shape[1] != width:
                raise MemlabError(f"takes {weight.shape[1]} numbers a token, and this model gives {width}",
                                  where=str(head), fix="give the layer of this model, or delete the file")
            width, self.head = len(weight), (to_device(weight, device), to_device(bias, device))
        projection = None if update is None else apply_update(
            model[0].auto_model, update, digest=digest, width=width)
        self.projection = None if projection is None else to_device(projection, device)
        if pooling is not None:
            self._pool_by(pooling)

    def _pool_by(self, pooling: Pooling) -> None:
        """Replace the model's pooling module."""
        for name, module in self.model.named_children():
            if type(module).__name__ == "Pooling":
                setattr(self.model, name, type(module)(self.config.hidden_size, pooling_mode=pooling,
                                                       include_prompt=module.include_prompt))
                return
        raise MemlabError(f"pooling={pooling}, and this model has no pooling module", fix="pooling=null")

    def _positions(self) -> int:
        """Return the number of positions; RoBERTa and related models start to count after the padding index."""
        embeddings = getattr(self.model[0].auto_model, "embeddings", None)
        padding = getattr(embeddings, "padding_idx", None)
        positions = int(getattr(self.config, "max_position_embeddings", None) or 10**9)
        return positions if padding is None else positions - int(padding) - 1

    def _forward(self, ids: Ints, mask: Ints, **more: int) -> Any:
        inputs = {"input_ids": to_device(ids, self.device), "attention_mask": to_device(mask, self.device)}
        return self.model(inputs | more)

    def sentences(self, ids: Ints, mask: Ints, dimensions: int | None, prompt: int = 0) -> Floats:
        """Return unit vectors (b, dim), cut to their first ``dimensions``, of padded ids and mask (b, length).

        prompt: tokens at the beginning that belong to a prompt, which the pooling of some models leaves out.
        """
        import torch

        with torch.inference_mode(), one_thread(ids.size <= FEW):
            asked = {"prompt_length": prompt} if prompt else {}
            vectors = self._forward(ids, mask, **asked)["sentence_embedding"].float()[:, :dimensions]
            unit: Floats = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
            return unit

    def tokens(self, ids: Ints, mask: Ints) -> Any:
        """Return unit vectors (b, length, width), one per token, as a float32 tensor on the model's device.

        ``width`` is the encoder's, that of its layer of token vectors, or that of the update's map of these.
        """
        import torch

        with torch.inference_mode(), one_thread(ids.size <= FEW):
            vectors = self._forward(ids, mask)["token_embeddings"].float()
            if self.head is not None:
                vectors = torch.nn.functional.linear(vectors, *self.head)
            if self.projection is not None:
                vectors = vectors @ self.projection.T
            return torch.nn.functional.normalize(vectors, dim=2)

    @cached_property
    def ignored(self) -> Ints:
        """The token ids that carry no meaning: around a text ([CLS], [SEP], ...), and of pure punctuation."""
        around = sorted(set(self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id})
        return np.array([*around, *punctuation_ids(self.tokenizer)], np.int64)


def read_head(file: Path) -> tuple[Any, Any]:
    """Return the weight (out, width) and the bias (out,) of a linear layer in fp32; raise MemlabError without these."""
    import torch

    try:
        layer = torch.load(file, map_location="cpu", weights_only=True)
        weight, bias = layer["weight"].float(), layer["bias"].float()
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise ValueError(f"the shapes {tuple(weight.shape)} and {tuple(bias.shape)}")
    except Exception as error:  # torch raises many of its own
        raise MemlabError(f"is no linear layer of token vectors ({error_message(error)})", where=str(file),
                          fix="give a complete copy of the model: embedder.path=FOLDER") from error
    return weight, bias


def punctuation_ids(tokenizer: Any) -> Ints:
    """Return the token ids of a tokenizer that stand for ASCII punctuation alone, in ascending order."""
    pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    bare = [(piece or "").lstrip("\u2581\u0120#") or (piece or "") for piece in pieces]
    return np.array([i for i, piece in enumerate(bare) if piece and all(c in string.punctuation for c in piece)],
                    np.int64)


def _dimension(module: Any, before: str) -> int:
    """Return the numbers of a module's vectors; sentence-transformers renamed the method in version 6."""
    return int((getattr(module, "get_embedding_dimension", None) or getattr(module, before))())
