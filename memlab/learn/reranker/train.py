"""Fine-tuning of a cross-encoder: batches, loss, steps, and a checkpoint that leads to the same weights.

The loss is a softmax over one positive and n hard negatives of the same question (localized contrastive estimation;
Gao, Dai & Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, ECIR 2021):

    loss = -log( exp s(q, p+) / (exp s(q, p+) + sum over negatives of exp s(q, p-)) )

The random numbers of each step are drawn from (seed, step) alone, so that an interrupted training ends with the same
weights as one without interruption, on one machine and device with one number of threads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.learn.reranker.config import TrainConfig
from memlab.models.local.backend import disable_progress_bars, resolve
from memlab.models.local.batching import TokenRows, attempt, join, tokenise
from memlab.models.local.cross_encoder import PairTemplate, cut_longest_first
from memlab.models.protocols import Ints
from memlab.runtime.files import atomic_path
from memlab.runtime.progress import progress

WINDOW = 8
"""Batches that are filled from one sorted stretch of the shuffled examples: little padding, and still mixed."""

Watch = Callable[[int, float], None]


@dataclass(frozen=True)
class TrainingSet:
    """Examples as numbers: row i is a query, its positive, and the negatives to draw from."""

    queries: list[str]
    passages: list[str]
    query: Ints
    positive: Ints
    negatives: list[Ints]

    @classmethod
    def of(cls, examples: pl.DataFrame, limit: int | None, seed: int) -> TrainingSet:
        """Number the distinct texts of the examples; keep ``limit`` rows, drawn by seed."""
        if limit is not None and limit < examples.height:
            kept = np.sort(np.random.default_rng([seed, 1]).permutation(examples.height)[:limit])
            examples = examples[kept]
        queries = list(dict.fromkeys(examples["query"]))
        passages = list(dict.fromkeys([*examples["positive"], *examples["negatives"].explode()]))
        number_q, number_p = ({text: i for i, text in enumerate(texts)} for texts in (queries, passages))
        return cls(queries, passages, np.array([number_q[t] for t in examples["query"]], np.int64),
                   np.array([number_p[t] for t in examples["positive"]], np.int64),
                   [np.array([number_p[t] for t in row], np.int64) for row in examples["negatives"]])


def batches(data: TrainingSet, lengths: Ints, config: TrainConfig, epoch: int) -> list[Ints]:
    """Return the batches (b, 2 + negatives) of an epoch: query, positive, negatives; the same for the same seed.

    ``lengths`` (rows,) sort the rows of a window, so that a batch holds examples of similar length. Where a row has
    too few negatives, some are drawn twice.
    """
    draw = np.random.default_rng([config.seed, 2, epoch])
    order = draw.permutation(len(lengths))
    parts: list[Ints] = []
    for start in range(0, len(order), WINDOW * config.batch):
        window = order[start:start + WINDOW * config.batch]
        window = window[np.argsort(lengths[window], kind="stable")]
        sorted_parts = [window[i:i + config.batch] for i in range(0, len(window), config.batch)]
        parts += [sorted_parts[i] for i in draw.permutation(len(sorted_parts))]
    drawn = [draw.choice(some, config.negatives, replace=len(some) < config.negatives) for some in data.negatives]
    return [np.stack([np.concatenate([[data.query[i], data.positive[i]], drawn[i]]) for i in part])
            for part in parts]


class Trainer:
    """A model, its optimiser, and its training set."""

    def __init__(self, data: TrainingSet, config: TrainConfig) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils import logging

        disable_progress_bars()
        logging.set_verbosity_error()  # transformers warns that the head is new, which is what we want
        source = str(config.base_folder())
        torch.manual_seed(config.seed)
        self.config, self.data = config, data
        self.device = resolve(config.device, "fp32", "torch").devices[0]
        model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1)
        self.model: Any = model.float().to(self.device).train()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(source)
        self.tokenizer.model_max_length = config.max_length
        self.typed = "token_type_ids" in self.tokenizer.model_input_names
        self.template = PairTemplate.of(self.tokenizer)
        self.left = tokenise(self.tokenizer, data.queries, config.max_length, special=False)
        self.right = tokenise(self.tokenizer, data.passages, config.max_length, special=False)
        self.names = [name for name, _ in self.model.named_parameters()]
        weights = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]  # biases and norms are not decayed
        self.optimiser = torch.optim.AdamW([{"params": weights, "weight_decay": config.decay},
                                            {"params": others, "weight_decay": 0.0}], lr=config.rate)
        lengths = self.left.lengths[data.query] + np.array(
            [max(self.right.lengths[p], *self.right.lengths[n]) for p, n in zip(data.positive, data.negatives)])
        self.steps = [b for e in range(config.epochs) for b in batches(data, lengths, config, e)]
        self.losses: list[float] = []

    def train(self, checkpoint: Path, mark: str, watch: Watch | None = None) -> None:
        """Take all remaining steps; raise MemlabError when the loss is no longer a number, or a step does not fit."""
        self._resume(checkpoint, mark)
        last = time.monotonic()
        with progress("fine-tuning", total=len(self.steps) - len(self.losses), unit="steps") as report:
            for step in range(len(self.losses), len(self.steps)):
                loss = attempt(partial(self._step, step))
                if loss is None:
                    raise MemlabError(f"a step does not fit into the memory of {self.device}",
                                      fix="a smaller batch or max_length, or fewer negatives")
                if not np.isfinite(loss):
                    raise MemlabError(f"the loss of step {step + 1} is not a number", fix="a smaller rate")
                self.losses.append(loss)
                if time.monotonic() - last >= self.config.checkpoint_seconds:
                    self._checkpoint(checkpoint, mark)
                    last = time.monotonic()
                report(1, f"loss {np.mean(self.losses[-20:]):.3f}")
                if watch:
                    watch(step, loss)

    def save(self, folder: Path) -> None:
        """Write configuration, weights and tokenizer, as ``CrossEncoderScorer`` reads them."""
        self.model.eval().save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _step(self, step: int) -> float:
        import torch

        torch.manual_seed(np.random.default_rng([self.config.seed, 3, step]).integers(2**31).item())  # for dropout
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate(step)
        rows = self.steps[step]                                                    # (b, 2 + negatives)
        half = torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=self.config.precision == "bf16")
        with half:
            logits = self._logits(np.repeat(rows[:, 0], rows.shape[1] - 1), rows[:, 1:].reshape(-1))
        logits = logits.reshape(len(rows), -1)                                     # (b, 1 + negatives)
        loss = torch.nn.functional.cross_entropy(logits, torch.zeros(len(rows), dtype=torch.long, device=self.device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        return float(loss.detach())

    def _rate(self, step: int) -> float:
        """Return the learning rate of a step: it rises linearly, then falls linearly."""
        rising = max(1, round(self.config.warmup * len(self.steps)))
        share = (step + 1) / rising if step < rising else (len(self.steps) - step) / max(len(self.steps) - rising, 1)
        return self.config.rate * share

    def _logits(self, query: Ints, passage: Ints) -> Any:
        """Return the logits (n,) of pairs of row numbers in queries and passages, with gradients."""
        import torch

        room = self.config.max_length - self.template.size
        heads, tails = cut_longest_first(self.left.lengths[query], self.right.lengths[passage], room)
        rows: TokenRows = join([self.template.row(self.left.row(q)[:h], self.right.row(p)[:t])
                             for q, p, h, t in zip(query, passage, heads, tails)])
        ids, mask = rows.padded(np.arange(len(query)), int(self.tokenizer.pad_token_id or 0))
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self.typed:
            second = (tails + len(self.template.after))[:, None]
            inputs["token_type_ids"] = (np.arange(ids.shape[1]) >= rows.lengths[:, None] - second) * mask * (
                self.template.second_type)
        out = self.model(**{name: torch.from_numpy(value).to(self.device) for name, value in inputs.items()})
        return out.logits[:, 0].float()

    def _checkpoint(self, path: Path, mark: str) -> None:
        """Write weights and optimiser state."""
        from safetensors.torch import save_file

        tensors = {f"model.{n}": t.detach().cpu().clone() for n, t in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimiser.state[parameter].items():
                tensors[f"adam.{key}.{name}"] = value.detach().cpu().clone()
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata={"mark": mark, "losses": json.dumps(self.losses)})

    def _resume(self, path: Path, mark: str) -> None:
        """Continue from a checkpoint of the same training; any other is ignored, and overwritten later."""
        from safetensors import safe_open

        if not path.is_file():
            return
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("mark") != mark:
                return
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        self.losses = json.loads(metadata["losses"])
        self.model.load_state_dict({n: tensors[f"model.{n}"] for n in self.model.state_dict()})
        for name, parameter in self.model.named_parameters():
            self.optimiser.state[parameter] = {
                key: tensors[f"adam.{key}.{name}"].to("cpu" if key == "step" else self.device)
                for key in ("step", "exp_avg", "exp_avg_sq") if f"adam.{key}.{name}" in tensors}
