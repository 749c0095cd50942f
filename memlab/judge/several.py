"""Several judges over the same answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import polars as pl
from pydantic import Field

from memlab.errors import MemlabError, did_you_mean
from memlab.judge.cases import READS
from memlab.stage import Stage, stage
from memlab.tables import Tables

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class Judges:
    """Let each judge give its verdicts; their names tell them apart, so that no two may be the same."""

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    judges: Annotated[tuple[Any, ...], Field(strict=False, min_length=1)]

    def __post_init__(self) -> None:
        names = [getattr(judge, "name", None) for judge in self.judges]
        for judge, name in zip(self.judges, names):
            if not (isinstance(judge, Stage) and tuple(judge.writes) == ("verdicts",)) or name is None:
                raise MemlabError(f"{type(judge).__name__} is not a judge with a name", where="judge.judges",
                                  fix="list TokenF1, ExactMatch, Contains or LlmJudge")
            if names.count(name) > 1:
                raise MemlabError(f"two judges are called '{name}'", where="judge.judges",
                                  fix=f"give one another name; {did_you_mean(str(name), map(str, names))}")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the verdicts of all judges, one judge after the other."""
        return Tables(verdicts=pl.concat([judge.run(tables, store)["verdicts"] for judge in self.judges]))
