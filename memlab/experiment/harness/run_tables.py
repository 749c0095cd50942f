"""Further tables of a run: the curve of its selection rule, snippets, truncated keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import polars as pl

from memlab.evaluate.curves import BY_CLASS, CONSTANT, RULE, class_points, constant_rankings, rule_points
from memlab.evaluate.retrieval import scored_evidence
from memlab.models.protocols import Embedder, embedders_in
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.question_types import first_of
from memlab.pipeline.slots import LANES
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import SESSION, Tables, with_text
from memlab.stages.search.hits import of_kinds
from memlab.store import Store


@runtime_checkable
class OneKnob(Protocol):
    """A selection rule with one knob, whose settings draw its curve."""

    def variations(self) -> Iterator[Stage]:
        """Yield the rule at other settings of its knob."""


def rule_curve(select: Stage, tables: Tables, group_of: dict[int, int], store: Store) -> pl.DataFrame | None:
    """Return (rule, question, point, tokens, values) of the rule and of constant K; None for a rule without a knob.

    ``tables`` are those after the selection; ``group_of`` has the group of independent questions of each question.
    """
    ranking = tables["ranking"]
    if not isinstance(select, OneKnob) or not ranking.height or scored_evidence(tables).is_empty():
        return None
    constant = rule_points(constant_rankings(ranking), tables)
    curves = {RULE: rule_points((rule.run(tables, store)["ranking"] for rule in select.variations()), tables),
              CONSTANT: constant, BY_CLASS: class_points(constant, first_of(tables["classes"]), group_of)}
    return pl.concat([rows.select(pl.lit(name).alias("rule"), pl.all()) for name, rows in curves.items()])


@runtime_checkable
class DrawsCurve(Protocol):
    """A pack that draws the curve of its arm itself, such as one that shows parts of the selected units."""

    def curve(self, select: Stage, tables: Tables, store: Store) -> pl.DataFrame | None:
        """Return (rule, question, point, tokens, values) of the arm and of constant K; None if there is none."""


SHOWN_RANKS = 20
"""Ranks that the report's drill-down shows."""
MAX_CHARACTERS = 400
"""Length of a snippet."""


def snippets(ranked: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (question, rank, unit, session, turns, said_on, text, gold, selected) for the first ranks.

    ``ranked`` is a ranking with the columns session and turns of its units. The text of an unknown document of a
    foreign run is its name.
    """
    top = ranked.filter(pl.col("rank") <= SHOWN_RANKS).join(
        tables["units"].select("unit", "corpus"), on="unit").select(
        "question", "rank", "unit", "corpus", "session", "turns", "selected")
    dates = tables["sessions"].select("corpus", "session", "said_on")
    unknown = tables["ids"].filter((pl.col("kind") == "session") & (pl.col("session") < 0)).select(
        *SESSION, pl.format("no such document: {}", "name").alias("unknown"))
    return (
        top.join(_lines(top, tables), on="unit", how="left")
        .join(_gold(top, tables["evidence"]), on=["question", "unit"], how="left")
        .join(dates, on=SESSION, how="left")
        .join(unknown, on=SESSION, how="left")
        .select("question", "rank", "unit", "session", "turns", "said_on", pl.coalesce("text", "unknown").alias("text"),
                pl.col("gold").fill_null(False), "selected")
        .sort("question", "rank")
    )


def _lines(top: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (unit, text), with a line "speaker: text" for each turn."""
    lines = with_text(tables["turns"], tables["texts"]).select(
        "corpus", "session", "turn", (pl.coalesce("speaker", "role") + ": " + pl.col("text")).alias("line"))
    return (
        top.select("unit", "corpus", "session", "turns").unique("unit").explode("turns")
        .join(lines, left_on=["corpus", "session", "turns"], right_on=["corpus", "session", "turn"])
        .sort("unit", "turns")
        .group_by("unit", maintain_order=True)
        .agg(pl.col("line").str.join("\n").str.slice(0, MAX_CHARACTERS).alias("text"))
    )


def _gold(top: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, unit, gold); evidence without a turn makes every turn of its session gold."""
    by_turn = evidence.filter(pl.col("turn").is_not_null()).with_columns(pl.lit(True).alias("gold"))
    by_session = evidence.filter(pl.col("turn").is_null()).select("question", "session").unique().with_columns(
        pl.lit(True).alias("gold_session"))
    return (
        top.select("question", "unit", "session", "turns").explode("turns")
        .join(by_turn, left_on=["question", "session", "turns"], right_on=["question", "session", "turn"], how="left")
        .join(by_session, on=["question", "session"], how="left")
        .group_by("question", "unit").agg((pl.col("gold").any() | pl.col("gold_session").any()).alias("gold"))
    )


def truncated_share(pipeline: Pipeline, tables: Tables, store: Store) -> dict[str, float]:
    """Return, for each kind of memory that is searched, the share of distinct keys that the embedder truncates.

    The embedder is that of the first lane that has one; the result is empty where none has.
    """
    stage, embedder = next(lane_embedders(pipeline), (None, None))
    if embedder is None:
        return {}
    shares: dict[str, float] = {}
    memories = of_kinds(tables["memories"], getattr(stage, "kinds", None))
    for (kind,), part in memories.select("kind", "key_id").unique().group_by(["kind"], maintain_order=True):
        keys = tables["texts"].join(part, left_on="text_id", right_on="key_id", how="semi")
        cut = store.truncated(embedder, keys, "document")
        shares[str(kind)] = round(float(cut.mean()), 4) if len(cut) else 0.0
    return dict(sorted(shares.items()))


def lane_embedders(pipeline: Pipeline) -> Iterator[tuple[Stage, Embedder]]:
    """Yield (stage, embedder) for every lane that encodes keys and queries."""
    for slot, stage in pipeline.stages():
        if slot in LANES:
            yield from ((stage, embedder) for embedder in embedders_in(stage))
