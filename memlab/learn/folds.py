"""Disjoint folds: what is fitted on some questions is tested on others that share no evidence with them.

LongMemEval's haystacks share sessions, so questions whose evidence has the same text belong together; LoCoMo's
questions of one conversation belong together. Distractors shared between folds cannot be avoided in
LongMemEval; ``shared_sessions`` names them, so that no fit uses them as negatives.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from memlab.errors import MemlabError
from memlab.tables import SESSION, text_hash

By = Literal["auto", "evidence", "corpus"]


def session_texts(turns: pl.DataFrame) -> pl.DataFrame:
    """Return (corpus, session, content): two sessions have one content if all roles and texts are the same."""
    said = turns.sort("corpus", "session", "turn").group_by("corpus", "session", maintain_order=True).agg(
        pl.concat_str(pl.col("role"), pl.lit(":"), pl.col("text_id")).str.join(" ").alias("content"))
    return said.with_columns(pl.Series("content", [text_hash(c) for c in said["content"]], pl.String))


def groups(questions: pl.DataFrame, evidence: pl.DataFrame, turns: pl.DataFrame, by: By = "auto") -> pl.DataFrame:
    """Return (question, group): questions of one group may never be parted.

    ``corpus``: one group a corpus. ``evidence``: connected components of questions that share the text of an
    evidence session; a question without evidence is a group of its own. ``auto`` takes the corpus where corpora
    have several questions on average, else the evidence.
    """
    asked = questions.select("question", "corpus").sort("question")
    if by == "auto":
        by = "corpus" if asked.height > 1.5 * max(asked["corpus"].n_unique(), 1) else "evidence"
    if by == "corpus":
        return asked.select("question", pl.col("corpus").rank("dense").cast(pl.Int64).alias("group") - 1)
    asked = asked.with_row_index("row")
    links = evidence.select("question", "session").unique().join(asked, on="question").join(
        session_texts(turns), on=SESSION).select(
        "row", pl.col("content").rank("dense").alias("heard") - 1)
    width = int(links["heard"].n_unique())
    edge = links.select(pl.col("row").cast(pl.Int64), pl.col("heard").cast(pl.Int64) + asked.height).to_numpy()
    size = asked.height + width
    graph = coo_array((np.ones(len(edge)), (edge[:, 0], edge[:, 1])), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    return asked.select("question", pl.Series("group", component[: asked.height], pl.Int64))


def folds(questions: pl.DataFrame, evidence: pl.DataFrame, turns: pl.DataFrame, k: int = 5, seed: int = 0,
          by: By = "auto") -> pl.DataFrame:
    """Return (question, fold), fold in 0..k-1: groups stay whole, folds are of nearly equal size.

    Groups are dealt out in seeded order, the largest first, each to the smallest fold. There are as many folds
    as groups where groups are fewer. Raises MemlabError where only one group exists.
    """
    grouped = groups(questions, evidence, turns, by)
    sizes = grouped.group_by("group").len().sort("group")
    if sizes.height < 2:
        raise MemlabError("all questions share evidence: they cannot be parted into disjoint folds",
                          where="learn/folds", fix="take more data, or load what was fitted on another benchmark")
    counts = sizes["len"].to_numpy()
    shuffled = np.random.default_rng(seed).permutation(len(counts))
    load = np.zeros(min(k, len(counts)), np.int64)
    fold = np.empty(len(counts), np.int32)
    for group in shuffled[np.argsort(-counts[shuffled], kind="stable")]:
        fold[group] = int(np.argmin(load))
        load[fold[group]] += counts[group]
    return grouped.join(sizes.select("group", pl.Series("fold", fold)), on="group", how="left",
                        maintain_order="left").select("question", "fold")


def shared_sessions(questions: pl.DataFrame, turns: pl.DataFrame, parted: pl.DataFrame) -> pl.DataFrame:
    """Return (corpus, session, shared): whether questions of two folds or more have a session of this text.

    ``parted`` is what ``folds`` returned. Shared sessions must be no one's negatives: the test would know them.
    """
    content = session_texts(turns)
    seen = content.join(questions.select("question", "corpus").join(parted, on="question"), on="corpus")
    spread = seen.group_by("content").agg((pl.col("fold").n_unique() > 1).alias("shared"))
    return content.join(spread, on="content", how="left").select(
        "corpus", "session", pl.col("shared").fill_null(False)).sort("corpus", "session")
