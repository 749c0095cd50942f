"""Sentence-transformers cross-encoders as pair scorers: raw logits, not probabilities.

Queries and passages are tokenised once each and joined into pairs by the tokenizer's own template, cut
longest-first as the tokenizer would cut them; pairs are then sorted by token length and packed to a budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from memlab.models.local.backend import to_device
from memlab.models.local.base import LocalModel, is_causal, saved_prompts
from memlab.models.local.batching import InputWindow, TokenRows, join, run_batches, tokenise, window_slices
from memlab.models.local.loading import LoadedModels
from memlab.models.protocols import Floats, Ints
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.errors import MemlabError


@dataclass(frozen=True)
class PairTemplate:
    """The tokens that a tokenizer puts before, between and after the two texts of a pair."""

    before: Ints
    between: Ints
    after: Ints
    second_type: int
    """Token type of the second text and all that follows it; everything before it has type 0."""

    @classmethod
    def of(cls, tokenizer: Any) -> PairTemplate:
        """Return the template of a tokenizer, read off one joined pair."""
        first, second = (tokenizer(word, add_special_tokens=False)["input_ids"] for word in ("question", "passage"))
        whole = tokenizer("question", "passage", return_token_type_ids=True)
        ids = whole["input_ids"]
        starts = [i for i in range(len(ids)) if ids[i:i + len(first)] == first]
        ends = [i for i in range(len(ids)) if ids[i:i + len(second)] == second]
        if not starts or not ends or ends[-1] < starts[0] + len(first):
            raise MemlabError("this tokenizer does not place two texts side by side", fix="use another cross-encoder")
        begin, end = starts[0], ends[-1]
        ids = np.asarray(ids, np.int64)
        types = whole.get("token_type_ids") or [0] * len(ids)
        return cls(ids[:begin], ids[begin + len(first):end], ids[end + len(second):], int(types[end]))

    @property
    def size(self) -> int:
        """Number of tokens that the template adds to a pair."""
        return len(self.before) + len(self.between) + len(self.after)

    def row(self, query: Any, passage: Any) -> Any:
        """Return two rows of token ids as one."""
        return np.concatenate([self.before, query, self.between, passage, self.after])


def cut_longest_first(first: Ints, second: Ints, room: int) -> tuple[Ints, Ints]:
    """Cut two lengths (n,) so that they fit ``room`` together, the longer one first, as tokenizers do.

    >>> [x.tolist() for x in cut_longest_first(np.array([3, 9, 3]), np.array([20, 9, 4]), 10)]
    [[3, 5, 3], [7, 5, 4]]
    """
    short, long = np.minimum(first, second), np.maximum(first, second)
    over = short + long > room
    half = over & (2 * short > room)
    long = np.where(half, room - room // 2, np.where(over, room - short, long))
    short = np.where(half, room // 2, short)
    swapped = first > second
    return np.where(swapped, long, short), np.where(swapped, short, long)


@stage
class CrossEncoderScorer(LocalModel):
    """A cross-encoder with one label, from a folder or the hub, loaded at the first call."""

    path: str | LocalPath | None = None  # cross_encoder.path=FOLDER, with config.json, weights and tokenizer
    name: str = "cross_encoder"
    max_length: Annotated[int, Field(ge=16)] | None = None  # tokens per pair; null: as the model's own files say

    def identity(self) -> dict[str, Any]:
        """Return all that can change a score."""
        prompt = {"prompt": self._prompt()} if self._prompt() else {}
        return self._identity("CrossEncoderScorer", max_length=self.max_length, **prompt)

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Score pairs (n, 2) of positions in queries and passages; yield (positions in pairs (b,), logits (b,))."""
        models, limit = self._models(), self.token_limit()
        first = models[0]
        template = PairTemplate.of(first.tokenizer)
        used_queries, query_of = np.unique(pairs[:, 0], return_inverse=True)
        used_passages, passage_of = np.unique(pairs[:, 1], return_inverse=True)
        left = tokenise(first.tokenizer, [self._prompt() + queries[i] for i in used_queries], limit, special=False)

        def prepare(at: slice) -> InputWindow[tuple[TokenRows, Ints]]:
            """Lay out all pairs of some passages, so that each passage is tokenised once."""
            right = tokenise(first.tokenizer, [passages[i] for i in used_passages[at]], limit, special=False)
            positions = np.flatnonzero((passage_of >= at.start) & (passage_of < at.stop))
            heads_of, tails_of = query_of[positions], passage_of[positions] - at.start
            heads, tails = cut_longest_first(left.lengths[heads_of], right.lengths[tails_of], limit - template.size)

            def batch(rows: Ints) -> tuple[TokenRows, Ints]:
                joined = [template.row(left.row(heads_of[i])[:heads[i]], right.row(tails_of[i])[:tails[i]])
                          for i in rows]
                return join(joined), tails[rows] + len(template.after)

            return InputWindow(positions, heads + tails + template.size, batch)

        def work(model: LoadedCrossEncoder, inputs: tuple[TokenRows, Ints]) -> Floats:
            logits = model.logits(*inputs, template.second_type)
            if not np.isfinite(logits).all():
                raise MemlabError(f"{self.name} gave a score that is not a number", fix="cross_encoder.dtype=fp32")
            return logits

        yield from run_batches(window_slices(len(used_passages)), prepare, self._budget(), models, work, models.room,
                               lanes=self._lanes())

    def token_limit(self) -> int:
        """Return the number of tokens that the model reads of a pair."""
        return self.max_length or int(self._models()[0].max_length)

    def _prompt(self) -> str:
        """Return what the model's own files put before a query."""
        return saved_prompts(self._folder(), "CrossEncoder")["default"]

    def _folder(self) -> Path:
        folder = super()._folder()
        if is_causal(folder):
            raise MemlabError("is a language model, which needs a prompt of its own, and no classifier of pairs",
                              where=f"{self.path_option}={self.path}", fix="a reranker that is a classifier; or "
                              "cross_encoder=bge_reranker_v2_gemma_flag, or a server: cross_encoder=http_rerank")
        return folder

    def _models(self) -> LoadedModels:
        return self._load("CrossEncoder", LoadedCrossEncoder)


class LoadedCrossEncoder:
    """The model and the tokenizer of a ``CrossEncoder`` on one device."""

    def __init__(self, loaded: Any, device: str) -> None:
        if loaded.num_labels != 1:
            raise MemlabError(f"this classifier has {loaded.num_labels} labels, a reranker has one",
                              where=str(loaded.config.name_or_path))
        # newer rerankers (Ettin) are an encoder with a head of their own modules, not a classifier of transformers
        self.model = loaded.model if len(loaded) == 1 else partial(_scores, loaded)
        self.tokenizer, self.device = loaded.tokenizer, device
        self.max_length = int(loaded.max_length or 512)
        self.typed = "token_type_ids" in self.tokenizer.model_input_names

    def logits(self, rows: TokenRows, second: Ints, second_type: int) -> Floats:
        """Return the logits (b,) of rows of token ids whose last ``second`` (b,) tokens have ``second_type``."""
        import torch

        ids, mask = rows.pad_batch(np.arange(len(second)), int(self.tokenizer.pad_token_id or 0))
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self.typed:
            columns = np.arange(ids.shape[1])
            inputs["token_type_ids"] = (columns >= (rows.lengths - second)[:, None]) * mask * second_type
        with torch.inference_mode():
            out = self.model(**{name: to_device(value, self.device) for name, value in inputs.items()})
            scores: Floats = out.logits[:, 0].float().cpu().numpy()
            return scores


def _scores(modules: Any, **inputs: Any) -> Any:
    """Run the modules of a ``CrossEncoder`` one after the other; return their scores as transformers returns logits."""
    return SimpleNamespace(logits=modules(inputs)["scores"])
