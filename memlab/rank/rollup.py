"""A ranking of small units -> a ranking of the sessions (or turns) that hold them."""

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
    """Rank wholes by the ranked units in them. With s a unit's score and r its rank in the question's list:

    * ``max``: the best s. Blind to how often a session speaks of the matter.
    * ``dcg_sum``: sum of 1 / log2(r + 1) over those of its units that are among the first ``top_n`` (OltraMem's
      session score, over its top 10 turns). Favours long sessions. Wholes without such a unit follow below 0, by
      their best unit: 1 / log2(r + 1) - 1 / log2(top_n + 1). ``top_n`` null counts all units.
    * ``mean_top``: mean of its ``top`` best s, or of all where it has fewer.
    * ``logsumexp``: T log(sum of exp(s / T)), T the temperature: near ``max`` for a small T, near a count for a
      large one.

    Each signal of a whole is the highest of its units.
    """

    reads: ClassVar = ("ranking", "units", "sessions", "turns")
    writes: ClassVar = ("ranking", "units")

    method: Literal["max", "dcg_sum", "mean_top", "logsumexp"] = "max"
    to: Literal["session", "turn"] = "session"  # session, or turn for memories that span turns
    top: Annotated[int, Field(ge=1)] = 3  # mean_top: how many best units count
    # dcg_sum: how many first ranks count; null = all, which favours long sessions
    top_n: Annotated[int, Field(ge=1)] | None = 10
    temperature: Annotated[float, Field(gt=0)] = 1.0  # logsumexp: near 0 it is max, large it counts units

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
        found = members.group_by("question", pl.col("unit_whole").alias("unit"), maintain_order=True).agg(
            self._score().alias("score"), pl.col(signals_of(ranking)).max())
        return Tables(ranking=ranked(found), units=wholes)

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
