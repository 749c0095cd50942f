"""LongMemEval's own retrieval metrics, as its public code computes them, for comparison with public figures.

They differ from the standard ones in three ways: only user turns count (a session is gold if a user turn of it is
evidence), ranks 1 and 2 weigh the same in nDCG, and two averages are in circulation. Formulas from ``src/retrieval``
of the repository ``xiaowu0162/LongMemEval`` (Wu et al., ICLR 2025), written anew.

A ranking of turns has figures for sessions too, those of ``evaluate_retrieval_turn2session``: the turns are cut where
the kth distinct session appears, and nDCG stays that of turns.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.evaluate.evidence_ranks import Ranks, grain, matrix, session_ranks, unit_ranks
from memlab.evaluate.retrieval import as_columns, count
from memlab.evaluate.statistics import Values
from memlab.tables import SESSION, Tables

KS = (1, 3, 5, 10, 30, 50)

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
    gold = user_evidence(tables).filter(pl.col("question").is_in(answerable.implode()))
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
    for k in KS:
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


def user_evidence(tables: Tables) -> pl.DataFrame:
    """Return (question, corpus, session, turn) of the evidence in user turns."""
    user_turns = tables["turns"].filter(pl.col("role") == "user").select("corpus", "session", "turn")
    evidence = tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question")
    return evidence.join(user_turns, on=["corpus", "session", "turn"], how="semi").select(
        "question", "corpus", "session", "turn").unique()
