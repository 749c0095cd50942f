"""Settings of the fine-tuning of a cross-encoder, with their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from memlab.learn.reranker.examples import parse_fold
from memlab.models.local.backend import Device
from memlab.models.local.files import check_path, model_folder
from memlab.runtime.home import bundled_encoder
from memlab.stage import LocalPath, stage


@stage
class TrainConfig:
    """Settings of the fine-tuning of a cross-encoder.

    out_model: folder of the finished model. base: folder or hub name of the model to start from; null is the embedded
    encoder. fold: ``all``, or ``k/n`` to hold fold k of n out. depth: first-stage ranks that negatives come from.
    negatives: number per positive. limit: maximum number of positives, drawn by seed. batch: positives per step.
    max_length: tokens per pair, kept with the model. rate: peak learning rate, reached after the share ``warmup`` of
    all steps, then falling to 0. precision: bf16 computes matrix products in half the bits (the weights stay fp32):
    2.4 times as fast on a CPU with AVX512_BF16, slow on one without. device: auto is the first GPU, else the CPU;
    cuda:1 is that GPU. One training takes one GPU: it is small, and the folds of a cross-fit are independent, so
    several GPUs are used best by one fold on each.
    """

    out_model: LocalPath
    base: str | LocalPath | None = None
    fold: str = "all"
    depth: Annotated[int, Field(ge=1)] = 30
    negatives: Annotated[int, Field(ge=1)] = 3
    roles: tuple[Literal["user", "assistant"], ...] = Field(default=("user", "assistant"), strict=False)
    limit: Annotated[int, Field(ge=1)] | None = None
    epochs: Annotated[int, Field(ge=1)] = 2
    batch: Annotated[int, Field(ge=1)] = 8
    max_length: Annotated[int, Field(ge=16)] = 256
    rate: Annotated[float, Field(gt=0)] = 1e-4
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    decay: Annotated[float, Field(ge=0)] = 0.01
    precision: Literal["fp32", "bf16"] = "fp32"
    seed: Annotated[int, Field(ge=0)] = 0
    device: Device = "auto"
    checkpoint_seconds: Annotated[float, Field(ge=0)] = 120.0

    @model_validator(mode="after")
    def _check(self) -> TrainConfig:
        if self.fold != "all":
            parse_fold(self.fold)
        if self.base is not None:
            check_path(self.base)
        return self

    def base_folder(self) -> Path:
        """Return the folder of the weights that training starts from."""
        return bundled_encoder() if self.base is None else model_folder(self.base, None, "base")
