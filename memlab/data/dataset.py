"""Protocol of data sets, and groups of their questions that are independent of each other.

A group are the questions of one conversation, or those that share evidence. Statistics treats a group as one draw;
folds never split one.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.pipeline.tables import SESSION, Tables, text_hash


@runtime_checkable
class Dataset(Protocol):
    """Sessions, questions and gold, numbered by integers without meaning.

    Corpora, questions, sessions and turns keep their numbers in a subset (limit, types, split), so numbers
    may have gaps, and the same question has the same number in every arm.

    A data set whose own unit is the round, a user's message with the assistant's messages up to the next one, says
    ``counts_rounds = True``: recall over rounds is then printed beside that over turns.
    """

    @property
    def name(self) -> str:
        """A short name for folders, such as ``locomo`` or ``longmemeval_s-pooled``."""
        ...

    def load(self) -> Tables:
        """Return texts, sessions, turns, questions, gold, evidence and ids, each sorted by its integers."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return all that decides what ``load`` returns: benchmark, checksums of its files, options; never a path."""
        ...

    def notes(self) -> list[str]:
        """Return what a reader of the results must know about these data."""
        ...

    def grouping(self) -> GroupBy:
        """Return which questions depend on one another, so that together they are one observation."""
        ...


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
    return rows.select("question", pl.Series("group", components(edges, rows.height), pl.Int64))


def components(edges: NDArray[Any], questions: int) -> NDArray[Any]:
    """Return the connected component of each question.

    Args:
        edges: (pairs, 2), a question and something that it shares; what is shared has numbers from ``questions`` on.
        questions: Number of questions, which have the numbers below it.
    """
    size = max(questions, int(edges.max(initial=0)) + 1)
    graph = scipy.sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size))
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return component[:questions]
