"""Retrieval metrics with binary relevance from the ranks of the evidence: standard ones, and LongMemEval's own.

The input of every metric is the rank of each piece of evidence, a matrix (questions x evidence). Rankings list units
(sessions, turns, or memories that cover several turns). The rank of a session is that of its first unit, counting
distinct sessions; the rank of a turn is that of the first unit that covers it.

All low-level functions take ``ranks`` of shape (q, g): per question the rank (from 1) of each piece of evidence, inf
where it was not retrieved, NaN as padding; they return shape (q,), NaN for a question without evidence.

LongMemEval's own metrics, as its public code computes them, allow comparison with public figures. They differ from the
standard ones in three ways: only user turns count (a session is gold if a user turn of it is evidence), ranks 1 and 2
weigh the same in nDCG, and two averages are in circulation. Formulas from ``src/retrieval`` of the repository
``xiaowu0162/LongMemEval`` (Wu et al., ICLR 2025), written anew.

A ranking of turns has figures for sessions too, those of ``evaluate_retrieval_turn2session``: the turns are cut where
the kth distinct session appears, and nDCG stays that of turns.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.evaluate.statistics import Values
from memlab.pipeline.tables import SESSION, Tables

Ranks = NDArray[np.float64]
"""Shape (questions, evidence): rank from 1, inf = not retrieved, NaN = no such evidence (padding)."""

Level = Literal["session", "turn"]

Grain = Literal["session", "turn", "passage"]


def grain(units: pl.DataFrame) -> Grain:
    """Return whether a unit is a whole session, one turn, or a passage of several turns.

    Memories count by what they cover: sessions where each session has one memory, turns where each memory has one.
    """
    levels = set(units["level"].unique())
    if levels <= {"session"}:
        return "session"
    if levels == {"turn"}:
        return "turn"
    if units.select("corpus", "session").n_unique() == units.height:
        return "session"
    return "turn" if (units["turns"].list.len() == 1).all() else "passage"


def scored_evidence(tables: Tables) -> pl.DataFrame:
    """Return (question, corpus, session, turn) of the questions that count in retrieval averages."""
    scored = tables["gold"].filter("scored").select("question")
    return with_corpus(tables).join(scored, on="question", how="semi", maintain_order="left")


def with_corpus(tables: Tables) -> pl.DataFrame:
    """Return (question, corpus, session, turn) of all evidence, each piece once."""
    return tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question").select(
        "question", *SESSION, "turn").unique(maintain_order=True)


def holders(units: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Pair each piece of evidence with every unit that holds it: (question, session, turn, unit).

    A session holds the evidence said in it; a finer unit holds the turns that it covers, and, where only the
    session of the evidence is known, belongs to it.
    """
    near = units.select("unit", *SESSION, "turns").join(evidence.select(SESSION).unique(), on=SESSION, how="semi")
    by_session = near.select("unit", *SESSION)
    if grain(units) == "session":
        pairs = evidence.join(by_session, on=SESSION)
    else:
        by_turn = near.explode("turns").rename({"turns": "turn"})
        with_turn, without = evidence.filter(pl.col("turn").is_not_null()), evidence.filter(pl.col("turn").is_null())
        pairs = pl.concat([with_turn.join(by_turn, on=[*SESSION, "turn"]).select(*evidence.columns, "unit"),
                           without.join(by_session, on=SESSION).select(*evidence.columns, "unit")])
    return pairs.select("question", "session", "turn", "unit").unique()


def session_ranks(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, session, rank) of evidence sessions, counting distinct sessions; null = not retrieved.

    Sessions that come with one and the same unit share the last of their places.
    """
    wanted = evidence.select("question", "session").unique()
    ranked = (ranking.select("question", "unit", "rank").join(wanted, on="question", how="semi")
              .join(units.select("unit", "session"), on="unit"))
    first = ranked.group_by("question", "session").agg(pl.col("rank").min())
    counted = first.with_columns(pl.col("rank").rank("max").over("question"))
    return wanted.join(counted, on=["question", "session"], how="left").sort("question", "session")


def at_level(evidence: pl.DataFrame, level: Level) -> pl.DataFrame:
    """Return the evidence of a level: the known turns, or each session once with no turn."""
    if level == "turn":
        return evidence.filter(pl.col("turn").is_not_null())
    return evidence.with_columns(pl.lit(None, pl.Int32).alias("turn")).unique()


def unit_ranks(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame, level: Level) -> pl.DataFrame:
    """Return (question, session[, turn], rank): the rank of the first unit in that session, or over that turn."""
    wanted = at_level(evidence, level)
    key = ["question", "session"] + (["turn"] if level == "turn" else [])
    first = (holders(units, wanted).join(ranking.select("question", "unit", "rank"), on=["question", "unit"])
             .group_by(key).agg(pl.col("rank").min()))
    return wanted.select(key).join(first, on=key, how="left").sort(key)


def matrix(ranks: pl.DataFrame, questions: pl.Series) -> Ranks:
    """Lay out rows (question, rank) as one row of ranks per question, in the order of ``questions`` (q,).

    Returns shape (q, g), g the most evidence that a question has; each row ascending, inf before NaN.

    >>> rows = pl.DataFrame({"question": [7, 7, 9], "rank": [4, None, 1]})
    >>> matrix(rows, pl.Series([7, 8, 9]))
    array([[ 4., inf],
           [nan, nan],
           [ 1., nan]])
    """
    order = pl.DataFrame({"question": questions}).with_row_index("row")
    rows = (ranks.join(order.cast({"question": ranks.schema["question"]}), on="question")
            .with_columns(pl.col("rank").cast(pl.Float64).fill_null(np.inf)).sort("row", "rank")
            .with_columns(pl.int_range(pl.len()).over("row").alias("place")))
    out = np.full((len(questions), int(rows["place"].max() or 0) + 1), np.nan)  # type: ignore[call-overload, arg-type]
    out[rows["row"].to_numpy(), rows["place"].to_numpy()] = rows["rank"].to_numpy()
    return out


KS = (1, 3, 5, 10, 20, 30, 50)


def recall_any(ranks: Ranks, k: float) -> Values:
    """Return 1 if any evidence is among the first k, else 0 (also called hit or success at k).

    >>> recall_any(np.array([[2.0, np.inf], [7.0, np.nan]]), 5)
    array([1., 0.])
    """
    return _nan_without_evidence(ranks, (ranks <= k).any(axis=1).astype(float))


def recall_all(ranks: Ranks, k: float) -> Values:
    """Return 1 if all evidence is among the first k, else 0 (LongMemEval's recall_all, Wu et al., ICLR 2025).

    >>> recall_all(np.array([[2.0, np.inf], [3.0, np.nan]]), 5)
    array([0., 1.])
    """
    return _nan_without_evidence(ranks, ((ranks <= k).sum(axis=1) == count(ranks)).astype(float))


def recall(ranks: Ranks, k: float) -> Values:
    """Return the share of the evidence among the first k: |evidence in the first k| / |evidence|.

    >>> recall(np.array([[2.0, 9.0], [3.0, np.nan]]), 5)
    array([0.5, 1. ])
    """
    return _nan_without_evidence(ranks, (ranks <= k).sum(axis=1) / np.maximum(count(ranks), 1))


def precision(ranks: Ranks, k: int) -> Values:
    """Return the share of the first k that adds evidence: ranks up to k at which evidence appears first, over k.

    Divided by k even where fewer than k units exist, as trec_eval does. A unit that covers two pieces of
    evidence counts once.

    >>> precision(np.array([[1.0, 1.0, 4.0]]), 5)
    array([0.4])
    """
    return _nan_without_evidence(ranks, (_first_of_rank(np.sort(ranks)) & (np.sort(ranks) <= k)).sum(axis=1) / k)


def reciprocal_rank(ranks: Ranks, k: float = np.inf) -> Values:
    """Return 1 / rank of the first evidence, 0 where none is among the first k.

    Its mean is the MRR, with a cut the MRR@k (Voorhees, TREC-8, 1999).

    >>> reciprocal_rank(np.array([[4.0, 2.0], [np.inf, np.nan]])), reciprocal_rank(np.array([[11.0]]), 10)
    (array([0.5, 0. ]), array([0.]))
    """
    first = np.where(np.isnan(ranks), np.inf, ranks).min(axis=1)
    return _nan_without_evidence(ranks, np.where(first <= k, 1 / first, 0.0))


def ndcg(ranks: Ranks, k: int) -> Values:
    """Return nDCG@k, the normalised discounted cumulative gain (Jarvelin and Kekalainen, TOIS 2002).

    DCG@k = sum over evidence at rank r <= k of 1 / log2(r + 1); the ideal puts the largest gains first.
    With one piece of evidence per rank (sessions, turns) this is the binary nDCG of trec_eval. A unit that covers
    several pieces of evidence gains their number, so that the measure stays within [0, 1] for long passages.

    >>> ndcg(np.array([[1.0, 3.0], [1.0, 1.0]]), 10).round(4)
    array([0.9197, 1.    ])
    """
    rows = np.sort(ranks)
    dcg = np.where(rows <= k, 1 / np.log2(rows + 1), 0.0).sum(axis=1)
    opens = _first_of_rank(rows) | np.isinf(rows)
    gains = np.zeros(rows.shape)
    pieces = ~np.isnan(rows)
    np.add.at(gains, (np.nonzero(pieces)[0], (np.cumsum(opens, axis=1) - 1)[pieces]), 1.0)
    best = -np.sort(-gains, axis=1)[:, :k]
    ideal = (best / np.log2(np.arange(best.shape[1]) + 2)).sum(axis=1)
    return _nan_without_evidence(ranks, dcg / np.where(ideal > 0, ideal, 1))


def count(ranks: Ranks) -> Values:
    """Return the number of pieces of evidence of each question, (q,)."""
    return (~np.isnan(ranks)).sum(axis=1).astype(float)


def _first_of_rank(rows: Ranks) -> NDArray[np.bool_]:
    """Mark, in rows sorted ascending, the first of equal ranks; padding is never first."""
    first = np.ones(rows.shape, bool)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return first & ~np.isnan(rows)


def _nan_without_evidence(ranks: Ranks, values: Values) -> Values:
    return np.where(count(ranks) > 0, values, np.nan)


def standard_metrics(ranks: Ranks, prefix: str) -> dict[str, Values]:
    """Return all standard metrics of one level, named as in metrics.json."""
    columns = {f"{prefix}/mrr": reciprocal_rank(ranks), f"{prefix}/mrr@10": reciprocal_rank(ranks, 10)}
    for k in KS:
        columns |= {f"{prefix}/recall_any@{k}": recall_any(ranks, k), f"{prefix}/recall_all@{k}": recall_all(ranks, k),
                    f"{prefix}/recall@{k}": recall(ranks, k), f"{prefix}/ndcg@{k}": ndcg(ranks, k),
                    f"{prefix}/precision@{k}": precision(ranks, k)}
    return columns


def retrieval(tables: Tables) -> pl.DataFrame:
    """Score the tables ``ranking`` and ``units``: one row per question of ``questions``, one column per metric.

    Session metrics always (a finer ranking is collapsed to the first appearance of each session); turn metrics
    where units are finer than sessions. Null where a question does not count or has no evidence at that level.
    """
    questions, evidence = tables["questions"]["question"], scored_evidence(tables)
    sessions = matrix(session_ranks(tables["ranking"], tables["units"], evidence), questions)
    columns = standard_metrics(sessions, "session")
    if grain(tables["units"]) != "session":
        turns = matrix(unit_ranks(tables["ranking"], tables["units"], evidence, "turn"), questions)
        columns |= standard_metrics(turns, "turn")
    return as_columns(questions, columns)


def as_columns(questions: pl.Series, columns: dict[str, Values]) -> pl.DataFrame:
    """Build a frame (question, one column per metric); NaN becomes null."""
    return pl.DataFrame({"question": questions, **{name: pl.Series(values, nan_to_null=True, dtype=pl.Float64)
                                                   for name, values in columns.items()}})


LONGMEMEVAL_KS = (1, 3, 5, 10, 30, 50)

Cut = int | Values
"""The last rank that counts: one for all questions, or one for each, (q,)."""


def official_recall_any(ranks: Ranks, k: Cut) -> Values:
    """Return 1 if any gold unit is among the first k; 0 for a question without gold. (q, g) -> (q,)."""
    return (ranks <= _column(k)).any(axis=1).astype(float)


def official_recall_all(ranks: Ranks, k: Cut) -> Values:
    """Return 1 if all gold units are among the first k; 1 for a question without gold. (q, g) -> (q,)."""
    return ((ranks <= _column(k)).sum(axis=1) == count(ranks)).astype(float)


def official_ndcg(ranks: Ranks, k: Cut) -> Values:
    """Return nDCG with DCG = rel[0] + sum over i >= 1 of rel[i] / log2(i + 1), i from 0: ranks 1 and 2 both weigh 1.

    The ideal is taken over the whole corpus and cut at k; 0 for a question without gold. (q, g) -> (q,).

    >>> official_ndcg(np.array([[2.0], [4.0]]), 5)
    array([1. , 0.5])
    """
    dcg = np.where(ranks <= _column(k), _weight(np.where(np.isnan(ranks), np.inf, ranks)), 0.0).sum(axis=1)
    ideals = np.concatenate([[0.0], np.cumsum(_weight(np.arange(1.0, ranks.shape[1] + 1)))])
    ideal = ideals[np.minimum(count(ranks), k).astype(int)]
    return dcg / np.where(ideal > 0, ideal, 1.0)


def _weight(rank: Values) -> Values:
    return 1 / np.log2(np.maximum(rank, 2.0))


def _column(k: Cut) -> Values:
    return np.asarray(k, dtype=np.float64).reshape(-1, 1)


def official_metrics(tables: Tables) -> pl.DataFrame:
    """Score ``ranking`` by LongMemEval's protocol: ``official/{session,turn}/{strict,noabs}/...`` per question.

    Only for data of users and assistants without names, ranked by session or by turn; other data gives a frame
    of questions alone. ``noabs`` leaves abstention questions out; ``strict`` also those without evidence in user
    turns, for which ``noabs`` counts recall_all = 1 and the rest 0. A ranked turn that is not the user's counts as
    wrong. Where a ranking ends before k with evidence still missing, the value is unknown: that metric is null for
    all questions, since a mean over the others would be another figure.
    """
    questions, turns = tables["questions"]["question"], tables["turns"]
    level = grain(tables["units"])
    if level == "passage" or not turns["speaker"].is_null().all() or set(turns["role"]) != {"user", "assistant"}:
        return as_columns(questions, {})
    answerable = tables["gold"].filter(~pl.col("abstain"))["question"]
    user_turns = turns.filter(pl.col("role") == "user")
    gold = with_corpus(tables).filter(pl.col("question").is_in(answerable.implode())).join(
        user_turns, on=[*SESSION, "turn"], how="semi")
    if level == "session":
        ranks = whole = matrix(session_ranks(tables["ranking"], tables["units"], gold), questions)
    else:
        turn_ranks = unit_ranks(tables["ranking"], tables["units"], gold, "turn")
        ranks = matrix(turn_ranks, questions)
        best = turn_ranks.group_by("question", "session").agg(pl.col("rank").min())
        whole = matrix(best, questions)
    ranked = tables["ranking"].group_by("question").agg(pl.len().alias("ranked"))
    depth = pl.DataFrame({"question": questions}).join(ranked, on="question", how="left", maintain_order="left")
    length = depth["ranked"].fill_null(0).to_numpy().astype(np.float64)
    noabs = questions.is_in(answerable.implode()).to_numpy()
    counted = {"strict": noabs & (count(ranks) > 0), "noabs": noabs}
    appearances = session_appearances(tables, gold)
    columns: dict[str, Values] = {}
    for k in LONGMEMEVAL_KS:
        cuts: dict[str, Cut] = {level: k}
        if level == "turn":
            cuts["session"] = appearances.list.get(k - 1, null_on_oob=True).fill_null(np.inf).to_numpy()
        for name, cut in cuts.items():
            unknown = ((length < cut) & np.isinf(ranks).any(axis=1)).any()
            found = ranks if name == "turn" else whole
            scores = {"recall_any": official_recall_any(found, cut), "recall_all": official_recall_all(found, cut),
                      "ndcg_any": official_ndcg(ranks, cut)}
            for average, counts in counted.items():
                for metric, values in scores.items():
                    columns[f"official/{name}/{average}/{metric}@{k}"] = np.where(counts & ~unknown, values, np.nan)
    return as_columns(questions, columns)


def session_appearances(tables: Tables, gold: pl.DataFrame) -> pl.Series:
    """Return for each question the ranks of the turns with which the first, second, ... session appears, (q,) of lists.

    As in the official code, turns without evidence in a session with evidence form a session of their own (their ids
    say ``noans`` for ``answer``), and sessions of one name are one session.
    """
    names = tables["ids"].filter(pl.col("kind") == "session").select(*SESSION, "name")
    units = tables["units"].select("unit", *SESSION, pl.col("turns").list.first().alias("turn")).join(
        names, on=SESSION, how="left").with_columns(pl.coalesce("name", pl.col("session").cast(pl.String)))
    holds = gold.select("question", "session", "turn").unique().with_columns(pl.lit(True).alias("gold"))
    rows = tables["ranking"].select("question", "unit", "rank").join(units, on="unit").join(
        holds, on=["question", "session", "turn"], how="left")
    first = rows.group_by("question", "name", "gold").agg(pl.col("rank").min())
    lists = first.sort("question", "rank").group_by("question").agg(pl.col("rank").cast(pl.Float64))
    questions = tables["questions"].select("question")
    return questions.join(lists, on="question", how="left", maintain_order="left")["rank"]
