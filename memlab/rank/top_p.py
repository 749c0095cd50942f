"""Top-p selection: the most probable units that together hold a share p of the probability, the nucleus.

Holtzman et al., The Curious Case of Neural Text Degeneration, ICLR 2020, for the tokens of a language model; over a
ranking it is common practice. The probabilities are a softmax of the scores, or the ranking's calibrated ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field

from memlab.rank.select import POINTS, Count, need
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import DIGITS, Tables

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
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched twin

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
