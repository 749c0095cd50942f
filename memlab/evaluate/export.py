"""TREC run and qrels files, under the benchmark's own names, for trec_eval, ir-measures, ranx, trectools and the like.

A run folder has these pairs, from which such tools compute the figures that memlab prints (docs/score.md):

* ``run.trec`` and ``qrels.trec``: what is ranked, as it is ranked;
* ``qrels.stale.trec``, where evidence is outdated: 1 for valid evidence, -1 for outdated;
* ``run.sessions.trec`` and ``qrels.sessions.trec``: its sessions, where it ranks something finer.

A tool averages over the topics of the run, or of the qrels, or of both, so that each pair has the same topics: those
with evidence. A topic for which nothing was ranked has the document ``(nothing)``. The ranking of the others is in
``run.unjudged.trec``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from memlab.evaluate.contrast import KEPT_RANKS
from memlab.evaluate.retrieval import grain, holders, scored_evidence
from memlab.evaluate.stale import evidence_grades
from memlab.pipeline.tables import SCHEMAS, SESSION, Tables, with_text

NOTHING = "(nothing)"
"""The document of a judged topic without a ranking, for which tools count 0 as memlab does."""

UNJUDGED = ".unjudged.trec"
"""End of the name of the file with the other topics of a run."""


def escape(name: str) -> str:
    """Format a name as one word: whitespace, % and " become %XX, as in URLs, so that it can be read back.

    >>> escape("my session%1")
    'my%20session%251'
    """
    return re.sub(r"[\s%\"]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name) or "%00"


def run_lines(rows: Iterable[tuple[str, str, int, float]], name: str) -> str:
    """Return a TREC run of rows (topic, document, rank, score), whose names are single words.

    >>> run_lines([("q1", "my%20session", 1, 1.0)], "my run")
    'q1 Q0 my%20session 1 1.0 my%20run\\n'
    """
    return "".join(f"{topic} Q0 {document} {rank} {score} {escape(name)}\n" for topic, document, rank, score in rows)


def unit_names(units: pl.DataFrame, ids: pl.DataFrame) -> pl.DataFrame:
    """Return (unit, document): the benchmark's names of sessions and turns, and session:first-last for passages.

    A name that occurs twice in a corpus (a session in two places of a haystack) gets the suffix ``#1``, ``#2``, ... by
    the order of its places, which ``memlab.evaluate.score`` reads.
    """
    first, last = pl.col("turns").list.min(), pl.col("turns").list.max()
    sessions = ids.filter(pl.col("kind") == "session").select(*SESSION, pl.col("name").alias("session_name"))
    turns = ids.filter(pl.col("kind") == "turn").select(*SESSION, "turn", pl.col("name").alias("turn_name"))
    named = units.join(sessions, on=SESSION, how="left").with_columns(
        pl.coalesce("session_name", pl.format("{}-{}", "corpus", "session")))
    span = pl.format("{}:{}-{}", "session_name", first + 1, last + 1)
    if grain(units) == "session":
        named = named.with_columns(pl.col("session_name").alias("document"))
    elif grain(units) == "turn":
        named = named.with_columns(first.alias("turn")).join(turns, on=[*SESSION, "turn"], how="left").with_columns(
            pl.coalesce("turn_name", span, "session_name").alias("document"))
    else:
        named = named.with_columns(pl.coalesce(span, "session_name").alias("document"))
    places = named.select("unit", "corpus", "session", first.alias("first"), _escape("document")).with_row_index("row")
    nth = pl.int_range(1, pl.len() + 1).over("corpus", "document")
    suffixed = pl.when(pl.len().over("corpus", "document") > 1).then(pl.format("{}#{}", "document", nth))
    return places.sort("session", "first", "unit").with_columns(suffixed.otherwise("document").alias("document")).sort(
        "row").select("unit", "document")


def question_names(tables: Tables) -> pl.DataFrame:
    """Return (question, topic): the benchmark's name of each question, or its number where it has none."""
    return question_ids(tables).rename({"question_id": "topic"}).with_columns(_escape("topic"))


def write_trec(tables: Tables, folder: Path, *, name: str) -> None:
    """Write the runs and qrels of a ranking to a folder."""
    write_run(tables["ranking"], tables, folder / "run.trec", name=name)
    write_qrels(tables, folder / "qrels.trec")
    write_stale_qrels(tables, folder / "qrels.stale.trec")
    if grain(tables["units"]) != "session":
        sessions = by_session(tables)
        judged = sessions["ranking"].join(scored_evidence(tables), on="question", how="semi")
        write_run(judged, sessions, folder / "run.sessions.trec", name=name)
        write_qrels(sessions, folder / "qrels.sessions.trec")


def write_run(ranking: pl.DataFrame, tables: Tables, path: Path, *, name: str) -> None:
    """Write ``topic Q0 document rank score name`` for rows (question, unit, rank).

    Of each question the first ``KEPT_RANKS`` ranks are written, or all down to the first evidence, so that its
    reciprocal rank is exact. The score is 1 / rank, since TREC tools sort by score and break ties in their own way. The
    real scores are in ranking.parquet.
    """
    units, relevant = _relevant(tables)
    rows = ranking.select("question", "unit", "rank")
    first = relevant.join(rows, on=["question", "unit"], how="left").group_by("question").agg(
        pl.col("rank").min().fill_null(0).alias("first"))
    deepest = pl.max_horizontal(pl.col("first").fill_null(0), pl.lit(KEPT_RANKS))
    kept = rows.join(first, on="question", how="left").filter(pl.col("rank") <= deepest).join(
        unit_names(units, tables["ids"]), on="unit")
    nothing = first.join(kept, on="question", how="anti").select(
        "question", pl.lit(NOTHING).alias("document"), pl.lit(1, pl.Int32).alias("rank"), "first")
    lines = pl.concat([kept.select(nothing.columns), nothing]).join(question_names(tables), on="question").sort(
        "question", "rank")
    for part, file in ((lines.drop_nulls("first"), path),
                       (lines.filter(pl.col("first").is_null()), path.with_suffix(UNJUDGED))):
        if file == path or part.height:
            _write(part.select("topic", pl.lit("Q0").alias("iteration"), "document", "rank",
                               (1 / pl.col("rank")).alias("score"), pl.lit(escape(name)).alias("name")), file)


def write_qrels(tables: Tables, path: Path) -> None:
    """Write ``topic 0 document 1`` for every unit that holds evidence of a question that counts.

    Units finer than sessions are relevant by the turns that they cover; evidence without a turn is left out. Evidence
    that no unit holds, since it was never written, has a line as well.
    """
    units, relevant = _relevant(tables)
    rows = relevant.join(question_names(tables), on="question").join(
        unit_names(units, tables["ids"]), on="unit").sort("question", "unit")
    _write(rows.select("topic", pl.lit(0).alias("iteration"), "document", pl.lit(1).alias("relevance")), path)


def write_stale_qrels(tables: Tables, path: Path) -> None:
    """Write ``topic 0 document grade`` for the questions with both grades: 1 for valid evidence, -1 for outdated."""
    pieces = evidence_grades(tables)
    if pieces.height:
        held = holders(tables["units"], pieces.drop("outdated")).join(
            pieces, on=["question", "session", "turn"], nulls_equal=True)
        rows = held.group_by("question", "unit").agg(pl.col("outdated").all()).join(
            question_names(tables), on="question").join(unit_names(tables["units"], tables["ids"]), on="unit")
        _write(rows.sort("question", "unit").select(
            "topic", pl.lit(0).alias("iteration"), "document", pl.when("outdated").then(-1).otherwise(1)), path)


def _relevant(tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the units, with one for each piece of evidence that none holds, and (question, unit) of the relevant."""
    units, evidence = tables["units"], scored_evidence(tables)
    if grain(units) == "session":
        evidence = evidence.with_columns(turn=pl.lit(None, pl.Int32)).unique(maintain_order=True)
    else:
        evidence = evidence.drop_nulls("turn")
    held = holders(units, evidence)
    lost = evidence.join(held, on=["question", "session", "turn"], how="anti", nulls_equal=True)
    free = (units.select(pl.col("unit").max()).item() or 0) + 1
    lost = lost.with_columns(unit=pl.struct(*SESSION, "turn").rank("dense").cast(pl.Int64) + free)
    added = lost.unique("unit", maintain_order=True).select(
        "unit", *SESSION, pl.concat_list("turn").cast(SCHEMAS["units"]["turns"]).alias("turns"),
        pl.lit(units["level"].first(), pl.String).alias("level"))
    pairs = pl.concat([rows.select("question", "unit") for rows in (held, lost)]).unique()
    return pl.concat([units, added]), pairs


def by_session(tables: Tables) -> Tables:
    """Return the tables with a ranking of sessions, each at the place of its first unit."""
    units = tables["units"].select(SESSION).unique().sort(SESSION).with_row_index("whole").select(
        pl.col("whole").cast(pl.Int64), *SESSION)
    first = tables["ranking"].select("question", "unit", "rank").join(
        tables["units"].select("unit", *SESSION).join(units, on=SESSION), on="unit").group_by(
        "question", pl.col("whole").alias("unit")).agg(pl.col("rank").min())
    ranking = first.with_columns(rank=pl.col("rank").rank("ordinal").over("question").cast(pl.Int32))
    return tables.updated({
        "units": units.select(pl.col("whole").alias("unit"), *SESSION, turns=pl.lit([], SCHEMAS["units"]["turns"]),
                              level=pl.lit("session")),
        "ranking": ranking.select("question", "unit", (1 / pl.col("rank")).alias("score"), "rank", selected=False)})


def write_answers(tables: Tables, folder: Path) -> None:
    """Write ``answers.jsonl`` and ``verdicts.jsonl``, where there are any, with the benchmark's own question ids.

    ``question_id`` and ``hypothesis`` are the names of LongMemEval's own evaluation script, which reads such a file.
    """
    names = question_ids(tables)
    if "answers" in tables and tables["answers"].height:
        answers = with_text(tables["answers"], tables["texts"], name="hypothesis")
        rows = answers.join(names, on="question", how="left").sort("question", "sample").select(
            "question_id", "hypothesis", "question", "sample", "prompt_tokens",
            "completion_tokens", "seconds", "dropped", *({"logprob"} & set(answers.columns)))
        (folder / "answers.jsonl").write_text(rows.write_ndjson(), encoding="utf-8")
    if "verdicts" in tables and tables["verdicts"].height:
        rows = tables["verdicts"].join(names, on="question", how="left").sort("question", "judge")
        (folder / "verdicts.jsonl").write_text(rows.select("question_id", pl.exclude("question_id")).write_ndjson(),
                                               encoding="utf-8")


def question_ids(tables: Tables) -> pl.DataFrame:
    """Return (question, question_id): the benchmark's name of a question, or its number where it has none."""
    names = tables["ids"].filter(pl.col("kind") == "question").select("question", "name")
    named = tables["questions"].select("question").join(names, on="question", how="left")
    return named.select("question", pl.coalesce("name", pl.col("question").cast(pl.String)).alias("question_id"))


def _escape(column: str) -> pl.Expr:
    return pl.col(column).map_elements(escape, return_dtype=pl.String)


def _write(rows: pl.DataFrame, path: Path) -> None:
    path.write_text(rows.write_csv(separator=" ", include_header=False, quote_style="never"), encoding="utf-8")
