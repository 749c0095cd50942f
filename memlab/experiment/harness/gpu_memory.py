"""GPU memory of a run's models: printed by a plan, and checked before a model is loaded.

Sizes are in GB (1e9 bytes). Weights and widths are read from the models' files, or from ``conf/serve`` for models that
are not on this machine. Batches that are too large are halved, so that a run needs room for its weights and one text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf
from rich.markup import escape

from memlab.experiment.harness.arm import Arm
from memlab.models.local.backend import gpu_count
from memlab.models.local.base import ModelFiles
from memlab.models.protocols import Embedder, PairScorer, models_in, parts
from memlab.models.server import AUTO
from memlab.models.serving import environment
from memlab.models.serving.settings import Settings, served_names, settings, short_name
from memlab.support.console import Console
from memlab.support.errors import Faults, MemlabError, MissingFiles

CUDA_GB = 0.6
"""What CUDA, its libraries and PyTorch take of a card in each process, without any tensor. Estimated, not measured."""

ACTIVATIONS = 11.5
"""Arrays of (padded tokens, width) that a batch has in memory at its peak: the input of a layer, its inner layer before
and after its function, 4 times as wide each, and one more. Measured on an H200 at the size of bge-m3: 8 to 11.4."""

UNKNOWN_GB = 2.0
"""What a model counts for whose size neither its files nor ``conf/serve`` tell: a billion weights in fp16."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class LoadedModel:
    """A model that the process of a run loads on a GPU.

    Attributes:
        label: Its kind and name.
        gb: Its weights; None if unknown.
        text_gb: Working memory of one text of the greatest length.
        device: The device as configured: auto, cuda or cuda:N.
    """

    label: str
    gb: float | None
    text_gb: float
    device: str


def loaded_models(arms: Sequence[Arm]) -> list[LoadedModel]:
    """Return the models that the arms load in their own process and may put on a GPU, each once."""
    found: dict[tuple[Any, ...], LoadedModel] = {}
    for arm in arms:
        for _, stage in arm.pipeline.stages():
            for model in parts(stage, ModelFiles):
                if model.device != "cpu":
                    key = (type(model), str(model.path), model.revision, model.dtype, model.device)
                    found.setdefault(key, _loaded_model(model))
    return list(found.values())


def _loaded_model(model: ModelFiles) -> LoadedModel:
    kind = "encoder" if isinstance(model, Embedder) else "reranker" if isinstance(model, PairScorer) else "model"
    gb, width = size(model)
    tokens = int(getattr(model, "max_length", None) or 512)
    return LoadedModel(f"{kind} {model.name}", gb, tokens * ACTIVATIONS * (width or 0) * _bytes(model) / 1e9,
                       model.device)


def _bytes(model: ModelFiles) -> int:
    """Return the bytes of a number on a GPU."""
    return 4 if model.dtype == "fp32" else 2


@lru_cache(maxsize=64)
def size(model: ModelFiles) -> tuple[float | None, int | None]:
    """Return the GB of a model's weights on a GPU, and the numbers of a token's vector; None where unknown."""
    try:
        weights, width = model.size()
    except MissingFiles:
        known = next((one for one in map(settings, served_names()) if one.model == str(model.path)), None)
        return (known.weights_gb and known.weights_gb * _bytes(model) / 2, known.width) if known else (None, None)
    return (None if weights is None else weights * _bytes(model) / 1e9), width


def needed_gb(models: Sequence[LoadedModel]) -> float:
    """Return the GB without which a run cannot work: CUDA, all weights, and one text."""
    weights = sum(UNKNOWN_GB if model.gb is None else model.gb for model in models)
    return CUDA_GB + weights + max((model.text_gb for model in models), default=0.0)


def local_servers(arms: Sequence[Arm]) -> list[Settings]:
    """Return the settings of the models that the arms ask of servers on this machine, each once."""
    found: dict[str, Settings] = {}
    for arm in arms:
        for model in (model for _, stage in arm.pipeline.stages() for model in models_in(stage)):
            url, name = getattr(model, "url", None), str(getattr(model, "model", ""))
            if url and (url == AUTO or urlsplit(str(url)).hostname in LOOPBACK):
                try:
                    found[name] = settings(name)
                except MemlabError:  # a name that only its server knows
                    found[name] = Settings(model=name)
    return list(found.values())


def print_memory(config: DictConfig, arms: Sequence[Arm], out: Console) -> None:
    """Print what the models of a run and its servers need of a GPU, if there is one or a profile asks for it."""
    if not (gpu_count() or environment.gpus() or OmegaConf.select(config, "hydra.runtime.choices.profile")):
        return
    if models := loaded_models(arms):
        listed = ", ".join(f"{model.label} " + ("of unknown size" if model.gb is None else f"{model.gb:.1f}")
                           for model in models)
        out.print(f"GPU: the models of the run need {needed_gb(models):.1f} GB or more ({escape(listed)}); more room "
                  "makes larger batches")
    for server in local_servers(arms):
        needed = f"{server.needed_gb():.1f} GB" if server.weights_gb else "an unknown size"
        out.print(f"GPU: the server of {escape(short_name(server.model))} needs {needed}: start it first by "
                  f"memlab serve {escape(short_name(server.model))} --detach")


def check_memory(arms: Sequence[Arm]) -> None:
    """Raise Faults if the models of a run do not fit into what is free on the GPUs of this machine."""
    models = loaded_models(arms)
    free = environment.free_memory() if models and gpu_count() else []
    if len(free) != gpu_count():  # a card cut in parts does not say how much of each is free
        return
    faults = []
    for number, gb in enumerate(mib * 2**20 / 1e9 for mib in free):
        here = [model for model in models if model.device in ("auto", f"cuda:{number}")
                or (model.device == "cuda" and number == 0)]
        if here and needed_gb(here) > gb:
            faults.append(
                f"GPU {number}: {gb:.1f} GB are free, and the models of this run need {needed_gb(here):.1f} GB or more "
                f"there ({', '.join(model.label for model in here)}). Fix: end what holds the card (nvidia-smi), start "
                "its server with less (memlab serve MODEL --gpu-memory SHARE), or choose another card "
                "(CUDA_VISIBLE_DEVICES=N)")
    if faults:
        raise Faults(faults)
