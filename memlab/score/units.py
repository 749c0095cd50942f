"""Documents of a foreign run as units: the benchmark's own names of sessions and turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from memlab.errors import MemlabError
from memlab.score.runs import Run
from memlab.tables import SESSION, Tables, as_of

Level = Literal["session", "turn"]

EXAMPLES = 3
"""Names that a message shows."""


@dataclass(frozen=True)
class Matched:
    """A run in memlab's numbers: units and ranking, their level, and what is wrong with the run, in sentences."""

    units: pl.DataFrame
    ranking: pl.DataFrame
    level: Level
    faults: list[str]


def match(run: Run, tables: Tables) -> Matched:
    """Return the run's rows as units of this data set, ranked from 1 within each question.

    Documents are names of turns or of sessions; the level is the one at which more rows match. A name that occurs
    several times in a history means its first place; ``name#2`` means the second. Rows with unknown names, and of
    sessions on a later day than the question, are left out and counted. Raises MemlabError if no row matches.
    """
    topics = _topics(tables)
    rows = run.rows.with_row_index("row").join(topics, on="topic", how="left")
    known = rows.filter(pl.col("question").is_not_null())
    if known.is_empty():
        raise MemlabError(f"no topic of the run is a question of this data set: {_examples(rows['topic'])}; its "
                          f"questions have names such as {_examples(topics['topic'])}", fix="check data=...")
    documents = {level: _documents(tables, level) for level in ("turn", "session")}
    matched = {level: known.join(table, on=["corpus", "document"], how="inner") for level, table in documents.items()}
    level: Level = "turn" if matched["turn"].height >= matched["session"].height else "session"
    found = matched[level]
    if found.is_empty():
        raise MemlabError(
            f"no document of the run is a session or turn of this data set: {_examples(known['document'])}; its turns "
            f"have names such as {_examples(documents['turn']['document'])}, its sessions "
            f"{_examples(documents['session']['document'])}", fix="rank the benchmark's own ids")
    faults = _faults(run, tables, topics, rows, known, found)
    asked = tables["questions"].select("question", "asked_on")
    said = tables["sessions"].select(*SESSION, "said_on")
    in_time = found.join(asked, on="question").join(said, on=SESSION).filter(as_of())
    if late := found.height - in_time.height:
        faults.append(f"{late:,} rows name a session of a later day than the question. They are left out.")
    kept = in_time.sort("question", "row").with_columns(
        rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("question"))
    units = documents[level].filter(pl.col("first")).select(
        *SESSION, "turns").with_row_index("unit").with_columns(pl.col("unit").cast(pl.Int64))
    numbered = kept.join(units.select("unit", *SESSION, "turns"), on=[*SESSION, "turns"], how="left")
    ranking = numbered.sort("question", "rank").select(
        pl.col("question").cast(pl.Int32), "unit", "score", "rank", pl.lit(False).alias("selected"))
    return Matched(units.select("unit", *SESSION, "turns", pl.lit(level).alias("level")), ranking, level, faults)


def _topics(tables: Tables) -> pl.DataFrame:
    """Return (topic, question, corpus): each question's name, or its number where it has none."""
    names = tables["ids"].filter(pl.col("kind") == "question").select("question", pl.col("name").alias("topic"))
    return tables["questions"].select("question", "corpus").join(names, on="question", how="left").with_columns(
        pl.coalesce("topic", pl.col("question").cast(pl.String)))


def _documents(tables: Tables, level: Level) -> pl.DataFrame:
    """Return (corpus, document, session, turns, first): one row for each unit (``first``), then all their names."""
    keys = [*SESSION, "turn"] if level == "turn" else SESSION
    names = tables["ids"].filter(pl.col("kind") == level).select(*keys, pl.col("name").alias("document"))
    if level == "turn":
        names = names.with_columns(turns=pl.concat_list("turn"))
    else:
        turns = tables["turns"].sort(*SESSION, "turn").group_by(SESSION).agg(pl.col("turn").alias("turns"))
        names = names.join(turns, on=SESSION)
    names = names.sort(keys).with_columns(
        nth=pl.int_range(1, pl.len() + 1).over("corpus", "document"), times=pl.len().over("corpus", "document"))
    plain = names.filter(pl.col("nth") == 1)
    repeated = names.filter(pl.col("times") > 1).with_columns(document=pl.format("{}#{}", "document", "nth"))
    first = pl.concat([names.with_columns(first=True, document=pl.lit(None, pl.String)),  # one row for each unit
                       plain.with_columns(first=False), repeated.with_columns(first=False)], how="diagonal")
    return first.select("corpus", "document", "session", pl.col("turns").cast(pl.List(pl.Int32)), "first")


def _faults(run: Run, tables: Tables, topics: pl.DataFrame, rows: pl.DataFrame, known: pl.DataFrame,
            found: pl.DataFrame) -> list[str]:
    faults = []
    if rows.height > known.height:
        strange = rows.filter(pl.col("question").is_null())["topic"]
        faults.append(f"{strange.n_unique():,} topics are no questions of this data set ({_examples(strange)}).")
    if known.height > found.height:
        strange = known.join(found.select("row"), on="row", how="anti")["document"]
        faults.append(f"{strange.len():,} rows name documents that the question's history does not have "
                      f"({_examples(strange)}). They are left out.")
    missing = topics.join(found.select("question").unique(), on="question", how="anti")
    if missing.height:
        faults.append(f"{missing.height:,} of {topics.height:,} questions have no ranking "
                      f"({_examples(missing['topic'])}). They count as not found.")
    if run.tied:
        faults.append(f"{run.tied:,} rows share their score with another row of the question. The file's own order "
                      "breaks these ties.")
    if run.repeated:
        faults.append(f"{run.repeated:,} rows name a document again. The best one counts.")
    if marked := _texts_with_ids(tables):
        faults.append(f"{marked:,} texts of this data set contain an id of the benchmark, so that a search can find "
                      "it.")
    return faults


def _texts_with_ids(tables: Tables) -> int:
    """Count the turns whose text contains the name of a session of their history that tells evidence (answer_...)."""
    telling = tables["ids"].filter((pl.col("kind") == "session") & pl.col("name").str.starts_with("answer_"))
    if telling.is_empty():
        return 0
    names = telling["name"].unique().to_list()
    return tables["texts"].filter(pl.col("text").str.contains_any(names)).height


def _examples(names: pl.Series) -> str:
    distinct = names.drop_nulls().unique(maintain_order=True)
    return ", ".join(f"'{name}'" for name in distinct[:EXAMPLES]) + (", ..." if distinct.len() > EXAMPLES else "")
