"""Why an answer is wrong, found by intervention instead of by opinion.

In this order, and the first that turns the verdict is the cause: the same context asked again (the reader's noise), a
second judge, then what the tables show (``memlab.evaluate.evidence_funnel``), then retrieved and gold
together, then gold alone.
The same is done to a sample of right answers, so that the rates can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import numpy as np
import polars as pl
from pydantic import Field

from memlab.evaluate.evidence_funnel import VIEWS, by_question, reached
from memlab.stage import Stage, stage
from memlab.tables import Notes, Tables, frame

if TYPE_CHECKING:
    from memlab.store import Store

NOISE, JUDGE = "reader noise", "judge"
CROWDED, MISREAD, BEYOND = "crowded out", "misread", "beyond the reader, or mislabelled"
MISLED, UNDECLINED = "misled by what was found", "does not decline"
STEADY = "stays right"
CAUSES = (NOISE, JUDGE, "never written", "not in the pool", "ranked too low", "cut by K", "dropped by the packer",
          CROWDED, MISREAD, BEYOND, MISLED, UNDECLINED, STEADY)
"""Every cause, in the order in which they are tried; the last is that of a right answer which nothing turns."""


class Asks(Protocol):
    """A reader that can be asked again."""

    def ask(self, tables: Tables, store: Store, sample: int = 0) -> Tables:
        """Return ``answers`` and ``texts``; another sample asks anew instead of reading the store."""
        ...


@stage
class Attribution:
    """Find the cause of each of ``wrong`` wrong answers and of as many as ``right`` right ones, drawn by ``seed``.

    ``crowded`` packs gold before what was retrieved, ``alone`` gold alone, ``nothing`` nothing: the last is what a
    question that should be declined is asked with. How far the evidence got is told for every question.
    """

    reads: ClassVar = ("texts", "sessions", "turns", "questions", "classes", "memories", "units", "ranking", "context",
                       "answers", "verdicts", "evidence", "gold")
    writes: ClassVar = ("attribution",)

    reader: Any
    judge: Any
    second: Any
    crowded: Any
    alone: Any
    nothing: Any
    wrong: Annotated[int, Field(ge=0)] = 40
    right: Annotated[int, Field(ge=0)] = 20
    seed: int = 0

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``attribution``, two rows a question that was judged: one a view of what counts as evidence found."""
        verdicts = tables["verdicts"].filter(pl.col("correct").is_not_null()).unique("question", keep="first",
                                                                                    maintain_order=True)
        judged = verdicts.select("question", pl.col("correct").alias("right")).sort("question")
        chosen = pl.concat([self._draw(judged.filter(~pl.col("right")), self.wrong),
                            self._draw(judged.filter("right"), self.right)])
        few = {name: tables[name].join(chosen, on="question", how="semi") for name in ("questions", "answers")}
        notes = Notes()
        told = self._tried(tables.updated(few), chosen, store, notes)
        pieces = reached(tables)
        rows = []
        for view in VIEWS:
            far = (judged.join(by_question(pieces, view), on="question", how="left")
                   .join(tables["gold"].select("question", "abstain"), on="question")
                   .join(told, on="question", how="left"))
            lost = pl.when((pl.col("reached") != "shown") & ~pl.col("abstain")).then("reached")
            cause = pl.coalesce(pl.col("early"), pl.when(pl.col("tried")).then(lost), pl.col("late"))
            rows.append(far.select("question", pl.lit(view).alias("view"), "reached", "right",
                                   pl.col("tried").fill_null(False).alias("sampled"), cause.alias("cause")))
        return Tables(attribution=frame("attribution", pl.concat(rows).sort("question", "view").to_dict()),
                      notes=notes.table())

    def _draw(self, rows: pl.DataFrame, n: int) -> pl.DataFrame:
        picked = np.random.default_rng(self.seed).permutation(rows.height)[:n]
        return rows[np.sort(picked)]

    def _tried(self, tables: Tables, chosen: pl.DataFrame, store: Store, notes: Notes) -> pl.DataFrame:
        """Return (question, tried, early, late): the causes before and after what the tables tell."""
        anew = tables.updated(notes.include(self.reader.ask(tables, store, sample=1)))
        again = self._verdict(anew, self.judge, store, notes)
        other = self._verdict(tables, self.second, store, notes)
        packed = {name: self._verdict(self._with(tables, pack, store, notes), self.judge, store, notes)
                  for name, pack in (("crowded", self.crowded), ("alone", self.alone), ("nothing", self.nothing))}
        rows = chosen.join(tables["gold"].select("question", "abstain"), on="question")
        for name, verdict in {"again": again, "other": other, **packed}.items():
            turned = verdict.select("question", pl.col("correct").alias(name))
            rows = rows.join(turned, on="question", how="left").with_columns(
                (pl.col(name) != pl.col("right")).fill_null(False).alias(name))
        steady = pl.when("right").then(pl.lit(STEADY))
        declines = pl.when("nothing").then(pl.lit(MISLED)).otherwise(steady.otherwise(pl.lit(UNDECLINED)))
        answers = (pl.when("crowded").then(pl.lit(CROWDED)).when("alone").then(pl.lit(MISREAD))
                   .otherwise(steady.otherwise(pl.lit(BEYOND))))
        return rows.select("question", pl.lit(True).alias("tried"),
                           pl.when("again").then(pl.lit(NOISE)).when("other").then(pl.lit(JUDGE)).alias("early"),
                           pl.when("abstain").then(declines).otherwise(answers).alias("late"))

    def _with(self, tables: Tables, pack: Stage, store: Store, notes: Notes) -> Tables:
        shown = tables.updated(pack.run(tables.only(pack.reads), store))
        return shown.updated(notes.include(self.reader.ask(shown, store)))

    def _verdict(self, tables: Tables, judge: Stage, store: Store, notes: Notes) -> pl.DataFrame:
        made = notes.include(judge.run(tables.only(judge.reads), store))
        return made["verdicts"].unique("question", keep="first", maintain_order=True)
