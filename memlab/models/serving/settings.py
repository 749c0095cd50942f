"""Settings of a served model: from ``conf/serve/NAME.yaml``, or the defaults for a hub model or a folder.

A file of ``conf/serve`` holds the fields of ``Settings``, one to one; the command line overrides each of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.paths import expand, shipped_path

Runner = Literal["generate", "pooling"]
Quantization = Literal["fp8_per_tensor", "fp8_per_block", "fp8_per_channel"]
ServedType = Literal["auto", "float32", "float16", "bfloat16"]

MOST_SHARE, LEAST_SHARE = 0.9, 0.5
"""Bounds of the share of a card that a server takes by default. The rest of 0.9 is for what vLLM does not count."""

LEFT_GB = 6.0
"""GB that a server leaves on a card that a run needs too: the models of ``+profile=gpu`` and their largest batches, 5.9
GB."""

QUANTISED_SHARE = 0.57
"""Share of 16-bit weights that remains after vLLM has quantised them; embeddings stay in 16 bits (8B .57, 72B .52)."""

FOLDER = shipped_path("conf") / "serve"
"""The folder of the files of settings."""

_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Settings:
    """Settings of one served model.

    Attributes:
        model: Name on the hub, folder, or the name of a model whose weights are part of a package.
        revision: Commit on the hub; None is the newest, which the server's record names.
        runner: "generate" for chat, "pooling" for encoders and rerankers.
        dtype: "auto" is the model's own on a GPU, and float32 on a CPU, where bf16 is slower.
        max_len: Maximum tokens of prompt and reply together; None is the model's own window.
        tensor_parallel: GPUs that share the weights.
        data_parallel: Copies of the weights, each on ``tensor_parallel`` GPUs, that share the requests.
        gpu_memory: Share of each GPU's memory that the server takes; None: nearly all, less where a run needs the same
            cards (``share``).
        quantization: What vLLM makes of 16-bit weights while it loads them, on a GPU; None: nothing. Weights that are
            published in 8 or 4 bits need no setting.
        weights_gb: Size of the published weights, to check before loading whether they fit; None: unknown.
        kv_cache: GiB for the attention cache on a CPU.
        options: Further options of vLLM's own.
    """

    model: str
    revision: str | None = None
    runner: Runner = "generate"
    dtype: ServedType = "auto"
    max_len: Annotated[int, Field(ge=16)] | None = None
    tensor_parallel: Annotated[int, Field(ge=1)] = 1
    data_parallel: Annotated[int, Field(ge=1)] = 1
    gpu_memory: Annotated[float, Field(gt=0, le=1)] | None = None
    quantization: Quantization | None = None
    weights_gb: float | None = None
    kv_cache: Annotated[int, Field(ge=1)] = 2
    options: Annotated[tuple[str, ...], Field(strict=False)] = ()

    def loaded_gb(self) -> float:
        """Return the GB of weights in the GPUs' memory; 0 if unknown."""
        return (self.weights_gb or 0.0) * (QUANTISED_SHARE if self.quantization else 1.0)

    def share(self, gpus: Sequence[int]) -> float:
        """Return the share of each GPU's memory to take on a machine with these GPUs (MiB each).

        Where the server takes every card, the models of a run share one with it, and ``LEFT_GB`` are left for them.

        >>> Settings(model="m").share([24_564]), Settings(model="m").share([24_564] * 2)
        (0.76, 0.9)
        """
        if self.gpu_memory is not None:
            return self.gpu_memory
        if len(gpus) > self.tensor_parallel * self.data_parallel or not gpus:
            return MOST_SHARE
        return share_beside(LEFT_GB, min(gpus) * 2**20 / 1e9)


def share_beside(left: float, card: float) -> float:
    """Return the share of a card that leaves so many GB of it, rounded down to hundredths, within its bounds."""
    return min(MOST_SHARE, max(LEAST_SHARE, math.floor(100 * (1 - left / card)) / 100))


def served_names() -> list[str]:
    """List the models that have a file of settings."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def settings(name: str) -> Settings:
    """Return the settings of a model by its name in ``conf/serve``, its hub name or its folder.

    >>> settings("qwen2.5-7b") == settings("Qwen/Qwen2.5-7B-Instruct"), settings("someone/a-model").max_len
    (True, None)
    """
    known_settings = {stem: _read(stem) for stem in served_names()}
    for stem, one in known_settings.items():
        if name in {stem, one.model}:
            return one
    folder = expand(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise MemlabError("this folder holds no config.json", where=str(folder), fix="give a model's own folder")
        return Settings(model=str(folder.resolve()))
    if _HUB_NAME.fullmatch(name):
        return Settings(model=name)
    if "/" in name:
        raise MemlabError("there is no such model folder", where=str(folder), fix="give the folder with config.json")
    raise MemlabError(f"there is no model '{name}'",
                      fix=f"{did_you_mean(name, known_settings)}; or a hub name (owner/model), or a model's folder")


def _read(name: str) -> Settings:
    return Settings(**yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))
