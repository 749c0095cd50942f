"""Training runs of sentence-transformers' trainers: seeded, on one device, and continued after an interruption.

A checkpoint holds weights, optimiser, learning rate and random states, so that an interrupted training ends with the
same weights as one without interruption, on one machine and device with one number of threads. The digests of its files
are written last; a checkpoint that differs from them is left aside. With examples for
validation the weights of the step with the least loss on these are kept, and a training without progress ends early.
This module loads the training libraries: import it where needed.
"""

from __future__ import annotations

import logging
import math
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.cross_encoder import CrossEncoder
from sentence_transformers.cross_encoder.losses import ListNetLoss
from sentence_transformers.cross_encoder.trainer import CrossEncoderTrainer
from sentence_transformers.cross_encoder.training_args import CrossEncoderTrainingArguments
from torch.utils.data import SequentialSampler
from transformers import EarlyStoppingCallback, PrinterCallback, TrainerCallback

from memlab.errors import MemlabError
from memlab.harness.run_files import file_digest
from memlab.learn.pairs import TrainingLists
from memlab.learn.recipe import TrainingOutcome, TrainingRecipe
from memlab.models.local.backend import disable_progress_bars, resolve
from memlab.models.local.batching import attempt
from memlab.runtime.files import atomic_write, disk_faults, write_json
from memlab.runtime.foreign import read_json
from memlab.runtime.progress import Step, progress
from memlab.runtime.terminal import print

Columns = dict[str, list[Any]]

Watch = Callable[[int, float], None]
"""``watch(step, loss)`` is called after each step, which are counted from 0."""

EVALUATIONS, PATIENCE = 10, 3
"""Evaluations of a training on its examples for validation, and how many of them without progress end it."""

DIGESTS = "digests.json"
"""File of a checkpoint with the digests of all others, by their names."""

ALL = 100.0
"""Label of the positive beside 0 for the negatives: the softmax of the labels is 1 and, to the last digit, 0."""


class OneDevice:
    """Arguments of a training on the device ``on``, where the library would spread over all GPUs that it sees.

    A mixin of the library's classes of arguments.
    """

    on: str = "cpu"

    @cached_property
    def _setup_devices(self) -> torch.device:
        device: torch.device = super()._setup_devices  # type: ignore[misc]
        if self.on == "cpu":
            return device
        device = torch.device(self.on)
        torch.cuda.set_device(device)
        self._n_gpu = 1
        return device


@dataclass
class RerankerArguments(OneDevice, CrossEncoderTrainingArguments):
    """Arguments of a cross-encoder's training."""

    on: str = "cpu"


def in_order(dataset: Any, batch_size: int, drop_last: bool, **_: Any) -> DefaultBatchSampler:
    """Return batches in the order of the data set."""
    return DefaultBatchSampler(SequentialSampler(dataset), batch_size, drop_last)


class Watcher(TrainerCallback):
    """Progress of a training, its checkpoints by the clock, and an error for a loss that is no number."""

    def __init__(self, recipe: TrainingRecipe, report: Step, watch: Watch | None) -> None:
        self.recipe, self.report, self.watch = recipe, report, watch
        self.losses: list[float] = []
        self.last = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask for a checkpoint when it is time for one, and for an evaluation and a checkpoint after the last step."""
        if args.load_best_model_at_end and state.global_step == state.max_steps:
            control.should_evaluate = control.should_save = True
        if time.monotonic() - self.last >= self.recipe.checkpoint_seconds and state.global_step < state.max_steps:
            control.should_save, self.last = True, time.monotonic()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write the digests of a checkpoint, its last file."""
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        write_json(checkpoint / DIGESTS, digests(checkpoint))

    def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Report a step."""
        loss = others["logs"].get("loss")
        if loss is None:  # an evaluation, or the summary at the end
            return
        if not math.isfinite(loss):
            raise MemlabError(f"the loss of step {state.global_step} is not a number", fix="a smaller rate")
        self.losses.append(loss)
        self.report(1, f"loss {np.mean(self.losses[-20:]):.3f}")
        if self.watch:
            self.watch(state.global_step - 1, loss)


class Patience(EarlyStoppingCallback):
    """The library's early stopping, which an interruption after its decision does not undo."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 (a callback's signature)
        """End a training that had ended when it was interrupted, without another evaluation."""
        if self.early_stopping_patience_counter >= self.early_stopping_patience:
            control.should_evaluate, control.should_training_stop = False, True


def load_libraries() -> None:
    """Silence the libraries of a training; raise MemlabError without them."""
    if not (find_spec("accelerate") and find_spec("datasets")):
        raise MemlabError("a training needs accelerate and datasets, which are not installed", where="learn/training",
                          fix="pip install 'memlab[train]'")
    disable_progress_bars()
    for library in ("sentence_transformers", "transformers"):  # they warn that the head is new, as it should be
        logging.getLogger(library).setLevel(logging.ERROR)


def training_device(recipe: TrainingRecipe) -> str:
    """Return the device of a training: the first GPU or the CPU where the settings leave it open."""
    return resolve(recipe.device, "fp32", "torch").devices[0]


def load_reranker(recipe: TrainingRecipe) -> CrossEncoder:
    """Return the model to start from, with a new head drawn by the seed; raise MemlabError without the libraries."""
    load_libraries()
    torch.manual_seed(recipe.seed)
    return CrossEncoder(str(recipe.base_folder()), num_labels=1, max_length=recipe.max_length,
                        device=training_device(recipe), model_kwargs={"dtype": torch.float32})


def train_reranker(model: CrossEncoder, lists: TrainingLists, recipe: TrainingRecipe, folder: Path, mark: str,
                   watch: Watch | None = None) -> TrainingOutcome:
    """Train on lists of passages whose first is the positive. See ``run``.

    The loss is a softmax over one positive and n hard negatives of the same question (localized contrastive estimation;
    Gao, Dai & Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, ECIR 2021):

        loss = -log( exp s(q, p+) / (exp s(q, p+) + sum over negatives of exp s(q, p-)) )

    which is ListNet (Cao et al., ICML 2007) with all of the target on the positive.
    """
    def columns(lists: TrainingLists) -> Columns:
        return {"query": lists.queries, "passages": lists.passages,
                "label": [[ALL] + [0.0] * (len(row) - 1) for row in lists.passages]}

    return run(CrossEncoderTrainer, RerankerArguments, model, lists, columns, ListNetLoss(model, mini_batch_size=-1),
               recipe, folder, mark, watch)


def run(trainer: type[BaseTrainer], arguments: Any, model: Any, lists: TrainingLists,
        columns: Callable[[TrainingLists], Columns], loss: Any, recipe: TrainingRecipe, folder: Path, mark: str,
        watch: Watch | None = None, **options: Any) -> TrainingOutcome:
    """Train a model of sentence-transformers.

    Raises MemlabError when the loss is no longer a number, or a step does not fit into memory.

    Args:
        trainer: The library's class.
        arguments: The class of its arguments, with ``OneDevice``.
        model: The model; its weights change.
        lists: The examples; each step takes ``recipe.batch`` of them, in their order.
        columns: Returns examples as the library's trainer takes them.
        loss: The library's loss of this model.
        recipe: Settings of the training.
        folder: Holds the checkpoints; those of a training with another mark are deleted.
        mark: Names the training: one with the same mark goes on from the last checkpoint.
        watch: Called after each step.
        options: More of the library's arguments.
    """
    from datasets import Dataset

    if not (folder / "mark").is_file() or (folder / "mark").read_bytes() != mark.encode():
        shutil.rmtree(folder, ignore_errors=True)
        atomic_write(folder / "mark", mark)
    steps = math.ceil(len(lists.queries) / recipe.batch)
    with disk_faults(folder):
        checkpoint = last_checkpoint(folder)
    every = max(1, steps // EVALUATIONS)
    best: dict[str, Any] = {"save_strategy": "no"} if lists.validation is None else {
        "eval_strategy": "steps", "eval_steps": every, "save_strategy": "steps", "save_steps": every,
        "per_device_eval_batch_size": recipe.batch, "load_best_model_at_end": True,
        "metric_for_best_model": "eval_loss", "greater_is_better": False,
        "restore_callback_states_from_checkpoint": True}
    given = arguments(
        output_dir=str(folder), on=str(model.device), use_cpu=model.device.type == "cpu", num_train_epochs=1,
        per_device_train_batch_size=recipe.batch, batch_sampler=in_order, learning_rate=recipe.rate,
        weight_decay=recipe.decay, warmup_steps=round(recipe.warmup * steps), bf16=recipe.precision == "bf16",
        seed=recipe.seed, save_total_limit=2, logging_steps=1, logging_nan_inf_filter=False,
        disable_tqdm=True, report_to="none", dataloader_pin_memory=False, **best, **options)
    model.model_card_data.widget = [{}]  # else the library looks for examples, with a progress bar of its own
    done = _step(checkpoint) if checkpoint else 0
    with progress("fine-tuning", total=steps - done, unit="steps") as report:
        callbacks: list[TrainerCallback] = [Watcher(recipe, report, watch)]
        held: dict[str, Any] = {}
        if lists.validation is not None:
            callbacks.append(Patience(PATIENCE))
            held["eval_dataset"] = Dataset.from_dict(columns(lists.validation))
        running = trainer(model, given, Dataset.from_dict(columns(lists)), loss=loss, callbacks=callbacks, **held)
        running.remove_callback(PrinterCallback)
        with disk_faults(folder):
            finished = attempt(lambda: running.train(str(checkpoint) if checkpoint else None))
        if finished is None:
            raise MemlabError(f"a step does not fit into the memory of {model.device}",
                              fix="a smaller batch or max_length, or fewer negatives")
        log, best_loss = list(running.state.log_history), running.state.best_metric
        # the library only logs that it cannot load the best weights
        if held and not math.isclose(running.evaluate()["eval_loss"], best_loss or 0.0, rel_tol=1e-4):
            raise MemlabError(f"the weights of the best step ({running.state.best_global_step}) cannot be loaded",
                              where=str(folder), fix="validation=0, which keeps the last step")
    losses = [entry["loss"] for entry in log if "loss" in entry]
    return TrainingOutcome(losses, running.state.best_global_step or len(losses),
                   [(int(entry["step"]), entry["eval_loss"]) for entry in log if "eval_loss" in entry])


def digests(checkpoint: Path) -> dict[str, str]:
    """Return the digest of each file of a checkpoint but ``DIGESTS``, by its path inside."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != DIGESTS)
    return {path.relative_to(checkpoint).as_posix(): file_digest(path) for path in files}


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint that is whole, as is the best one that it leads back to; None without any.

    Others are renamed, and named on the terminal: libraries end in a traceback on some, and go on with wrong weights
    from others.
    """
    whole: dict[int, Path] = {}
    damaged: list[Path] = []
    for checkpoint in sorted(folder.glob("checkpoint-*")):
        try:
            written = read_json(checkpoint / DIGESTS) == digests(checkpoint)
        except (OSError, ValueError):
            written = False
        if written:
            whole[_step(checkpoint)] = checkpoint
        else:
            aside = folder / f"damaged-{checkpoint.name}"
            shutil.rmtree(aside, ignore_errors=True)
            damaged.append(checkpoint.rename(aside))
    best = {step: read_json(path / "trainer_state.json").get("best_global_step") for step, path in whole.items()}
    step = max((step for step in whole if best[step] in (None, *whole)), default=None)
    for checkpoint in damaged:
        print(f"{checkpoint}: was not written to its end, or has changed since; the training goes on from "
              f"{'the start' if step is None else f'step {step}'}", file=sys.stderr)
    return None if step is None else whole[step]


def _step(checkpoint: Path) -> int:
    """Return the number of steps after which a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])
