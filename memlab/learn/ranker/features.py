"""Features of (question, turn) pairs: the signals of a ranking, standardised within the question, and the texts.

Nothing here sees a label, an id of a benchmark, or the order of a file. All figures of a question come from its own
ranking and corpus, so that a part of the corpora gives the same features as the whole.
"""

from __future__ import annotations

import polars as pl
from polars import selectors as cs

from memlab.errors import MemlabError
from memlab.learn.ranker.dates import date_features
from memlab.learn.ranker.overlap import overlap_features
from memlab.learn.ranker.texts import question_features, turn_features
from memlab.rank.units import signals_of
from memlab.tables import SESSION, Tables

NEEDED = ("ranking", "units", "questions", "queries", "turns", "texts", "sessions")
"""Tables that the features are made from."""

FUSED = "linear"
"""Name of the fused score as a signal."""

PAIR = ["question", "unit"]


def features(tables: Tables, depth: int, alone: bool = False) -> pl.DataFrame:
    """Return (question, unit, one Float32 column per feature) for the first ``depth`` turns of each question.

    Rows are in the order of the ranking. Where a control searches with another question's words, its text is that of
    the question here too. ``alone`` leaves only what the turn tells by itself and the question by itself. Raises
    MemlabError if the units are not turns.
    """
    wrong = tables["queries"].filter(pl.col("kind") == "wrong").select("question", pl.col("text_id").alias("other"))
    asked = tables["questions"].join(wrong, on="question", how="left", maintain_order="left")
    tables = tables.updated({"questions": asked.with_columns(
        pl.coalesce("other", "text_id").alias("text_id")).drop("other")})
    ranking, units = tables["ranking"], tables["units"]
    if not units["level"].eq("turn").all():
        raise MemlabError("learned fusion ranks turns; these units are of another level", where="learn/ranker",
                          fix="rank at level turn, and roll up behind it")
    placed = ranking.join(units.select("unit", *SESSION, pl.col("turns").list.first().alias("turn")), on="unit",
                          maintain_order="left")
    head = placed.filter(pl.col("rank") <= depth)
    parts = [turn_features(head, tables), question_features(head, tables)]
    if alone:
        parts[0] = parts[0].drop(cs.starts_with("speaker named"))
    else:
        parts += [signal_features(placed, depth), overlap_features(head, tables), date_features(head, tables)]
    rows = pl.concat([head.select(PAIR), *parts], how="horizontal")
    return rows.with_columns(pl.exclude(PAIR).cast(pl.Float32))


def signal_features(placed: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Return features of the signals for the units up to ``depth``.

    ``placed`` is a ranking with corpus, session and turn. A z-score counts the first ``depth`` units of the question,
    a unit without a hit as the lowest of its signal; a neighbour outside the ranking has none.
    """
    lanes = signals_of(placed.drop("corpus", "session", "turn"))
    names = [FUSED, *(lane for lane in lanes if lane != FUSED)]
    inside = pl.col("rank") <= depth
    rows = placed.with_columns(pl.col("score").alias(FUSED)).with_columns(
        pl.col(name).is_not_null().alias(f"\0hit {name}") for name in names)
    rows = rows.with_columns(pl.col(name).fill_null(pl.col(name).filter(inside).min().over("question")).fill_null(0.0)
                             for name in names)
    rows = rows.with_columns(_zscore(name, inside).alias(f"z {name}") for name in names)
    head = rows.filter(inside)
    for step in (-2, -1, 1, 2):
        near = rows.select("question", *SESSION, pl.col("turn") - step,
                           *(pl.col(f"z {name}").alias(f"z {name} {step:+}") for name in names if _of_turns(name)))
        head = head.join(near, on=["question", *SESSION, "turn"], how="left", maintain_order="left")
    session = ["question", *SESSION]
    scores = [f"z {name}" for name in names if _of_turns(name)]
    head = head.with_columns(
        *((pl.col(f"z {name}").max().over("question") - pl.col(f"z {name}")).alias(f"below {name}") for name in names),
        *(pl.col(name).rank("min", descending=True).over("question").log1p().alias(f"rank {name}") for name in names),
        *(pl.col(score).max().over(session).alias(f"session best {score}") for score in scores),
        *(_nth(score, 2).over(session).alias(f"session second {score}") for score in scores),
        *(pl.col(score).top_k(5).clip(lower_bound=0).sum().over(session).alias(f"session sum {score}")
          for score in scores),
        pl.len().over(session).log1p().alias("session turns ranked"),
    )
    best = [f"session best {score}" for score in scores]
    head = head.with_columns(
        *((pl.col(f"{name}").max().over("question") - pl.col(name)).alias(f"{name} below") for name in best),
        *((pl.col(b) - pl.col(score)).alias(f"{b} minus own") for b, score in zip(best, scores)),
        pl.col(best[0]).rank("dense", descending=True).over("question").log1p().alias("session rank"),
        pl.sum_horizontal((pl.col(f"rank {name}") < 2.4).cast(pl.Float64) for name in names).alias("lanes in 10"),
        pl.mean_horizontal(f"rank {name}" for name in names).alias("mean rank"),
        pl.max_horizontal(f"rank {name}" for name in names).alias("worst rank"),
        pl.min_horizontal(f"rank {name}" for name in names).alias("best rank"),
    )
    new = [c for c in head.columns if c not in placed.columns and c not in names and not c.startswith("\0")]
    return head.select(new)


def _zscore(name: str, inside: pl.Expr) -> pl.Expr:
    chosen = pl.col(name).filter(inside)
    deviation = chosen.std(ddof=0).over("question")
    return pl.when(deviation > 1e-9).then((pl.col(name) - chosen.mean().over("question")) / deviation).otherwise(0.0)


def _nth(score: str, n: int) -> pl.Expr:
    """The n-th largest value, null if there are fewer."""
    return pl.col(score).sort(descending=True).slice(n - 1, 1).max()


def _of_turns(name: str) -> bool:
    """Return whether a signal differs between the turns of one session."""
    return "session" not in name
