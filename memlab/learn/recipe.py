"""Settings of trainings of text models, and the command lines and finished folders that these share."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from pydantic import Field, ValidationError, field_validator, model_validator

from memlab.experiment.harness import manifest
from memlab.experiment.harness.arm import load
from memlab.learn.command import read_arm, report, split
from memlab.learn.cross_fit_rerank import FILE
from memlab.learn.fits import save
from memlab.learn.pairs import parse_fold
from memlab.models.local.adapter import update_card, update_file
from memlab.models.local.backend import Device
from memlab.models.local.base import check_path, model_folder
from memlab.models.local.embedder import SentenceEmbedder
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.errors import Faults, MemlabError, did_you_mean
from memlab.support.foreign import read_json
from memlab.support.help_text import page
from memlab.support.machine import OF_A_RUN, enough_memory
from memlab.support.paths import bundled_encoder
from memlab.support.terminal import HELP, own_words, print

NO_RECIPE = ("out_model", "base", "adapter", "device", "file", "pairs")
"""Settings that do not change what is learned; base, adapter and pairs count by what they hold."""


@stage
class PairRecipe:
    """Settings of training examples.

    questions: ``gold`` are those of the data, ``rules`` those that rules make from statements in the turns (English).
    fold: ``all``, or ``k/n`` to hold fold k of n out. depth: first-stage ranks that negatives come from. roles: of the
    turns that are passages. absolute_margin, relative_margin: how far below the evidence a turn's first-stage score
    must be to count as a negative, as a number and as a share of the evidence's score; null: no limit. limit: maximum
    number of positives, drawn by seed. file: where ``memlab train pairs`` writes them.
    """

    questions: Literal["gold", "rules"] = "gold"
    fold: str = "all"
    depth: Annotated[int, Field(ge=1)] = 30
    roles: tuple[Literal["user", "assistant"], ...] = Field(default=("user", "assistant"), strict=False)
    absolute_margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    relative_margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    file: LocalPath | None = None

    @model_validator(mode="after")
    def _check_fold(self) -> Self:
        if self.fold != "all":
            parse_fold(self.fold)
            if self.questions == "rules":
                raise ValueError("fold holds questions of the data out, and questions=rules reads none of these. "
                                 "Fix: leave fold out")
        return self


@stage
class TrainingRecipe(PairRecipe):
    """Settings of a training; those of its examples, and:

    out_model: folder of the finished model. base: folder or hub name of the model to start from; null is the embedded
    encoder. negatives: number per positive. batch: positives per step. max_length: tokens of a text, or of a pair.
    rate: peak learning rate, reached after a tenth of all steps, then falling to 0. trainer: further arguments of
    sentence-transformers' trainer, such as {weight_decay: 0.01}. pairs: files of examples that ``memlab train pairs``
    wrote, with the times that each is taken in an epoch (a half: a sample of half of them, drawn by seed); no other
    data are read then. precision: bf16 computes matrix products in half the bits (the weights stay fp32): 2.4 times as
    fast on a CPU with AVX512_BF16, slow on one without. device: auto is the first GPU, else the CPU; cuda:1 is that
    GPU. One training takes one GPU: it is small, and the folds of a cross-fit are independent, so several GPUs are used
    best by one fold on each.
    """

    DECAY: ClassVar = 0.01  # weight decay

    out_model: LocalPath
    base: str | LocalPath | None = None
    negatives: Annotated[int, Field(ge=1)] = 3
    epochs: Annotated[int, Field(ge=1)] = 2
    batch: Annotated[int, Field(ge=1)] = 8
    max_length: Annotated[int, Field(ge=16)] = 256
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-4
    trainer: dict[str, Any] = Field(default_factory=dict)
    pairs: dict[LocalPath, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    precision: Literal["fp32", "bf16"] = "fp32"
    device: Device = "auto"

    @model_validator(mode="after")
    def _check_base(self) -> Self:
        if self.base is not None:
            check_path(self.base)
        return self

    @field_validator("trainer")
    @classmethod
    def _check_trainer(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given:
            from sentence_transformers.base.training_args import BaseTrainingArguments  # takes several seconds

            known = [field.name for field in dataclasses.fields(BaseTrainingArguments)]
            if unknown := [name for name in given if name not in known]:
                raise ValueError(f"there is no argument '{unknown[0]}'; {did_you_mean(unknown[0], known)}")
        return given

    def base_folder(self) -> Path:
        """Return the folder of the weights that training starts from."""
        return bundled_encoder() if self.base is None else model_folder(self.base, None, "base")

    def settings(self) -> dict[str, Any]:
        """Return the settings that change what is learned, without the base."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in NO_RECIPE}  # type: ignore[arg-type]


@stage
class EncoderRecipe(TrainingRecipe):
    """Settings of the training of an encoder for late interaction; those of a reranker's training, and:

    adapter: update of the base that the training goes on from, ``memory`` or a file; the new update holds both.
    query_length: tokens of a question. weighting: of the question's tokens in the score, ``idf`` as in the search.
    dimensions: numbers of a token's vector, by a linear map that is trained along; null: all that the base has.
    embeddings: train the vectors of the vocabulary too. rank: of the update that is saved beside the whole model.
    cached: compute gradients in pieces, so that a batch needs less memory and more time.
    """

    DECAY: ClassVar = 0.0

    negatives: Annotated[int, Field(ge=1)] = 1
    batch: Annotated[int, Field(ge=2)] = 32
    max_length: Annotated[int, Field(ge=16)] = 96
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 5e-5
    adapter: Literal["memory"] | LocalPath | None = None
    query_length: Annotated[int, Field(ge=8)] = 40
    weighting: Literal["uniform", "idf"] = "idf"
    dimensions: Annotated[int, Field(ge=8)] | None = None
    embeddings: bool = False
    rank: Annotated[int, Field(ge=1)] = 32
    cached: bool = False

    @model_validator(mode="after")
    def _check_adapter(self) -> Self:
        try:
            if self.adapter is not None and update_card(update_file(self.adapter)).dimensions is not None:
                raise ValueError(f"adapter={self.adapter} has a map to fewer numbers, and is not trained further. "
                                 "Fix: an update that was trained without dimensions")
        except MemlabError as error:  # as a ValueError pydantic reports it beside the other faults
            raise ValueError(str(error)) from error
        return self

    def embedder(self) -> SentenceEmbedder:
        """Return the encoder that training starts from; raise MemlabError for an update of other weights."""
        return SentenceEmbedder(path=self.base, adapter=self.adapter, device=self.device,
                                name=str(self.base or "minilm"))


Kind = TypeVar("Kind")


def train_command(kind: type[Kind], text: str, train: Callable[[Kind, list[str]], str], argv: Sequence[str] | None
                  ) -> int:
    """Run a training as the words of a command line say; return its exit status.

    Args:
        kind: The class of the settings.
        text: What ``--help`` prints before the settings.
        train: Takes the settings and the words that memlab.run would read, and returns a line about the training.
        argv: The words; None for those of the process.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or not set(HELP).isdisjoint(words):
        classes = [one.__doc__ for one in reversed(kind.__mro__) if dataclasses.is_dataclass(one)]
        print(*map(page, (text, *classes)), sep="\n\n")
        return 0

    def action() -> str:
        settings, others = split_words(words, kind)
        try:
            config = kind(**settings)
        except ValidationError as error:
            raise Faults(f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}".removeprefix(": ")
                         + (f"; write {e['loc'][0]}=VALUE" if e["type"] == "missing" else "")
                         for e in error.errors()) from error
        if isinstance(config, TrainingRecipe):  # importing torch takes several seconds
            print(f"{config.out_model}: loading the training libraries", file=sys.stderr, flush=True)
        return train(config, others)

    try:
        return report(action)
    except KeyboardInterrupt:
        resumes = " to continue from the last checkpoint" if issubclass(kind, TrainingRecipe) else ""
        print(f"\ninterrupted; give the same line again{resumes}", file=sys.stderr)
        return 130


def split_words(words: Sequence[str], kind: type) -> tuple[dict[str, Any], list[str]]:
    """Split a command line into settings of a training and the words that memlab.run would read.

    The seed is a word of both.

    >>> split_words(["data=locomo", "fold=1/3", "rate=5e-5"], TrainingRecipe)
    ({'fold': '1/3', 'rate': 5e-05}, ['data=locomo'])
    """
    from memlab.experiment.config.overrides import faults, try_parse

    names = [f.name for f in dataclasses.fields(kind)]
    settings: dict[str, Any] = {}
    own, others = own_words(words, names)
    wrong = [f"{word}: there is no setting '{key}'; {did_you_mean(key, [*names, 'data', 'store'])}"
             for word, key in ((word, word.partition("=")[0]) for word in others)
             if any("there is no setting" in fault for _, fault in faults({word: try_parse(word)}))]
    for key, value in own.items():
        if override := try_parse(f"{key}={value}"):
            settings[key] = override.value()
        else:
            wrong.append(f"{key}={value}: cannot be read as key=value")
    if wrong:
        raise Faults(wrong)
    return settings, [*others, f"seed={settings['seed']}"] if "seed" in settings else others


def finished_record(folder: Path, mark: str) -> dict[str, Any] | None:
    """Return the record of the model with this mark; raise MemlabError if the folder holds something else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        record: Any = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    if not isinstance(record, dict) or record.get("mark") != mark:
        raise MemlabError("holds something else, or a model of other data or another configuration",
                          where=f"out_model={folder}", fix="give another folder, or delete this one")
    return dict(record)


def sources_of(update: Path) -> list[Any]:
    """Return the sources that a training recorded beside its update; none without a record."""
    try:
        return list(read_json(update.parent / FILE)["sources"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def record_of_run(start: float, losses: list[float]) -> dict[str, Any]:
    """Return what a training records of its run: losses, seconds since ``start``, hardware, versions and commit."""
    return {"losses": tenths(losses), "seconds": round(time.perf_counter() - start, 1),
            "hardware": manifest.hardware(), "versions": manifest.versions(), **manifest.commit()}


def run_in_words(record: dict[str, Any]) -> str:
    """Return what was learned, and how the training went, in a phrase."""
    counts, losses = record["counts"], record["losses"]
    return (f"{counts['examples']:,} examples of {counts['questions']:,} questions, {counts['steps']:,} steps, "
            f"{record['seconds']:,.0f} s, loss {losses[0]:.3f} -> {losses[-1]:.3f}")


def tenths(losses: Sequence[float]) -> list[float]:
    """Return the mean loss of each tenth of the steps.

    >>> tenths([4.0, 2.0])
    [4.0, 2.0]
    """
    parts = np.array_split(np.array(losses), min(10, len(losses)))
    return [round(float(p.mean()), 4) for p in parts]


@stage
class FitRecipe:
    """Settings of a fit on rankings. All other words are those of memlab run.

    file: where it is written. l2: penalty on standardised weights; a hundred times the default fits other data better,
    and its own a little worse. Each word ``data=...`` opens a data set; ``data.*`` behind it belongs to it.
    """

    file: LocalPath
    l2: Annotated[float, Field(gt=0)] | None = None


def fit_command(argv: Sequence[str] | None, fit: Callable[..., Any], text: str) -> int:
    """Run a fit on the rankings of the data sets of a command line, and save it; return the exit status.

    ``fit`` takes the tables of each; ``text`` is what ``--help`` prints.
    """
    def train(recipe: FitRecipe, words: list[str]) -> str:
        arms = [read_arm(part) for part in split(words)]
        with enough_memory(OF_A_RUN):
            tables = [arm.pipeline.run(load(arm.dataset), store, until="measure") for arm, store in arms]
            save(fit(*tables, **({} if recipe.l2 is None else {"l2": recipe.l2})), recipe.file)
        fitted = (f"{one['questions'].height:,} questions of {arm.dataset.name}" for one, (arm, _) in zip(tables, arms))
        return f"fitted on {', '.join(fitted)}: {recipe.file}"

    return train_command(FitRecipe, text, train, argv)
