"""Groups of questions that are independent of each other: those of one conversation, or those that share evidence.

Statistics treats a group as one draw; folds never split one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used

from memlab.tables import SESSION, text_hash

GroupBy = Literal["auto", "evidence", "corpus", "question"]


def session_texts(turns: pl.DataFrame) -> pl.DataFrame:
    """Return (corpus, session, content): sessions have the same content if all their roles and texts are the same."""
    sessions = turns.sort("corpus", "session", "turn").group_by("corpus", "session", maintain_order=True).agg(
        pl.concat_str(pl.col("role"), pl.lit(":"), pl.col("text_id")).str.join(" ").alias("content"))
    return sessions.with_columns(pl.Series("content", [text_hash(c) for c in sessions["content"]], pl.String))


def groups(questions: pl.DataFrame, evidence: pl.DataFrame, turns: pl.DataFrame, by: GroupBy = "auto") -> pl.DataFrame:
    """Return (question, group), sorted by question; groups count from 0.

    ``question``: each is a group. ``corpus``: one group for each corpus; with one corpus, as ``evidence``.
    ``evidence``: connected components of questions that share the text of an evidence session; a question without
    evidence is a group of its own. ``auto`` is ``corpus`` if corpora have more than 1.5 questions on average, else
    ``evidence``.
    """
    rows = questions.select("question", "corpus").sort("question").with_row_index("row")
    corpora = rows["corpus"].n_unique()
    if by == "question":
        return rows.select("question", pl.col("row").cast(pl.Int64).alias("group"))
    if corpora > 1 and (by == "corpus" or by == "auto" and rows.height > 1.5 * corpora):
        return rows.select("question", pl.col("corpus").rank("dense").cast(pl.Int64).alias("group") - 1)
    marked = evidence.select("question", "session").unique().join(rows, on="question")
    contents = session_texts(turns.join(marked, on=SESSION, how="semi"))
    edges = marked.join(contents, on=SESSION).select(
        pl.col("row").cast(pl.Int64), pl.col("content").rank("dense").cast(pl.Int64) + rows.height - 1).to_numpy()
    size = rows.height + len(np.unique(edges[:, 1]))  # nodes: the questions, then the contents
    graph = scipy.sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size))
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return rows.select("question", pl.Series("group", component[: rows.height], pl.Int64))
