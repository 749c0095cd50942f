"""Permuted question and corpus numbers, so that stages cannot infer anything from a place in the file.

A benchmark's file may be sorted by question type, or have the unanswerable questions last, so a place in the file hints
at the label. ``Numbering`` replaces these places while a pipeline runs. The rows of questions, corpora and texts are in
the order of digests of their content; the numbers of questions are a permutation, drawn by ``SEED``. Whatever is drawn
for a question comes from its digest (``draws``), so another permutation changes no result.
"""

from __future__ import annotations

import dataclasses
import hashlib

import polars as pl

from memlab.pipeline.tables import Tables, text_hash

SEED = 0
"""Seed of the permutation of question numbers."""


def corpus_digests(turns: pl.DataFrame) -> pl.DataFrame:
    """Return (corpus, digest): a digest of all that is said in each corpus."""
    said = turns.sort("corpus", "session", "turn").group_by("corpus", maintain_order=True).agg(
        pl.concat_str("session", pl.lit(" "), "role", pl.lit(" "), "text_id").str.join(" ").alias("said"))
    return said.select("corpus", pl.Series("digest", [text_hash(text) for text in said["said"]], pl.String))


def question_digests(questions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Return (question, digest) in the rows' order: a digest of the question's text and of its corpus."""
    rows = questions.select("question", "corpus", "text_id").join(
        corpus_digests(turns), on="corpus", how="left", maintain_order="left")
    digests = [text_hash(f"{text} {corpus}") for text, corpus in rows.select("text_id", "digest").iter_rows()]
    return rows.select("question", pl.Series("digest", digests, pl.String))


def draws(questions: pl.DataFrame, turns: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Return (question, draw): a number in [0, 1) for each question, from its digest and the seed alone."""
    rows = question_digests(questions, turns)
    numbers = [draw(digest, seed) for digest in rows["digest"]]
    return rows.select("question", pl.Series("draw", numbers, pl.Float64))


def draw(digest: str, seed: int) -> float:
    """Draw a number in [0, 1) for a digest, the same in every process.

    >>> 0 <= draw("ab", seed=0) < 1 and draw("ab", seed=0) != draw("ab", seed=1)
    True
    """
    return int.from_bytes(hashlib.blake2b(f"{seed}:{digest}".encode(), digest_size=6).digest(), "big") / 2**48


@dataclasses.dataclass(frozen=True)
class Numbering:
    """The numbers under which stages see the questions and corpora of some tables.

    corpora: (corpus, number); questions: (question, number, place), place being the row in the order of digests.
    """

    corpora: pl.DataFrame
    questions: pl.DataFrame

    @classmethod
    def of(cls, tables: Tables) -> Numbering:
        """Number the questions and corpora of these tables; equal content keeps its order."""
        turns = tables["turns"]
        digests = corpus_digests(turns)
        corpora = _values(tables, "corpus").join(digests, on="corpus", how="left").sort(
            "digest", "corpus", nulls_last=True)
        known = question_digests(tables["questions"], turns)
        ordered = _values(tables, "question").join(known, on="question", how="left").sort(
            "digest", "question", nulls_last=True).with_columns(place=pl.int_range(pl.len(), dtype=pl.Int32))
        nth = pl.int_range(pl.len()).over("digest")
        lots = [text_hash(f"{SEED} {digest} {n}") for digest, n in ordered.select("digest", nth).iter_rows()]
        drawn = pl.Series("lot", lots, pl.String).rank("ordinal").cast(pl.Int32) - 1
        return cls(corpora.select("corpus", number=pl.int_range(pl.len(), dtype=pl.Int32)),
                   ordered.select("question", drawn.alias("number"), "place"))

    def hide(self, tables: Tables) -> Tables:
        """Return the tables with these numbers, their rows in the order of the digests."""
        return tables.updated({name: changed for name, table in tables.items()
                               if (changed := self._hide(name, table)) is not table})

    def show(self, tables: Tables, hidden: Tables, original: Tables) -> Tables:
        """Return the tables with their own numbers; a table that is still ``hidden`` becomes its ``original``."""
        unchanged = [name for name, table in tables.items() if name in hidden and table is hidden[name]]
        changed = {name: new for name, table in tables.items()
                   if name not in unchanged and (new := self._renumber(table)) is not table}
        return tables.updated(original.only(unchanged)).updated(changed)

    def _renumber(self, table: pl.DataFrame) -> pl.DataFrame:
        questions = self.questions.select(pl.col("number").alias("question"), number="question")
        corpora = self.corpora.select(pl.col("number").alias("corpus"), number="corpus")
        table = renumber(renumber(table, "corpus", corpora), "question", questions)
        key = next((column for column in ("question", "corpus") if column in table.columns), None)
        return _sort(table, key) if key else table

    def _hide(self, name: str, table: pl.DataFrame) -> pl.DataFrame:
        if name == "texts":
            return _sort(table, "text_id")
        table = renumber(table, "corpus", self.corpora)
        if "question" in table.columns:
            numbers = self.questions.select("question", "number")
            placed = table.join(self.questions.select("question", "place"), on="question", how="left",
                                maintain_order="left").sort("place", nulls_last=True, maintain_order=True)
            return renumber(placed.drop("place"), "question", numbers)
        return _sort(table, "corpus") if "corpus" in table.columns else table


def corpora_by_content(tables: Tables) -> Tables:
    """Number the corpora, and sort the texts, by their content; questions keep their numbers.

    Parts of such tables, and the whole, have memories and units in the same order under any numbering.
    """
    corpora = Numbering.of(tables).corpora
    changed = {name: _sort(renumber(table, "corpus", corpora), "corpus")
               for name, table in tables.items() if "corpus" in table.columns and name != "questions"}
    questions = renumber(tables["questions"], "corpus", corpora)
    return tables.updated({**changed, "questions": questions, "texts": _sort(tables["texts"], "text_id")})


def renumber(table: pl.DataFrame, column: str, numbers: pl.DataFrame) -> pl.DataFrame:
    """Replace the numbers in a column by ``numbers`` (column, number); return the table itself if nothing changes.

    >>> renumber(pl.DataFrame({"corpus": [5, 9]}), "corpus", pl.DataFrame({"corpus": [9, 5], "number": [0, 1]})).rows()
    [(1,), (0,)]
    """
    if column not in table.columns or numbers[column].equals(numbers["number"]):
        return table
    joined = table.join(numbers.select(column, "number"), on=column, how="left", maintain_order="left")
    return joined.with_columns(pl.col("number").alias(column)).select(table.columns)


def _sort(table: pl.DataFrame, column: str) -> pl.DataFrame:
    if table[column].is_sorted(nulls_last=True):
        return table
    return table.sort(column, nulls_last=True, maintain_order=True)


def _values(tables: Tables, column: str) -> pl.DataFrame:
    """Return all numbers that occur in a column of any table, in ascending order."""
    values = [table[column] for table in tables.values() if column in table.columns]
    return pl.concat(values).drop_nulls().unique().sort().to_frame()
