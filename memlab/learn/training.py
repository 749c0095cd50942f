"""Training runs of sentence-transformers' trainers: seeded, on one device, and continued after an interruption.

A checkpoint holds weights, optimiser, learning rate and random states, so that an interrupted training ends with the
same weights as one without interruption, on one machine and device with one number of threads. The digests of its files
are written last: what is cut short or changed is passed over. This module loads the training libraries: import it where
needed.
"""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Callable
from contextlib import suppress
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
from transformers import PrinterCallback, TrainerCallback

from memlab.experiment.harness.run_files import file_digest
from memlab.learn.pairs import TrainingLists
from memlab.learn.recipe import TrainingRecipe
from memlab.models.local.backend import disable_progress_bars, resolve
from memlab.models.local.batching import attempt
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write, disk_faults, write_json
from memlab.support.foreign import read_json
from memlab.support.progress import Step, progress

Columns = dict[str, list[Any]]

Watch = Callable[[int, float], None]
"""``watch(step, loss)`` is called after each step, which are counted from 0."""

SAVES = 10
"""Checkpoints of a training."""

DIGESTS = "digests.json"
"""File of a checkpoint with the digests of all others, by their names: it is written last."""

WARMUP = 0.1
"""Share of the steps in which the rate rises."""

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
    """Progress of a training, marks of its checkpoints, and an error for a loss that is no number."""

    def __init__(self, report: Step, watch: Watch | None) -> None:
        self.report, self.watch = report, watch
        self.losses: list[float] = []

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write the digests of a checkpoint, its last file."""
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        write_json(checkpoint / DIGESTS, digests(checkpoint))

    def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Report a step."""
        loss = others["logs"].get("loss")
        if loss is None:  # the summary at the end
            return
        if not math.isfinite(loss):
            raise MemlabError(f"the loss of step {state.global_step} is not a number", fix="a smaller rate")
        self.losses.append(loss)
        self.report(1, f"loss {np.mean(self.losses[-20:]):.3f}")
        if self.watch:
            self.watch(state.global_step - 1, loss)


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
                   watch: Watch | None = None) -> list[float]:
    """Train on lists of passages whose first is the positive. See ``run``.

    The loss is a softmax over one positive and n hard negatives of the same question (localized contrastive estimation;
    Gao, Dai & Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, ECIR 2021):

        loss = -log( exp s(q, p+) / (exp s(q, p+) + sum over negatives of exp s(q, p-)) )

    which is ListNet (Cao et al., ICML 2007) with all of the target on the positive.
    """
    columns: Columns = {"query": lists.queries, "passages": lists.passages,
                        "label": [[ALL] + [0.0] * (len(row) - 1) for row in lists.passages]}
    return run(CrossEncoderTrainer, RerankerArguments, model, columns, ListNetLoss(model, mini_batch_size=-1), recipe,
               folder, mark, watch)


def run(trainer: type[BaseTrainer], arguments: Any, model: Any, columns: Columns, loss: Any, recipe: TrainingRecipe,
        folder: Path, mark: str, watch: Watch | None = None, **options: Any) -> list[float]:
    """Train a model of sentence-transformers; return the loss of each step.

    Raises MemlabError when the loss is no longer a number, or a step does not fit into memory.

    Args:
        trainer: The library's class.
        arguments: The class of its arguments, with ``OneDevice``.
        model: The model; its weights change.
        columns: The examples as the library takes them; each step takes ``recipe.batch`` of them, in their order.
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
    steps = math.ceil(len(columns["query"]) / recipe.batch)
    checkpoint = last_checkpoint(folder)
    options |= {
        "output_dir": str(folder), "on": str(model.device), "use_cpu": model.device.type == "cpu",
        "num_train_epochs": 1, "per_device_train_batch_size": recipe.batch, "batch_sampler": in_order,
        "learning_rate": recipe.rate, "weight_decay": recipe.DECAY, "warmup_steps": round(WARMUP * steps),
        "bf16": recipe.precision == "bf16", "seed": recipe.seed, "save_strategy": "steps",
        "save_steps": max(1, steps // SAVES), "save_total_limit": 2, "logging_steps": 1,
        "logging_nan_inf_filter": False, "disable_tqdm": True, "report_to": "none", "dataloader_pin_memory": False}
    try:
        given = arguments(**options | recipe.trainer)
    except (TypeError, ValueError) as error:
        raise MemlabError(str(error), where="trainer", fix="a training argument of sentence-transformers") from error
    model.model_card_data.widget = [{}]  # else the library looks for examples, with a progress bar of its own
    done = _step(checkpoint) if checkpoint else 0
    with progress("fine-tuning", total=steps - done, unit="steps") as report:
        running = trainer(model, given, Dataset.from_dict(columns), loss=loss, callbacks=[Watcher(report, watch)])
        running.remove_callback(PrinterCallback)
        with disk_faults(folder):
            finished = attempt(lambda: running.train(str(checkpoint) if checkpoint else None))
    if finished is None:
        raise MemlabError(f"a step does not fit into the memory of {model.device}",
                          fix="a smaller batch or max_length, or fewer negatives")
    return [entry["loss"] for entry in running.state.log_history if "loss" in entry]


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint that was written to its end and is unchanged since; None without any."""
    for checkpoint in sorted(folder.glob("checkpoint-*"), key=_step, reverse=True):
        with suppress(OSError, ValueError):
            if read_json(checkpoint / DIGESTS) == digests(checkpoint):
                return checkpoint
    return None


def digests(checkpoint: Path) -> dict[str, str]:
    """Return the digest of each file of a checkpoint but ``DIGESTS``, by its path inside."""
    files = (path for path in sorted(checkpoint.rglob("*")) if path.is_file() and path.name != DIGESTS)
    return {path.relative_to(checkpoint).as_posix(): file_digest(path) for path in files}


def _step(checkpoint: Path) -> int:
    """Return the number of steps after which a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])
