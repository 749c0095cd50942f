"""Settings of the fine-tuning of a cross-encoder, and the training record that lies beside its weights.

The record, ``training.json``, names the questions that the model has not seen, so that no arm can score a question with
a model trained on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.learn.pairs import parse_fold
from memlab.models.local.backend import Device
from memlab.models.local.base import check_path, model_folder
from memlab.runtime.files import write_json
from memlab.runtime.paths import bundled_encoder
from memlab.stage import LocalPath, stage

FORMAT = "memlab-reranker-1"
FILE = "training.json"


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


@dataclass(frozen=True)
class TrainingRecord:
    """The part of a record that decides which questions a model may score.

    held_out: keys (``memlab.learn.pairs.question_keys``) of the held-out fold; None where the model was
        trained on all questions of its data. learnt: hashes of the question texts that it was trained on.
    """

    held_out: frozenset[str] | None
    learnt: frozenset[str]

    def may_score(self, key: str, text: str) -> bool:
        """Return whether a question is held out, or, for a model trained on all of its data, not among them."""
        return key in self.held_out if self.held_out is not None else text not in self.learnt


def write(folder: Path, content: dict[str, Any]) -> None:
    """Write the record into the folder of a model, as its last file."""
    write_json(folder / FILE, {"format": FORMAT, **content})


def read(folder: Path) -> TrainingRecord:
    """Read the record of a model; raise MemlabError if there is none, or it cannot be read."""
    fix = "train one with python -m memlab.learn.reranker; rank/rerank=cross_encoder takes models from elsewhere"
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}, expected {FORMAT}")
        held_out = None if content["fold"] == "all" else _texts(content["held_out"], "held_out")
        return TrainingRecord(held_out, _texts(content["learnt"], "learnt"))
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(folder / FILE), fix=fix) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise MemlabError(f"is not a reranker's record: {reason}", where=str(folder / FILE), fix=fix) from error


def _texts(value: object, name: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{name} is no list of texts")
    return frozenset(value)
