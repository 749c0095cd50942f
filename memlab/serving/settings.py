"""Settings of a served model: from ``conf/serve/NAME.yaml``, or the defaults for a hub model or a folder.

A file of ``conf/serve`` holds the fields of ``Settings``, one to one; the command line overrides each of them.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from yaml import YAMLError  # type: ignore[import-untyped]

from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.runtime.home import shipped
from memlab.runtime.paths import expand

Runner = Literal["generate", "pooling"]
Quantization = Literal["fp8_per_tensor", "fp8_per_block", "fp8_per_channel"]
ServedType = Literal["auto", "float32", "float16", "bfloat16"]

SHARES: dict[str, float] = {"fp8_per_tensor": 0.57, "fp8_per_block": 0.57, "fp8_per_channel": 0.57}
"""Share of 16-bit weights that remains after vLLM has quantised them; embeddings stay in 16 bits (8B .57, 72B .52)."""

FOLDER = shipped("conf") / "serve"
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
        gpu_memory: Share of each GPU's memory that the server takes.
        gpu_gb: Memory of the GPUs that these settings are made for.
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
    gpu_memory: Annotated[float, Field(gt=0, le=1)] = 0.9
    gpu_gb: Annotated[float, Field(gt=0, strict=False)] = 80.0
    quantization: Quantization | None = None
    weights_gb: float | None = None
    kv_cache: Annotated[int, Field(ge=1)] = 2
    options: Annotated[tuple[str, ...], Field(strict=False)] = ()

    def loaded_gb(self) -> float:
        """Return the GB of weights in the GPUs' memory; 0 if unknown."""
        return (self.weights_gb or 0.0) * SHARES.get(self.quantization or "", 1.0)


def served_names() -> list[str]:
    """List the models that have a file of settings."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def smaller_forms(model: str) -> dict[str, Settings]:
    """Return the settings of the published quantised forms of a model, by name.

    >>> list(smaller_forms("meta-llama/Llama-3.3-70B-Instruct"))
    ['llama-3.3-70b-fp8']
    """
    names = served_names()
    stems = [name for name in names if _read(name).model == model]
    return {name: _read(name) for name in names if any(name.startswith(f"{stem}-") for stem in stems)}


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
    file = FOLDER / f"{name}.yaml"
    try:
        return Settings(**cast(Any, OmegaConf.to_container(OmegaConf.load(file))))
    except ValidationError as error:
        raise Faults(f"{file}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
                     for fault in error.errors()) from error
    except (OmegaConfBaseException, YAMLError, TypeError, OSError) as error:
        raise MemlabError("is no file of settings", where=str(file), fix="compare it with other files") from error
