"""Upper bound of every question classifier: the benchmark's own question type."""

from __future__ import annotations

from typing import ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.question_types import OF_TYPE, check_classes
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
