"""Learned list truncation: a small Transformer over the scores of a ranking that learns where to cut it.

Bahri, Tay, Zheng, Metzler, Tomkins: Choppy: Cut Transformer for Ranked List Truncation, SIGIR 2020; its place among the
learned cuts: Meng, Arabzadeh, Askari, Aliannejadi, de Rijke, Ranked List Truncation for Large Language Model-based
Re-Ranking, SIGIR 2024. The network returns a probability for each cut k, and is trained to raise the expected reward

    sum over k of p(k) x r(k),   r(k) = [the first k units hold all evidence] - cost x (their tokens / tokens of a unit)

Two things differ from the paper. The reward has a price for tokens in place of F1 or NDCG. The cost is an input, drawn
anew for each question and step, so that one fit serves the whole curve. The layer is smaller: a few hundred questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from pydantic import Field
from threadpoolctl import threadpool_limits
from torch import nn

from memlab.learn.folds import CrossFitted, EvidenceLevel, scored_evidence, smallest_k
from memlab.rank.select import Count, need
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

Reals = NDArray[np.float64]
Places = NDArray[np.int64]
Cost = Annotated[float, Field(gt=0, lt=1)]

COSTS = tuple(float(c) for c in np.geomspace(0.3, 1e-4, 60))
"""Costs of one unit of mean length, as shares of a complete question: from one that shows little to one that shows all.
Cuts are computed at these."""

INPUTS = 4
"""Inputs of each position: standard score, gap to the next, log of the tokens, log of the cost."""


@dataclass(frozen=True)
class Lists:
    """Rankings as arrays (questions, depth): scores, tokens, and which ranks exist; ``complete`` (questions,).

    ``complete`` is the smallest K that holds all evidence, infinite if none does or it is unknown.
    """

    scores: Reals
    tokens: Reals
    exists: NDArray[np.bool_]
    complete: Reals

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Lists:
        """Return the chosen questions."""
        return Lists(self.scores[chosen], self.tokens[chosen], self.exists[chosen], self.complete[chosen])

    def unit(self) -> float:
        """Return the mean tokens of a unit, at least 1."""
        return max(float(self.tokens[self.exists].mean()), 1.0) if self.exists.any() else 1.0

    def by_content(self) -> Lists:
        """Return the questions in an order that depends on their content alone."""
        return self.part(np.lexsort((self.complete, *self.tokens.T[:3], *self.scores.T[:3])))


class Choppy(nn.Module):
    """One Transformer layer over the ranks, with learned positions, and one logit for each cut."""

    def __init__(self, depth: int, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.enter = nn.Linear(INPUTS, width)
        self.position = nn.Parameter(0.02 * torch.randn(depth, width))
        self.layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, batch_first=True)
        self.leave = nn.Linear(width, 1)

    def forward(self, inputs: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
        """Return the probability of each cut (questions, depth) from inputs (questions, depth, INPUTS)."""
        hidden = self.layer(self.enter(inputs) + self.position, src_key_padding_mask=~exists)
        return torch.softmax(self.leave(hidden).squeeze(-1).masked_fill(~exists, float("-inf")), dim=1)


@dataclass(frozen=True)
class Fitted:
    """A trained network, with the tokens of a unit on its training data."""

    network: Choppy
    unit: float

    def cut_costs(self, lists: Lists) -> Reals:
        """Return, for each rank (questions, depth), the largest of ``COSTS`` at which it is shown; 0 if at none.

        The cut at a cost is the most probable one, and never lies before the cut at a larger cost.
        """
        shown = np.zeros(lists.scores.shape)
        ranks = np.arange(lists.scores.shape[1])
        self.network.eval()
        with torch.no_grad(), threadpool_limits(limits=1):  # small products: waiting threads cost more than they bring
            for cost in COSTS:
                p = self.network(*_inputs(lists, np.full(len(lists.scores), cost), self.unit)).numpy()
                head = ranks <= p.round(6).argmax(axis=1)[:, None]
                shown = np.where((shown == 0) & head & lists.exists, cost, shown)
        return shown


def fit(lists: Lists, seed: int, epochs: int, batch: int = 128) -> Fitted:
    """Train on the questions that have a known ``complete``, or none within the depth; the same for the same seed."""
    lists, unit = lists.by_content(), lists.unit()
    draw = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]), threadpool_limits(limits=1):
        torch.manual_seed(seed)
        network = Choppy(lists.scores.shape[1])
        steps = torch.optim.Adam(network.parameters(), lr=3e-3)
        network.train()
        for _ in range(epochs):
            order = draw.permutation(len(lists.scores))
            for start in range(0, len(order), batch):
                part = lists.part(order[start:start + batch])
                cost = np.exp(draw.uniform(np.log(COSTS[-1]), np.log(COSTS[0]), len(part.scores)))
                gain = torch.from_numpy(rewards(part, cost, unit)).float()
                loss = -(network(*_inputs(part, cost, unit)) * gain).sum(dim=1).mean()
                steps.zero_grad()
                loss.backward()
                steps.step()
    return Fitted(network, unit)


def rewards(lists: Lists, cost: Reals, unit: float) -> Reals:
    """Return r(k) for each cut (questions, depth); ``cost`` (questions,) is the price of ``unit`` tokens."""
    k = np.arange(1, lists.scores.shape[1] + 1)
    spent = np.where(lists.exists, lists.tokens, 0).cumsum(axis=1) / unit
    return (k >= lists.complete[:, None]).astype(np.float64) - cost[:, None] * spent


def _inputs(lists: Lists, cost: Reals, unit: float) -> tuple[torch.Tensor, torch.Tensor]:
    n = np.maximum(lists.exists.sum(axis=1, keepdims=True), 1)
    mean = np.where(lists.exists, lists.scores, 0).sum(axis=1, keepdims=True) / n
    spread = np.sqrt((np.where(lists.exists, lists.scores - mean, 0) ** 2).sum(axis=1, keepdims=True) / n)
    z = np.where(lists.exists, (lists.scores - mean) / np.where(spread > 0, spread, 1), 0)
    gap = np.append(z[:, :-1] - z[:, 1:], np.zeros((len(z), 1)), axis=1) * np.roll(lists.exists, -1, axis=1)
    length = np.log1p(np.where(lists.exists, lists.tokens, 0) / unit)
    price = np.broadcast_to(np.log(cost)[:, None], z.shape) / 4
    return torch.from_numpy(np.stack([z, gap, length, price], axis=2)).float(), torch.from_numpy(lists.exists)


@stage
class CutAtCost:
    """Select the units whose ``cut_cost`` is at least ``cost``."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    cost: Cost = 0.01

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        need(tables["ranking"], "cut_cost", "choose rank/select=choppy")
        return Tables(ranking=tables["ranking"].with_columns(
            (pl.col("cut_cost") >= self.cost).fill_null(False).alias("selected")))


@stage(sees=("gold",), fits="all")
class LearnedTruncation(CrossFitted):
    """Cut each ranking by a network over its scores and tokens (``memlab.learn.truncation``).

    Each question's cut is made by a network that was fitted on the other folds. Questions that do not count in
    retrieval averages are cut, not fitted on. ``cost`` is what a unit of mean length costs, as a share of a question
    with complete evidence. The column ``cut_cost`` is the largest cost at which a unit is shown.
    """

    reads: ClassVar = ("ranking", "units", "evidence", "gold", "questions", "turns")
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched baseline

    cost: Cost = 0.01
    level: EvidenceLevel = "turn"  # the evidence that must be complete
    depth: Count = 60  # ranks beyond are never shown
    epochs: Count = 40

    def variations(self) -> Iterator[CutAtCost]:
        """Yield the rule at each cost, for a ranking that it has cut."""
        for cost in COSTS:
            yield CutAtCost(cost=cost)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``cut_cost`` and ``selected``."""
        ranking = tables["ranking"].drop("cut_cost", strict=False)
        if not ranking.height:
            return Tables(ranking=ranking)
        need(ranking, "tokens", "run read/measure before the selection")
        near = ranking.filter(pl.col("rank") <= self.depth).sort("question", "rank")
        costs = pl.Series("cut_cost", self._cut_costs(near, tables))
        joined = ranking.join(near.select("question", "unit", costs), on=["question", "unit"], how="left",
                              maintain_order="left")
        return CutAtCost(cost=self.cost).run(Tables(ranking=joined), store)

    def _cut_costs(self, near: pl.DataFrame, tables: Tables) -> Reals:
        """Return the cut cost of each row of ``near``."""
        fold_of = self.fold_of(tables)
        needed = smallest_k(near, tables["units"], scored_evidence(tables), self.level)
        known = near.select(pl.col("question").unique().sort()).join(fold_of, on="question", how="left").join(
            needed.with_columns(counts=True), on="question", how="left").sort("question")
        lists, q, r = _lists(near, known["complete"].cast(pl.Float64).fill_null(float("inf")).to_numpy(), self.depth)
        counts, fold = known["counts"].fill_null(False).to_numpy(), known["fold"].to_numpy()
        costs = np.zeros(lists.scores.shape)
        for part in np.unique(fold):
            fitted = fit(lists.part(counts & (fold != part)), self.seed, self.epochs)
            costs[fold == part] = fitted.cut_costs(lists.part(fold == part))
        return costs[q, r]


def _lists(near: pl.DataFrame, complete: Reals, depth: int) -> tuple[Lists, Places, Places]:
    """Return the rankings (question, rank; sorted) as arrays, and the place of each row in them."""
    q = near["question"].rank("dense").to_numpy().astype(np.int64) - 1
    r = near["rank"].to_numpy().astype(np.int64) - 1
    exists = np.zeros((len(complete), depth), bool)
    exists[q, r] = True
    scores, tokens = np.zeros((2, len(complete), depth))
    scores[q, r], tokens[q, r] = near["score"].to_numpy(), near["tokens"].fill_null(0.0).to_numpy()
    return Lists(scores, tokens, exists, complete), q, r
