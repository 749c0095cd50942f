"""Supervision of fits: disjoint folds of the questions, and labels of a ranking.

Questions of different folds share no evidence. LongMemEval's haystacks share sessions, so questions whose evidence has
the same text go into one fold; in LoCoMo the questions of one conversation do. LongMemEval's folds still share
distractors; ``in_folds`` returns them, so that no fit uses them as negatives. The labels are the ranks of the evidence;
the oracles use them too.

Every cross-fitted stage has the settings of ``CrossFitted``; ``learn.folds=all`` on the command line sets them all to
one fold for each group: each conversation of LoCoMo by a fit on the others (leave one conversation out).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.data.dataset import GroupBy, groups, session_texts
from memlab.data.numbering import question_digests
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SESSION, Tables
from memlab.support.errors import MemlabError

EvidenceLevel = Literal["session", "turn"]

FoldCount = Annotated[int, Field(ge=2)] | Literal["all"]
"""The number of folds, fewer where the data has fewer groups; ``all``: one fold for each group."""


def folds(questions: pl.DataFrame, evidence: pl.DataFrame, turns: pl.DataFrame, k: FoldCount = 5, seed: int = 0,
          by: GroupBy = "auto") -> pl.DataFrame:
    """Return (question, fold), fold in 0..k-1: groups stay whole, folds are of nearly equal size.

    Each group goes to the smallest fold, the largest groups first, equal ones in seeded order. If there are fewer
    groups than ``k``, or ``k`` is ``all``, there is one fold per group. Raises MemlabError if there is only one group.
    """
    grouped = groups(questions, evidence, turns, by)
    by_content = question_digests(questions, turns).sort("digest", maintain_order=True).join(
        grouped, on="question", maintain_order="left")
    sizes = by_content.group_by("group", maintain_order=True).len()  # the order of groups depends on no number
    if sizes.height < 2:
        raise MemlabError("all questions share evidence: they cannot be split into disjoint folds",
                          where="learn/folds", fix="use more data, or load a fit from another benchmark")
    counts = sizes["len"].to_numpy()
    shuffled = np.random.default_rng(seed).permutation(len(counts))
    load = np.zeros(len(counts) if k == "all" else min(k, len(counts)), np.int64)
    fold = np.empty(len(counts), np.int32)
    for group in shuffled[np.argsort(-counts[shuffled], kind="stable")]:
        fold[group] = int(np.argmin(load))
        load[fold[group]] += counts[group]
    return grouped.join(sizes.select("group", pl.Series("fold", fold)), on="group", how="left",
                        maintain_order="left").select("question", "fold")


@stage
class CrossFitted:
    """Settings of a stage that is fitted on gold: each question by a fit on the other folds."""

    folds: FoldCount = 5  # fewer where the data has fewer groups; all: leave one group out
    by: GroupBy = "auto"  # groups: corpus where a corpus has several questions, else evidence sessions of one text
    seed: int = 0

    def fold_of(self, tables: Tables) -> pl.DataFrame:
        """Return (question, fold) for all questions; raise MemlabError if they have only one group."""
        return folds(tables["questions"], tables["evidence"], tables["turns"], self.folds, self.seed, self.by)


def fold_numbers(rows: pl.DataFrame, fold_of: pl.DataFrame) -> NDArray[np.int32]:
    """Return the fold of each row's question, (n,)."""
    return rows.select("question").join(fold_of, on="question", how="left", maintain_order="left")["fold"].to_numpy()


def in_folds(rows: pl.DataFrame, questions: pl.DataFrame, turns: pl.DataFrame,
             fold_of: pl.DataFrame) -> NDArray[np.bool_]:
    """Return whether each row's session has the content of a session in a haystack of each fold, (folds, rows).

    ``rows`` have the columns corpus and session, ``fold_of`` is the result of ``folds``. A negative that is in a
    held-out fold as well must not be learned from.
    """
    content = session_texts(turns).with_columns(pl.col("content").rank("dense").cast(pl.Int64).alias("content") - 1)
    parts = questions.select("question", "corpus").join(fold_of, on="question").select("corpus", "fold").unique()
    held = content.join(parts, on="corpus").select("fold", "content").unique().to_numpy()
    present = np.zeros((int(held[:, 0].max(initial=-1)) + 1, content.height), bool)
    present[held[:, 0], held[:, 1]] = True
    own = rows.select(SESSION).join(content, on=SESSION, how="left", maintain_order="left")["content"]
    return present[:, own.to_numpy()]


def first_holders(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame,
                  level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, session[, turn], unit, rank): for each item of evidence, the first unit that holds it.

    Items are sessions, or turns where the turn is known (else any turn of the session counts); unit and rank are null
    if no unit holds the item. All units of a question are in its corpus, so the session number identifies a session.
    """
    ranked = ranking.select("question", "unit", "rank").join(units.select("unit", "session", "turns"), on="unit")
    if level == "session":
        items = evidence.select("question", "session").unique()
        holders = ranked.drop("turns")
        keys = ["question", "session"]
    else:
        items = evidence.select("question", "session", pl.col("turn").fill_null(-1)).unique()
        anywhere = ranked.with_columns(pl.lit(-1, pl.Int32).alias("turn")).drop("turns")
        holders = pl.concat([ranked.explode("turns").rename({"turns": "turn"}), anywhere], how="diagonal")
        keys = ["question", "session", "turn"]
    first = holders.join(items, on=keys, how="semi").sort("question", "rank").group_by(
        keys, maintain_order=True).agg(pl.col("unit").first(), pl.col("rank").first())
    return items.join(first, on=keys, how="left").sort(keys)


def scored_evidence(tables: Tables) -> pl.DataFrame:
    """Return the evidence of the questions that count in retrieval averages."""
    return tables["evidence"].join(tables["gold"].filter("scored"), on="question", how="semi")


def smallest_k(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame,
               level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, complete, held): ``complete`` is the smallest K that holds all evidence, null if no K does.

    ``held`` is the smallest K that holds all evidence that the ranking holds, null if it holds none. Questions
    without evidence have no row.
    """
    return first_holders(ranking, units, evidence, level).group_by("question").agg(
        pl.when(pl.col("rank").is_null().any()).then(None).otherwise(pl.col("rank").max()).alias("complete"),
        pl.col("rank").max().alias("held")).sort("question")


def evidence_units(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, unit): the ranked units that hold evidence, a known turn or else any turn of the session."""
    ranked = ranking.select("question", "unit").join(units.select("unit", "session", "turns"), on="unit")
    known, unknown = evidence.filter(pl.col("turn").is_not_null()), evidence.filter(pl.col("turn").is_null())
    by_turn = ranked.explode("turns").join(known, left_on=["question", "session", "turns"],
                                           right_on=["question", "session", "turn"], how="semi")
    by_session = ranked.join(unknown, on=["question", "session"], how="semi")
    return pl.concat([by_turn.select("question", "unit"), by_session.select("question", "unit")]).unique().sort(
        "question", "unit")
