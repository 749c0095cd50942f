"""Selected units to the context that a reader is shown."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.read.render import RENDER_READS, Value, rendered
from memlab.read.tokens import count_tokens
from memlab.speech import grown, hashes
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables


def fitting(costs: list[int], room: int) -> list[bool]:
    """Tell which of the costs, taken in order, fit into the room; what does not fit is passed over.

    >>> fitting([5, 9, 4], 10)
    [True, False, True]
    """
    kept = []
    for cost in costs:
        kept.append(cost <= room)
        room -= cost if kept[-1] else 0
    return kept


@stage
class ByRank:
    """Show the selected units in rank order, each text once.

    With ``max_tokens`` a unit that does not fit into what is left is passed over, and the next one tried:
    nothing is cut, so no evidence is shown by halves. ``value`` must be that of ``read.measure``.
    """

    reads: ClassVar = (*RENDER_READS, "ranking")
    writes: ClassVar = ("context", "texts")
    value: Value = "unit"
    max_tokens: Annotated[int, Field(ge=1)] | None = None

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context (position counts from 1 in a question) and the texts that it needs."""
        chosen = tables["ranking"].filter("selected").sort("question", "rank").select("question", "unit")
        units = tables["units"].join(chosen.select("unit").unique(), on="unit", how="semi")
        shown = rendered(units, tables, self.value).with_columns(count_tokens(pl.col("text")).alias("tokens"))
        shown = shown.with_columns(hashes(shown["text"]).alias("hash"))
        rows = chosen.join(shown.drop("text"), on="unit", maintain_order="left").unique(
            ["question", "hash"], keep="first", maintain_order=True)
        if self.max_tokens is not None:
            costs = rows.group_by("question", maintain_order=True).agg("tokens")["tokens"]
            rows = rows.filter(pl.Series([k for c in costs for k in fitting(c.to_list(), self.max_tokens)],
                                         dtype=pl.Boolean))
        position = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("question").alias("position")
        context = rows.rename({"hash": "text"}).with_columns(position).select(list(SCHEMAS["context"]))
        return Tables(context=context, texts=grown(tables["texts"], shown))
