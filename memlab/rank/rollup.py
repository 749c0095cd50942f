"""Roll-up of a ranking of small units to the sessions or turns that contain them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.errors import MemlabError
from memlab.rank.units import ranked, session_units, signals_of, turn_units
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Tables


@stage
class Rollup:
    """Rank sessions (or turns) by the ranked units in them. With s a unit's score and r its rank for the question:

    * ``max``: the best s, however many units match.
    * ``dcg_sum``: sum of 1 / log2(r + 1) over its units among the first ``top_n`` (OltraMem's session score, over its
      top 10 turns). Sessions without such a unit follow below 0, by their best unit:
      1 / log2(r + 1) - 1 / log2(top_n + 1).
    * ``mean_top``: mean of its ``top`` best s, or of all if it has fewer.
    * ``logsumexp``: T log(sum of exp(s / T)), T the temperature.

    Each signal of a session is the highest of its units.
    """

    reads: ClassVar = ("ranking", "units", "sessions", "turns")
    writes: ClassVar = ("ranking", "units")

    method: Literal["max", "dcg_sum", "mean_top", "logsumexp"] = "max"
    to: Literal["session", "turn"] = "session"  # turn: for memories of several turns
    top: Annotated[int, Field(ge=1)] = 3  # mean_top: units that count
    # dcg_sum: ranks that count; null: all, which favours long sessions
    top_n: Annotated[int, Field(ge=1)] | None = 10
    temperature: Annotated[float, Field(gt=0)] = 1.0  # logsumexp: near max if small, near a count of units if large

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking of the wholes, and all wholes as ``units``."""
        parts, ranking = tables["units"], tables["ranking"]
        if self.to == "turn":
            if parts["level"].eq("session").any():
                raise MemlabError("sessions cannot be rolled up to turns", where="rank/rollup, to",
                                  fix="write to: session, or rank at level turn or memory")
            wholes = turn_units(tables["turns"])
            inside = parts.explode("turns").join(
                wholes.explode("turns"), on=[*SESSION, "turns"], suffix="_whole").select("unit", "unit_whole")
        else:
            wholes = session_units(tables["sessions"], tables["turns"])
            inside = parts.join(wholes, on=SESSION, suffix="_whole").select("unit", "unit_whole")
        members = ranking.join(inside, on="unit").sort("question", "rank")
        rolled_up = members.group_by("question", pl.col("unit_whole").alias("unit"), maintain_order=True).agg(
            self._score().alias("score"), pl.col(signals_of(ranking)).max())
        return Tables(ranking=ranked(rolled_up), units=wholes)

    def _score(self) -> pl.Expr:
        score, rank = pl.col("score"), pl.col("rank").cast(pl.Float64)
        if self.method == "max":
            return score.max()
        if self.method == "mean_top":  # members lie by rank
            return score.head(self.top).mean()
        if self.method == "logsumexp":
            peak, t = score.max(), self.temperature
            return peak + t * ((score - peak) / t).exp().sum().log()
        gain = 1 / (rank + 1).log(2)
        if self.top_n is None:
            return gain.sum()
        edge = 1 / (pl.lit(float(self.top_n)) + 1).log(2)
        return pl.when(rank.min() <= self.top_n).then(
            gain.filter(rank <= self.top_n).sum()).otherwise(gain.max() - edge)
