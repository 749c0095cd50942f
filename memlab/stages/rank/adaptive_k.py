"""Adaptive K: a cut in the sorted scores, as published, or top-p; its token-matched baseline.

Adaptive-k as published: K from the shape of the sorted scores, by one of three strategies.

Taguchi, Maekawa, Bhutani: Efficient Context Selection for Long-Context QA: No Tuning, No Iteration, Just Adaptive-k,
EMNLP 2025; repository megagonlabs/adaptive-k-retrieval. With scores s(1) >= ... >= s(n), cuts in the last tenth are
barred, and ``buffer`` units are added behind the cut:

* largest_gap: the first i with the largest s(i) - s(i + 1);
* moving_average: the same for the average of s(i), ..., s(i + window - 1);
* second_difference: where the gaps, after they have grown, shrink for the first time; where they never do, the largest
  gap of the scores that are not barred.

The repository ranks all passages of a task. Here n is at most ``depth``, the ranks that are measured. It gives no
value for the window. Differences are rounded to six decimals, so that machines agree on the cut.

Top-p selection: the most probable units that together hold a share p of the probability, the nucleus.

Holtzman et al., The Curious Case of Neural Text Degeneration, ICLR 2020, for the tokens of a language model; over a
ranking it is common practice. The probabilities are a softmax of the scores, or the ranking's calibrated ones.

The token-matched baseline of an adaptive K: a constant K with the same mean context tokens.

An adaptive arm that shows more text finds more evidence for that reason. Its baseline shows floor(k) or floor(k) + 1
units, drawn for each question, with k such that both arms show the same number of tokens on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import floor
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.data.numbering import draws
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS, Tables
from memlab.stages.rank.select import POINTS, Count, cut, need
from memlab.store import Store
from memlab.support.errors import MemlabError

Scores = NDArray[np.float64]
Strategy = Literal["largest_gap", "moving_average", "second_difference"]

LARGEST_BUFFER = 50
"""The largest buffer of a curve: its last point shows at least as much as the largest constant K."""


def largest_gap(scores: Scores, tail: float, window: int = 1) -> int:
    """Return how many of the scores (n,), sorted from high to low, lie before the largest gap.

    ``window`` > 1 takes the gaps of a moving average. The last ``tail`` of the gaps do not count. All scores are
    returned if there are no gaps.

    >>> largest_gap(np.array([9.0, 8.0, 3.0, 2.0]), tail=0.1), largest_gap(np.array([9.0]), tail=0.1)
    (2, 1)
    """
    gaps = np.round((scores[:-window] - scores[window:]) / window, DIGITS)
    allowed = gaps[:max(len(gaps) - gaps_in_tail(len(scores), tail), 1)]
    return int(allowed.argmax()) + 1 if len(allowed) else len(scores)


def second_difference(scores: Scores, tail: float) -> int:
    """Return how many of the scores (n,) lie up to the first place where the gaps shrink after they have grown.

    The last ``tail`` of the scores are left out first. The unit behind the large gap is counted, as in the repository.

    >>> second_difference(np.array([9.0, 8.5, 5.0, 4.5, 4.2]), tail=0.1)
    3
    """
    head = scores[:len(scores) - gaps_in_tail(len(scores), tail)]
    bend = np.round(np.diff(head, n=2), DIGITS)  # above 0: the next gap is smaller
    grown = np.minimum.accumulate(bend)[:-1] < 0
    places = np.flatnonzero((bend[1:] > 0) & grown)
    return int(places[0]) + 3 if len(places) else largest_gap(head, tail)


def gaps_in_tail(n: int, tail: float) -> int:
    """Return how many of the n - 1 gaps lie in the tail, where no cut is allowed."""
    return int((n - 1) * tail)


@stage
class ScoreCut:
    """Base of the rules that cut where the sorted scores of a question say, and show ``buffer`` more units."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)
    by_tokens: ClassVar = False
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched baseline

    buffer: Annotated[int, Field(ge=0)] = 0
    depth: Count = 200  # the scores looked at; ranks beyond are never shown

    def variations(self) -> Iterator[ScoreCut]:
        """Yield the rule with a ``buffer`` from 0 to ``LARGEST_BUFFER``."""
        for buffer in range(LARGEST_BUFFER + 1):
            yield replace(self, buffer=buffer)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        lists = tables["ranking"].filter(pl.col("rank") <= self.depth).sort("question", "rank").group_by(
            "question", maintain_order=True).agg("score")
        found = [self.place(scores.to_numpy()) for scores in lists["score"]]
        k = [min(place + self.buffer, self.depth) for place in found]
        return cut(tables["ranking"], lists.select("question", pl.Series("k", k, pl.Int32)))

    def place(self, scores: Scores) -> int:
        """Return the number of units before the cut in descending scores (n,)."""
        raise NotImplementedError


@stage
class AdaptiveK(ScoreCut):
    """Cut where the strategy finds the end of the relevant scores, and show ``buffer`` more units."""

    strategy: Strategy = "largest_gap"
    buffer: Annotated[int, Field(ge=0)] = 5  # published
    tail: Annotated[float, Field(ge=0, lt=1)] = 0.1  # published: no cut in the last tenth of the scores
    window: Annotated[int, Field(ge=2)] = 3  # of the moving average; the repository names none

    def place(self, scores: Scores) -> int:
        """Return the number of units before the strategy's cut."""
        if self.strategy == "second_difference":
            return second_difference(scores, self.tail)
        averaged = self.strategy == "moving_average" and len(scores) > self.window
        return largest_gap(scores, self.tail, self.window if averaged else 1)


Over = Literal["score", "probability"]


def with_share(ranking: pl.DataFrame, over: Over, temperature: float, depth: int) -> pl.DataFrame:
    """Add ``share``, of sum 1 over the first ``depth`` units of each question; null beyond and without an estimate.

    Over scores it is softmax(z / temperature), with z the standard scores of these units, so that a temperature means
    the same on every ranking. Over ``probability`` it is proportional to that column.
    """
    near = ranking.with_columns(pl.when(pl.col("rank") <= depth).then(pl.col(over)).alias("share"))
    value = pl.col("share")
    if over == "score":
        spread = value.std(ddof=0).over("question")
        z = pl.when(spread > 0).then((value - value.max().over("question")) / spread).otherwise(value * 0.0)
        value = (z / temperature).exp()
    return near.with_columns((value / value.sum().over("question")).alias("share"))


@stage
class TopP:
    """Select the fewest units whose shares sum to ``p``, in order of their share; at least one.

    With ``over=probability`` units inside the ranking may be skipped. A unit without an estimate is not shown.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)
    by_tokens: ClassVar = False
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched baseline

    p: Annotated[float, Field(gt=0, lt=1)] = 0.5
    over: Over = "score"  # probability: the column that learn/probability adds
    temperature: Annotated[float, Field(gt=0)] = 1.0  # over scores: lower values trust the first units more
    depth: Count = 200  # units that share the probability; ranks beyond are never shown

    def variations(self) -> Iterator[TopP]:
        """Yield the rule with p from .02 to .998, evenly spaced in log-odds."""
        for odds in np.exp(np.linspace(-4, 6.2, POINTS)):
            yield replace(self, p=float(odds / (1 + odds)))

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        need(ranking, self.over, "choose rank/select=top_p_calibrated, which adds it")
        shares = with_share(ranking.with_row_index("row"), self.over, self.temperature, self.depth).drop_nulls("share")
        before = (pl.col("share").cum_sum() - pl.col("share")).over("question").round(DIGITS)
        kept = shares.sort("question", "share", "rank", descending=[False, True, False]).filter(before < self.p)
        selected = np.zeros(ranking.height, bool)
        selected[kept["row"].to_numpy()] = True
        return Tables(ranking=ranking.with_columns(pl.Series("selected", selected)))


@stage
class TokenMatchedK:
    """Select floor(k) units, and one more for a share k - floor(k) of the questions, drawn by ``seed``."""

    reads: ClassVar = ("ranking", "questions", "turns")
    writes: ClassVar = ("ranking",)

    k: Annotated[float, Field(ge=0)] = 10.0
    seed: int = 0

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        whole, share = floor(self.k), self.k - floor(self.k)
        drawn = draws(tables["questions"], tables["turns"], self.seed)
        return cut(ranking, drawn.select("question", k=whole + (pl.col("draw") < share).cast(pl.Int32)))


def mean_tokens(ranking: pl.DataFrame) -> float:
    """Return the mean over questions of the tokens of their selected units."""
    shown = pl.col("tokens").filter(pl.col("selected")).sum()
    total = ranking.group_by("question").agg(shown)["tokens"].sum()
    return float(total) / max(ranking["question"].n_unique(), 1)


def token_matched_k(ranking: pl.DataFrame, drawn: pl.DataFrame, seed: int = 0) -> TokenMatchedK:
    """Return the constant K whose mean tokens come nearest to the mean tokens of an arm's selection.

    ``ranking`` is the arm's, with ``tokens`` and ``selected``; ``drawn`` is ``draws(questions, turns, seed)``. The
    match is exact up to half of one unit's tokens in one question (well within .5 % for a hundred questions or more);
    ``mean_tokens(match.run(...))`` states it.
    """
    need(ranking, "tokens", "run read/measure before the selection")
    if not ranking.height:
        raise MemlabError("an arm that ranked nothing has no token-matched twin", where="rank/twin")
    target = float(ranking.filter("selected")["tokens"].sum())
    rows = ranking.sort("question", "rank").with_columns(pl.col("tokens").fill_null(0.0))  # not measured that deep
    by_rank = np.cumsum(rows.group_by("rank").agg(pl.col("tokens").sum()).sort("rank")["tokens"].to_numpy())
    whole = int(np.searchsorted(by_rank, target, side="right"))  # units that all questions can have
    below = float(by_rank[whole - 1]) if whole else 0.0
    following = rows.filter(pl.col("rank") == whole + 1).join(drawn, on="question").sort("draw", "tokens")
    reached = below + np.concatenate([[0.0], np.cumsum(following["tokens"].to_numpy())])
    more = int(np.argmin(np.abs(reached - target)))  # how many questions get one unit more
    edges = np.concatenate([[0.0], following["draw"].to_numpy(), [1.0]])
    share = 0.0 if more == 0 else float(edges[more] + edges[more + 1]) / 2
    return TokenMatchedK(k=whole + share, seed=seed)
