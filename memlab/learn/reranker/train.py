"""Fine-tuning a cross-encoder: batches, loss, steps, and a checkpoint from which the same weights come out.

The loss is a softmax over one positive and n hard negatives of the same question (localized contrastive estimation;
Gao, Dai & Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, ECIR 2021):

    loss = -log( exp s(q, p+) / (exp s(q, p+) + sum over negatives of exp s(q, p-)) )

All randomness is drawn anew for each step from (seed, step), so that an interrupted training goes on as if it had not
been interrupted: on one machine, with one number of threads, the weights are the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.learn.reranker.config import Recipe
from memlab.models.local.backend import quietly
from memlab.models.local.batching import Tokens, join, tokenise
from memlab.models.local.cross_encoder import PairTemplate, cut_longest_first
from memlab.models.protocols import Ints
from memlab.runtime.files import atomic_path
from memlab.runtime.progress import progress

WINDOW = 8
"""Batches that are filled from one sorted stretch of the shuffled examples: little padding, still mixed."""

Watch = Callable[[int, float], None]


@dataclass(frozen=True)
class Lessons:
    """Examples as numbers: row i is a query, its positive, and the negatives to draw from."""

    queries: list[str]
    passages: list[str]
    query: Ints
    positive: Ints
    negatives: list[Ints]

    @classmethod
    def of(cls, examples: pl.DataFrame, limit: int | None, seed: int) -> Lessons:
        """Number the distinct texts of ``reranker_examples.examples``; keep ``limit`` rows, drawn by seed."""
        if limit is not None and limit < examples.height:
            kept = np.sort(np.random.default_rng([seed, 1]).permutation(examples.height)[:limit])
            examples = examples[kept]
        queries = list(dict.fromkeys(examples["query"]))
        passages = list(dict.fromkeys([*examples["positive"], *examples["negatives"].explode()]))
        number_q, number_p = ({text: i for i, text in enumerate(texts)} for texts in (queries, passages))
        return cls(queries, passages, np.array([number_q[t] for t in examples["query"]], np.int64),
                   np.array([number_p[t] for t in examples["positive"]], np.int64),
                   [np.array([number_p[t] for t in row], np.int64) for row in examples["negatives"]])


def batches(lessons: Lessons, lengths: Ints, recipe: Recipe, epoch: int) -> list[Ints]:
    """Return an epoch's batches (b, 2 + negatives): query, positive, negatives; the same for the same seed.

    ``lengths`` (rows,) sort the rows of a window, so that a batch holds examples of like length. Where a row has
    fewer negatives than asked for, some are drawn twice.
    """
    draw = np.random.default_rng([recipe.seed, 2, epoch])
    order = draw.permutation(len(lengths))
    made = []
    for start in range(0, len(order), WINDOW * recipe.batch):
        window = order[start:start + WINDOW * recipe.batch]
        window = window[np.argsort(lengths[window], kind="stable")]
        parts = [window[i:i + recipe.batch] for i in range(0, len(window), recipe.batch)]
        made += [parts[i] for i in draw.permutation(len(parts))]
    picked = [draw.choice(some, recipe.negatives, replace=len(some) < recipe.negatives) for some in lessons.negatives]
    return [np.stack([np.concatenate([[lessons.query[i], lessons.positive[i]], picked[i]]) for i in part])
            for part in made]


class Trainer:
    """A model, its optimiser, and the texts that it learns from."""

    def __init__(self, lessons: Lessons, recipe: Recipe) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils import logging

        quietly()
        logging.set_verbosity_error()  # that the head is new is the point
        source = str(recipe.base_folder())
        torch.manual_seed(recipe.seed)
        self.recipe, self.lessons = recipe, lessons
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1)
        self.model: Any = model.float().to(self.device).train()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(source)
        self.tokenizer.model_max_length = recipe.max_length
        self.typed = "token_type_ids" in self.tokenizer.model_input_names
        self.template = PairTemplate.of(self.tokenizer)
        self.left = tokenise(self.tokenizer, lessons.queries, recipe.max_length, special=False)
        self.right = tokenise(self.tokenizer, lessons.passages, recipe.max_length, special=False)
        self.names = [name for name, _ in self.model.named_parameters()]
        weights = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]  # biases and norms are not decayed
        self.optimiser = torch.optim.AdamW([{"params": weights, "weight_decay": recipe.decay},
                                            {"params": others, "weight_decay": 0.0}], lr=recipe.rate)
        lengths = self.left.lengths[lessons.query] + np.array(
            [max(self.right.lengths[p], *self.right.lengths[n]) for p, n in zip(lessons.positive, lessons.negatives)])
        self.steps = [b for e in range(recipe.epochs) for b in batches(lessons, lengths, recipe, e)]
        self.losses: list[float] = []

    def train(self, checkpoint: Path, mark: str, watch: Watch | None = None) -> None:
        """Take all steps that are left; raises MemlabError when the loss is no longer a number."""
        self._resume(checkpoint, mark)
        last = time.monotonic()
        with progress("fine-tuning", total=len(self.steps) - len(self.losses), unit="steps") as tell:
            for step in range(len(self.losses), len(self.steps)):
                loss = self._step(step)
                if not np.isfinite(loss):
                    raise MemlabError(f"the loss of step {step + 1} is not a number", fix="a smaller rate")
                self.losses.append(loss)
                if time.monotonic() - last >= self.recipe.checkpoint_seconds:
                    self._keep(checkpoint, mark)
                    last = time.monotonic()
                tell(1, f"loss {np.mean(self.losses[-20:]):.3f}")
                if watch:
                    watch(step, loss)

    def save(self, folder: Path) -> None:
        """Write configuration, weights and tokenizer, as ``CrossEncoderScorer`` reads them."""
        self.model.eval().save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _step(self, step: int) -> float:
        import torch

        torch.manual_seed(np.random.default_rng([self.recipe.seed, 3, step]).integers(2**31).item())  # for dropout
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate(step)
        rows = self.steps[step]                                                    # (b, 2 + negatives)
        half = torch.autocast(self.device, torch.bfloat16, enabled=self.recipe.precision == "bf16")
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
        """Return the learning rate of a step: up a line, then down a line."""
        rising = max(1, round(self.recipe.warmup * len(self.steps)))
        share = (step + 1) / rising if step < rising else (len(self.steps) - step) / max(len(self.steps) - rising, 1)
        return self.recipe.rate * share

    def _logits(self, query: Ints, passage: Ints) -> Any:
        """Return the logits (n,) of pairs of row numbers in queries and passages, with gradients."""
        import torch

        room = self.recipe.max_length - self.template.size
        heads, tails = cut_longest_first(self.left.lengths[query], self.right.lengths[passage], room)
        rows: Tokens = join([self.template.row(self.left.row(q)[:h], self.right.row(p)[:t])
                             for q, p, h, t in zip(query, passage, heads, tails)])
        ids, mask = rows.padded(np.arange(len(query)), int(self.tokenizer.pad_token_id or 0))
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self.typed:
            second = (tails + len(self.template.after))[:, None]
            inputs["token_type_ids"] = (np.arange(ids.shape[1]) >= rows.lengths[:, None] - second) * mask * (
                self.template.second_type)
        out = self.model(**{name: torch.from_numpy(value).to(self.device) for name, value in inputs.items()})
        return out.logits[:, 0].float()

    def _keep(self, path: Path, mark: str) -> None:
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
        """Go on from a checkpoint of the same training; any other is left to be overwritten."""
        from safetensors import safe_open

        if not path.is_file():
            return
        with safe_open(path, framework="pt") as file:
            said = file.metadata() or {}
            if said.get("mark") != mark:
                return
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        self.losses = json.loads(said["losses"])
        self.model.load_state_dict({n: tensors[f"model.{n}"] for n in self.model.state_dict()})
        for name, parameter in self.model.named_parameters():
            self.optimiser.state[parameter] = {
                key: tensors[f"adam.{key}.{name}"].to("cpu" if key == "step" else self.device)
                for key in ("step", "exp_avg", "exp_avg_sq") if f"adam.{key}.{name}" in tensors}
