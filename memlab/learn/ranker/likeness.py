"""Likeness of turns to the first ones of a ranking: the weight of the words that they share.

The evidence of a question is often about one thing, so one part of it helps to find the others. What an expansion by
pseudo-relevance feedback (Rocchio 1971) puts into the query is a feature here, whose weight is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.learn.ranker.overlap import STOP_WORDS, Floats, Ints, Sparse
from memlab.learn.ranker.signals import dense_numbers
from memlab.tables import SESSION, Tables, with_text
from memlab.text.tokenize import words

FIRST_TURNS = 3
"""First turns of the ranking by weights that each turn is compared with."""


@dataclass(frozen=True)
class Terms:
    """Distinct terms of turns. matrix: (turns, terms), 1 where a turn has the term; turn: (n,) that of each row."""

    matrix: Sparse
    turn: Ints

    def only(self, rows: NDArray[np.bool_]) -> Terms:
        """Return the terms of these rows, (n,)."""
        return self if rows.all() else Terms(self.matrix, self.turn[rows])


def turn_terms(frame: pl.DataFrame, tables: Tables) -> Terms:
    """Return the terms of the turns of ``frame`` (question, unit, ...): English stems without stop words."""
    units = frame.select("unit").unique(maintain_order=True)
    at = units.join(tables["units"].select("unit", *SESSION, pl.col("turns").list.first().alias("turn")), on="unit",
                    how="left", maintain_order="left")
    said = with_text(at.join(tables["turns"], on=[*SESSION, "turn"], how="left", maintain_order="left"),
                     tables["texts"])
    cells = words(said["text"].fill_null(""), r"\w+", STOP_WORDS, "english").unique()
    terms = cells.select(pl.col("term").unique().sort()).with_row_index("id")
    cells = cells.join(terms, on="term").sort("row", "id")
    matrix = scipy.sparse.csr_array((np.ones(cells.height), (cells["row"].to_numpy(), cells["id"].to_numpy())),
                                    shape=(units.height, terms.height))
    turn = frame.select("unit").join(units.with_row_index("turn"), on="unit", how="left", maintain_order="left")["turn"]
    return Terms(matrix, turn.cast(pl.Int64).to_numpy())


def join_terms(parts: Sequence[Terms]) -> Terms:
    """Return the terms of the rows of several data sets, which share none."""
    offsets = np.cumsum([0, *(part.matrix.shape[0] for part in parts)])
    turn = np.concatenate([part.turn + offset for part, offset in zip(parts, offsets)])
    return Terms(scipy.sparse.block_diag([part.matrix for part in parts], format="csr"), turn)


def likeness_features(head: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """Return "likeness", the mean likeness of each row's turn to the ``FIRST_TURNS`` first ones but itself, or null.

    ``head`` (question, unit, rank, ...) are the first turns of each question by weights.
    """
    found = likeness(terms, np.arange(head.height), dense_numbers(head["question"]), head["rank"].to_numpy() - 1,
                     FIRST_TURNS)
    known = ~np.isnan(found)
    mean = np.where(known, found, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return pl.DataFrame({"likeness": np.where(known.any(axis=1), mean, np.nan)}, nan_to_null=True)


def likeness(terms: Terms, rows: Ints, question: Ints, place: Ints, count: int) -> Floats:
    """Return how like the turn of each row is to those in the first ``count`` places of its question, (n, count).

    rows: (n,) places in ``terms.turn``; question, place: (n,) numbers from 0; count: at most 8. Likeness is the weight
    of the terms that both turns have over the weight of those that either has, 0 to 1 (the weighted Jaccard index), and
    nan for the turn itself and where the place is empty. A term weighs ln(1 + n / df): df of the question's n rows have
    it.
    """
    order = np.argsort(question, kind="stable")
    cells = terms.matrix[terms.turn[rows[order]]]
    weight, holders = _weigh(cells, question[order], place[order], count)
    row = np.repeat(np.arange(len(rows)), np.diff(cells.indptr))
    total = np.bincount(row, weight, len(rows))
    common = np.flatnonzero(holders != 0)
    row, weight, holders = row[common], weight[common], holders[common]
    result = np.full((len(rows), count), np.nan)
    of_first = np.full(int(question.max(initial=-1)) + 1, np.nan)
    for at in range(count):
        its = place[order] == at
        of_first[:] = np.nan
        of_first[question[order[its]]] = total[its]
        shared = np.bincount(row, weight * (holders >> at & 1), len(rows))
        like = shared / np.maximum(total + of_first[question[order]] - shared, 1e-9)
        result[order, at] = np.where(its, np.nan, like)
    return result


def _weigh(cells: Sparse, question: Ints, place: Ints, count: int) -> tuple[Floats, NDArray[np.uint8]]:
    """Return each cell's weight, and in bit i whether the turn in place i of the question has its term; (cells,).

    cells: (n, terms), the rows of a question together.
    """
    start, term = cells.indptr, cells.indices.astype(np.int64)
    weight, holders = np.empty(len(term)), np.empty(len(term), np.uint8)
    held_by = np.zeros(cells.shape[1], np.uint8)
    bit = np.where(place < count, 1 << place.clip(0, 7), 0).astype(np.uint8)
    ends = np.flatnonzero(np.diff(question, append=-1)) + 1
    for begin, end in zip([0, *ends], ends):
        mine = slice(start[begin], start[end])
        of_df = np.log1p((end - begin) / np.maximum(np.arange(end - begin + 1), 1))
        weight[mine] = of_df[np.bincount(term[mine])][term[mine]]
        for at in begin + np.flatnonzero(bit[begin:end]):
            held_by[term[start[at]:start[at + 1]]] |= bit[at]
        holders[mine] = held_by[term[mine]]
        held_by[term[mine]] = 0
    return weight, holders
