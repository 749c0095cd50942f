"""Upper bounds of adaptive K, which look at gold: the most that any rule could gain."""

from __future__ import annotations

from typing import ClassVar

import polars as pl
from pydantic import Field

from memlab.learn.labels import EvidenceLevel, first_holders, smallest_k
from memlab.rank.select import Count, cut
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage(sees=("gold",))
class OracleSelect:
    """Select the smallest K that is complete, up to ``max_k``: the head oracle.

    A question that is never complete is shown ``max_k`` units, as by a rule that cannot know this. No rule that shows
    the top of this ranking reaches the recall of ``max_k`` with fewer units. A question without evidence is shown one.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    level: EvidenceLevel = "session"
    max_k: Count = 40

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        reach = ranking.filter(pl.col("rank") <= self.max_k)
        needed = smallest_k(reach, tables["units"], tables["evidence"], self.level)
        k = ranking.select(pl.col("question").unique()).join(
            needed.select("question", pl.col("complete").fill_null(self.max_k).alias("k")), on="question", how="left")
        return cut(ranking, k.with_columns(pl.col("k").fill_null(1)))


@stage(sees=("gold",))
class OracleSetSelect:
    """Select the evidence alone: the set oracle, the bound of rules that may skip units inside the ranking.

    For each piece of evidence it shows the first unit that holds it. As in ``OracleSelect``, a question that is not
    complete within ``max_k`` units is shown all of these, and one without evidence is shown the first unit.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    level: EvidenceLevel = "session"
    max_k: Count = 40

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``selected``."""
        head = OracleSelect(level=self.level, max_k=self.max_k).run(tables, store)["ranking"]
        reach = head.filter(pl.col("rank") <= self.max_k)
        first = first_holders(reach, tables["units"], tables["evidence"], self.level)
        complete = first.filter(~pl.col("unit").is_null().any().over("question")).select("question", "unit").unique()
        others = head.filter("selected").join(complete, on="question", how="anti").select("question", "unit")
        chosen = pl.concat([complete, others]).with_columns(pl.lit(True).alias("\0selected"))
        rows = head.join(chosen, on=["question", "unit"], how="left", maintain_order="left")
        return Tables(ranking=rows.with_columns(pl.col("\0selected").fill_null(False).alias("selected")).drop(
            "\0selected"))


@stage(sees=("gold",))
class OracleTypeSelect:
    """Select K by the benchmark's own question type, as ``by_type`` would with a perfect classifier."""

    reads: ClassVar = ("ranking", "gold")
    writes: ClassVar = ("ranking",)

    k_by_category: dict[str, Count] = Field(default_factory=dict)
    otherwise: Count = 10

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``; a category without a K of its own takes ``otherwise``."""
        k = tables["gold"].select("question", pl.col("category").replace_strict(
            self.k_by_category, default=self.otherwise, return_dtype=pl.Int32).alias("k"))
        return cut(tables["ranking"], k)
