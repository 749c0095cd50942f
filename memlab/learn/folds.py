"""Disjoint folds: questions of different folds share no evidence.

LongMemEval's haystacks share sessions, so questions whose evidence has the same text go into one fold; in LoCoMo the
questions of one conversation do. LongMemEval's folds still share distractors; ``shared_sessions`` and ``in_folds``
return them, so that no fit uses them as negatives.

Every cross-fitted stage has the settings ``folds`` and ``by``; ``learn.folds=all`` on the command line sets them all to
one fold for each group: each conversation of LoCoMo by a fit on the others (leave one conversation out).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.data.groups import GroupBy, groups, session_texts
from memlab.data.numbering import question_digests
from memlab.errors import MemlabError
from memlab.tables import SESSION

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


def shared_sessions(questions: pl.DataFrame, turns: pl.DataFrame, fold_of: pl.DataFrame) -> pl.DataFrame:
    """Return (corpus, session, shared): whether questions of several folds have a session with this content.

    ``fold_of`` is the result of ``folds``. A shared session must not be a negative: it is in the test data as well.
    """
    content = session_texts(turns)
    occurrences = content.join(questions.select("question", "corpus").join(fold_of, on="question"), on="corpus")
    spread = occurrences.group_by("content").agg((pl.col("fold").n_unique() > 1).alias("shared"))
    return content.join(spread, on="content", how="left").select(
        "corpus", "session", pl.col("shared").fill_null(False)).sort("corpus", "session")


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
