"""Order of the turns that a fit has scored, with one rule for the first session.

A fit knows turns, and where haystacks are long it loses the first session. So the session that leads is that of the
turn with the best sum of three standardised scores: by the fit, by the weights, and by the words of its session. The
other turns keep the order of the fit.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.learn.ranker.features import PAIR
from memlab.learn.ranker.signals import FUSED, Bools, Floats, Ints, dense_numbers, zscores
from memlab.pipeline.tables import DIGITS
from memlab.stages.rank.rerank import below
from memlab.stages.rank.units import rank_units

SESSION_WORDS = "z lexical:session"
"""Feature with the standardised score of a turn's session by its words."""

SHARE = 0.2
"""Weight of ``SESSION_WORDS`` in the choice of the first session; the weights have 1, and the fit ``TRUST``."""

TRUST = {True: 3.0, False: 1.0}
"""Weight of a fit in the choice of the first session, at home and elsewhere."""

AWAY = 0.25
"""Weight of the score by weights in that of every turn, where the fit is not at home and has 1."""


def mix(frame: pl.DataFrame, scores: Floats, home: bool) -> Floats:
    """Return the scores (n,) of the rows of ``features`` by the fit; not at home, with a share of those by weights.

    The features of a control have no score by weights.
    """
    if home or f"z {FUSED}" not in frame.columns:
        return scores
    return zscores(scores, dense_numbers(frame["question"])) + AWAY * frame[f"z {FUSED}"].to_numpy()


def leading_turns(frame: pl.DataFrame, session: Ints, scores: Floats, home: bool = True) -> Bools | None:
    """Return whether a row of ``features`` is the turn that leads its question, (n,); None without a score by weights.

    ``session`` and ``scores`` (n,) are the rows' session numbers and scores by the fit. In the session of the turn with
    the largest sum the best turn by the fit leads. Equal ones count in the order of the rows.
    """
    if f"z {FUSED}" not in frame.columns:
        return None
    question = dense_numbers(frame["question"])
    value = TRUST[home] * zscores(scores, question) + frame[f"z {FUSED}"].to_numpy()
    if SESSION_WORDS in frame.columns:
        value = value + SHARE * frame[SESSION_WORDS].to_numpy()
    chosen = session[_best(value.round(DIGITS), question)]
    inside = np.where(session == chosen[question], scores, -np.inf)
    leads = np.zeros(frame.height, np.bool_)
    leads[_best(inside, question)] = True
    return leads


def _best(values: Floats, question: Ints) -> Ints:
    """Return the row with the largest of the values (n,) in each question, numbered from 0; the first of equal ones."""
    order = np.lexsort((-values, question))
    return order[np.flatnonzero(np.diff(question[order], prepend=-1))]


def rescore(ranking: pl.DataFrame, frame: pl.DataFrame, scores: Floats, depth: int,
            leads: Bools | None = None) -> pl.DataFrame:
    """Return the ranking with the rows of ``frame`` by these scores (n,), and those beyond ``depth`` behind them.

    The ranking is sorted by question and rank, and ``frame`` has all of its rows up to ``depth``, in any order. Equal
    scores keep their order: each rank of the first ranking costs one unit of the last digit. ``leads`` (n,) marks the
    row of each question that comes first: its score is one unit above the best.
    """
    inside = ranking["rank"].to_numpy() <= depth
    head = ranking.select(*PAIR, "rank").filter(inside).with_row_index("row")
    at = _rows_of(head, frame)
    head = head.with_columns(pl.Series("score", scores[at]) - pl.col("rank") * 10.0**-DIGITS)
    if leads is not None:
        top = pl.col("score").max().over("question") + 10.0**-DIGITS
        head = head.with_columns(pl.when(pl.Series(leads[at])).then(top).otherwise("score").alias("score"))
    first = rank_units(head)
    row = np.arange(ranking.height)  # the tail keeps its rows
    row[inside] = row[inside][first["row"].to_numpy()]
    tail = below(first, ranking.select("question", "score").filter(~inside))["score"].round(DIGITS) + 0.0
    score = np.empty(ranking.height)
    score[inside], score[~inside] = first["score"].to_numpy(), tail.to_numpy()
    moved = ranking.drop("score", "rank", "selected")[row]
    return moved.select(*PAIR, pl.Series("score", score), ranking["rank"], pl.lit(False).alias("selected"),
                        pl.exclude(PAIR))


def _rows_of(pairs: pl.DataFrame, frame: pl.DataFrame) -> slice | Ints:
    """Return the row in ``frame`` of each of these (question, unit, ...), which are often its own rows."""
    if pairs.select(PAIR).equals(frame.select(PAIR)):
        return slice(None)
    rows = pairs.select(PAIR).join(frame.select(PAIR).with_row_index("row"), on=PAIR, how="left", maintain_order="left")
    return rows["row"].to_numpy().astype(np.int64)


def session_numbers(frame: pl.DataFrame, units: pl.DataFrame) -> Ints:
    """Return the number of each row's session in the corpus of its question, (n,)."""
    return units["session"].gather(frame["unit"]).to_numpy().astype(np.int64)
