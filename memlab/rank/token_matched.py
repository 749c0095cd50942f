"""The token-matched baseline of an adaptive K: a constant K with the same mean context tokens.

An adaptive arm that shows more text finds more evidence for that reason alone. Its twin shows floor(k) or floor(k) + 1
units, drawn for each question, with k such that both arms show the same number of tokens on average.
"""

from __future__ import annotations

from math import floor
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from memlab.data.numbering import draws
from memlab.errors import MemlabError
from memlab.rank.select import cut, need
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


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


def twin(ranking: pl.DataFrame, drawn: pl.DataFrame, seed: int = 0) -> TokenMatchedK:
    """Return the constant K whose mean tokens come nearest to those of an arm's selection.

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
