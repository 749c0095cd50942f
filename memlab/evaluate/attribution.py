"""Error attribution by intervention: the cause of a wrong answer is the first change that flips its verdict.

The order is: the same context read again (the reader's noise), a second judge, the tables (``evidence_funnel``), gold
before the retrieved context, gold alone. The same is done to a sample of right answers, to compare the rates.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Protocol, runtime_checkable

import numpy as np
import polars as pl
from pydantic import Field

from memlab.data.numbering import question_digests
from memlab.evaluate.evidence import VIEWS, evidence_steps, last_steps
from memlab.pipeline.stage import Stage, stage
from memlab.pipeline.tables import Notes, Tables, frame
from memlab.store import Store

NOISE, JUDGE = "reader noise", "judge"
CROWDED, MISREAD, BEYOND = "crowded out", "misread", "beyond the reader, or mislabelled"
MISLED, UNDECLINED = "misled by what was found", "does not decline"
STEADY = "stays right"
CAUSES = (NOISE, JUDGE, "never written", "not in the pool", "ranked too low", "cut by K", "dropped by the packer",
          CROWDED, MISREAD, BEYOND, MISLED, UNDECLINED, STEADY)
"""All causes, in the order in which they are tried; the last is that of a right answer that nothing turns."""


@runtime_checkable
class RepeatableReader(Protocol):
    """A reader that can answer the same questions again."""

    def ask(self, tables: Tables, store: Store, sample: int = 0) -> Tables:
        """Return ``answers`` and ``texts``; another sample is a new reply instead of the stored one."""
        ...


@stage
class Attribution:
    """Find the causes of up to ``wrong`` wrong answers and ``right`` right ones, drawn by ``seed``.

    ``crowded`` packs gold before the retrieved context, ``alone`` gold alone, ``nothing`` nothing: the last is the
    context for a question that should be declined. How far the evidence got is computed for every question.
    """

    reads: ClassVar = ("texts", "sessions", "turns", "questions", "classes", "memories", "units", "ranking", "context",
                       "answers", "verdicts", "evidence", "gold")
    writes: ClassVar = ("attribution",)

    reader: RepeatableReader
    judge: Stage
    second: Stage
    crowded: Stage
    alone: Stage
    nothing: Stage
    wrong: Annotated[int, Field(ge=0)] = 40  # wrong answers drawn
    right: Annotated[int, Field(ge=0)] = 20  # right answers drawn, so that the rates can be compared
    seed: int = 0

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``attribution``: for each judged question, one row per view of when evidence counts as shown."""
        verdicts = tables["verdicts"].filter(pl.col("correct").is_not_null()).unique("question", keep="first",
                                                                                    maintain_order=True)
        judged = question_digests(tables["questions"], tables["turns"]).sort(
            "digest", maintain_order=True).join(verdicts.select("question", right="correct"), on="question",
                                                maintain_order="left").drop("digest")
        sample = pl.concat([self._draw(judged.filter(~pl.col("right")), self.wrong),
                            self._draw(judged.filter("right"), self.right)])
        sampled = {name: tables[name].join(sample, on="question", how="semi") for name in ("questions", "answers")}
        notes = Notes()
        answered = tables["verdicts"]["question"].n_unique()
        notes.add(answered - judged.height, answered, "answers have no verdict, so that they get no cause")
        tried = self._interventions(tables.updated(sampled), sample, store, notes)
        steps = evidence_steps(tables)
        rows = []
        for view in VIEWS:
            answers = (judged.join(last_steps(steps, view), on="question", how="left")
                       .join(tables["gold"].select("question", "abstain"), on="question")
                       .join(tried, on="question", how="left"))
            lost = pl.when((pl.col("reached") != "shown") & ~pl.col("abstain")).then("reached")
            cause = pl.coalesce(pl.col("early"), pl.when(pl.col("tried")).then(lost), pl.col("late"))
            rows.append(answers.select("question", pl.lit(view).alias("view"), "reached", "right",
                                       pl.col("tried").fill_null(False).alias("sampled"), cause.alias("cause")))
        return Tables(attribution=frame("attribution", pl.concat(rows).sort("question", "view").to_dict()),
                      notes=notes.table())

    def _draw(self, rows: pl.DataFrame, n: int) -> pl.DataFrame:
        return rows[np.sort(np.random.default_rng(self.seed).permutation(rows.height)[:n])]

    def _interventions(self, tables: Tables, sample: pl.DataFrame, store: Store, notes: Notes) -> pl.DataFrame:
        """Return (question, tried, early, late): the causes that come before and after those of the tables."""
        second_sample = tables.updated(notes.include(self.reader.ask(tables, store, sample=1)))
        again = self._verdict(second_sample, self.judge, store, notes)
        other = self._verdict(tables, self.second, store, notes)
        packed = {name: self._verdict(self._with(tables, pack, store, notes), self.judge, store, notes)
                  for name, pack in (("crowded", self.crowded), ("alone", self.alone), ("nothing", self.nothing))}
        rows = sample.join(tables["gold"].select("question", "abstain"), on="question")
        for name, verdict in {"again": again, "other": other, **packed}.items():
            correct = verdict.select("question", pl.col("correct").alias(name))
            rows = rows.join(correct, on="question", how="left").with_columns(
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
        judged = notes.include(judge.run(tables.only(judge.reads), store))
        return judged["verdicts"].unique("question", keep="first", maintain_order=True)
