"""Upper bounds that look at gold: of question classifiers, of reranking, and of adaptive K."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.learn.folds import EvidenceLevel, first_holders, smallest_k
from memlab.question_types import OF_TYPE, check_classes
from memlab.rank.select import Count, cut
from memlab.rank.units import ranked
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage(sees=("gold",))
class OracleClasses:
    """Classify each question by its gold type, as a perfect classifier would.

    ``classes`` maps types to classes, and takes precedence over the table of ``memlab.question_types`` for LongMemEval,
    LoCoMo and the synthetic lives; the class of any other type is ``otherwise``.
    """

    reads: ClassVar = ("questions", "gold")
    writes: ClassVar = ("classes",)

    # type: class, for types beyond LongMemEval's, LoCoMo's and those of the synthetic lives
    classes: dict[str, str] = Field(default_factory=dict)
    otherwise: str = "factual"  # the class of a type that nobody mapped

    @model_validator(mode="after")
    def _known(self) -> OracleClasses:
        try:
            check_classes({**self.classes, "otherwise": self.otherwise})
        except MemlabError as error:
            raise ValueError(str(error)) from error
        return self

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the class of every question."""
        by_type = pl.col("category").replace_strict({**OF_TYPE, **self.classes}, default=self.otherwise,
                                                    return_dtype=pl.String).fill_null(self.otherwise)
        return Tables(classes=tables["questions"].select("question").join(
            tables["gold"].select("question", "category"), on="question", how="left", maintain_order="left").select(
            "question", by_type.alias("class")))


@stage(sees=("gold",))
class OracleRerank:
    """Move the units that hold evidence to the front of the first ``pool``, as a perfect reranker would.

    Only the first unit that holds each item of evidence (``level``) moves, so that no item is crowded out by a second
    unit of another; all others keep their order, and scores keep their distances.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    pool: Annotated[int, Field(ge=1)] = 50
    level: EvidenceLevel = "session"  # what counts as an item of evidence: session or turn

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the reordered ranking."""
        ranking = tables["ranking"]
        pool = ranking.filter(pl.col("rank") <= self.pool)
        holders = first_holders(pool, tables["units"], tables["evidence"], self.level).drop_nulls("unit").select(
            "question", "unit").unique().with_columns(pl.lit(1.0).alias("holds"))
        span = (pl.col("score").max() - pl.col("score").min()).over("question") + 1
        lifted = ranking.join(holders, on=["question", "unit"], how="left", maintain_order="left").with_columns(
            pl.col("score") + pl.col("holds").fill_null(0.0) * span).drop("holds")
        return Tables(ranking=ranked(lifted))


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
