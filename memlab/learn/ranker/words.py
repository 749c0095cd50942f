"""Features of shared words: of a question and a turn, and of a turn and the first turns of the ranking.

Words are weighted by their rarity among the question's candidates. The evidence of a question is often about one thing,
so one part of it helps to find the others: what an expansion by pseudo-relevance feedback (Rocchio 1971) puts into the
query is a feature here, whose weight is learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.learn.ranker.pairs import Pairs, numbers
from memlab.learn.ranker.signals import Floats, Ints, dense_numbers
from memlab.support.text.tokenize import LUCENE_STOP_WORDS, words

STOP_WORDS = (*LUCENE_STOP_WORDS, "what", "when", "where", "who", "which", "why", "how", "did", "do", "does", "has",
              "have", "had", "were", "been", "about", "from", "her", "his", "she", "he", "i", "my", "me", "you", "your",
              "would", "could", "any", "s", "so", "can", "many", "much", "am")

Sparse: TypeAlias = "scipy.sparse.csr_array"
Bytes = NDArray[np.uint8]

KINDS = ("word", "name")
"""All words, and words with a capital inside a sentence."""

FIRST_TURNS = 3
"""First turns of the ranking by weights that each turn is compared with."""


Cells: TypeAlias = tuple[Ints, Ints]
"""Texts and the terms that they have, (n,) each: row of a text, number of a term; each pair once, sorted."""


@dataclass(frozen=True)
class Terms:
    """Distinct terms of turns. matrix: (turns, terms), 1 where a turn has the term; turn: (n,) that of each row."""

    matrix: Sparse
    turn: Ints


@dataclass(frozen=True)
class PairWords:
    """The terms of ``Pairs``: English stems without stop words, numbered in the order of their letters.

    size: their number. turns: that of the turns. said: terms of the turns; asked: of the questions, for each of
    ``KINDS``.
    """

    size: int
    turns: int
    said: Cells
    asked: dict[str, Cells]

    def of_turns(self, here: Ints) -> Terms:
        """Return the terms of the turns; here (n,): the turn of each row."""
        return Terms(_matrix(self.said, (self.turns, self.size)), here)


def pair_words(pairs: Pairs, turns: pl.DataFrame) -> PairWords:
    """Return the terms of pairs. The speakers of a question's own corpus are no names: their turns rarely say them."""
    asked = pairs.asked["text"]
    # capitals at the start of a sentence say nothing
    names = asked.str.extract_all(r"[\w,;'] +[A-Z][\w]+").list.join(" ")
    people = turns.select("corpus", "speaker").unique().drop_nulls()
    parts = [pairs.said["text"], asked, names, people["speaker"].alias("text")]
    found = words(pl.concat(parts), r"\w+", STOP_WORDS, "english")
    terms = found.select(pl.col("term").unique().sort()).with_row_index("id")
    found, size = found.join(terms, on="term"), max(terms.height, 1)
    cells = np.unique(numbers(found["row"]) * size + numbers(found["id"]))
    begins = np.cumsum([0, *map(len, parts)])
    ends = np.searchsorted(cells, begins * size)
    said, asking, naming, speaking = (
        np.divmod(cells[at:end] - begin * size, size) for begin, at, end in zip(begins, ends, ends[1:]))
    (row, term), own = naming, (numbers(rows["corpus"]) for rows in (pairs.asked, people))
    spoken = np.isin(*(corpus[rows] * size + its for corpus, (rows, its) in zip(own, (naming, speaking))))
    return PairWords(size, pairs.said.height, said, {"word": asking, "name": (row[~spoken], term[~spoken])})


def overlap_features(pairs: Pairs, texts: PairWords) -> pl.DataFrame:
    """Return features of the terms that each pair's turn shares with its question.

    A term counts ln(1 + n / df), df being the number of the question's n candidates with it. "overlap" is the share of
    the question's weight that the turn holds; "alone" the weight of terms divided by df, the terms that this turn
    answers and few others do; -1 and +1 mean the neighbours; "joined" a turn with its predecessor.
    """
    sides = (pairs.here, pairs.before[pairs.here], pairs.behind[pairs.here])
    columns: dict[str, Floats] = {}
    for kind in KINDS:
        shared = _shared_terms(*_matrices(pairs, texts, kind), pairs.question, *sides)
        columns |= {f"{kind} {name}": column for name, column in shared.items()}
    return pl.DataFrame(columns)


def _matrices(pairs: Pairs, texts: PairWords, kind: str) -> tuple[Sparse, Sparse]:
    """Return which terms of the questions occur in each question (q, terms) and which turns hold each (terms, t).

    A term of two corpora is two terms.
    """
    (asked, asked_term), (said, said_term) = texts.asked[kind], texts.said
    asked_key = numbers(pairs.asked["corpus"])[asked] * texts.size + asked_term
    said_key = numbers(pairs.said["corpus"])[said] * texts.size + said_term
    terms = np.unique(asked_key)
    held = np.isin(said_key, terms)
    term = np.searchsorted(terms, said_key[held])
    order, count = np.argsort(term, kind="stable"), max(len(terms), 1)
    return (_matrix((asked, np.searchsorted(terms, asked_key)), (pairs.asked.height, count)),
            _matrix((term[order], said[held][order]), (count, texts.turns)))


def _matrix(cells: Cells, shape: tuple[int, int]) -> Sparse:
    """Return a matrix with 1 in these cells."""
    rows, columns = cells
    begins = np.searchsorted(rows, np.arange(shape[0] + 1))
    return scipy.sparse.csr_array((np.ones(len(columns)), columns, begins), shape=shape)


def _shared_terms(q: Sparse, t: Sparse, question: Ints, turn: Ints, before: Ints, behind: Ints) -> dict[str, Floats]:
    """Return the features of one kind of terms for pairs (question, turn); before, behind: the neighbours' rows.

    What counts is a list of cells: a pair, and a term that its question asks and its turn (or neighbour) holds.
    """
    n = len(question)
    owner = np.repeat(np.arange(q.shape[0]), np.diff(q.indptr))          # of each cell of q
    holders = np.diff(t.indptr)[q.indices]                              # turns with its term
    asked_cell = np.repeat(np.arange(q.nnz), holders)
    within = np.arange(len(asked_cell)) - np.repeat(np.cumsum(holders) - holders, holders)
    wanted = owner[asked_cell] * t.shape[1] + t.indices[t.indptr[q.indices][asked_cell] + within]

    def cells(turns: Ints) -> tuple[Ints, Ints]:
        """Return (pair, cell of q), in the order of the cells, for pairs with these turns."""
        key = np.where(turns < 0, -1, question * t.shape[1] + turns)
        order = np.argsort(key)
        ordered = np.append(key[order], np.iinfo(np.int64).max)
        at = np.searchsorted(ordered, wanted)
        found = ordered[at] == wanted
        return order[at[found]], asked_cell[found]

    here, ahead, after = (cells(turns) for turns in (turn, before, behind))
    size = np.bincount(question, minlength=q.shape[0])
    counts = np.bincount(here[1], minlength=q.nnz)                      # df of each cell of q
    weight = np.log1p(size[owner] / np.maximum(counts, 0.5))
    total = np.maximum(np.bincount(owner, weight, q.shape[0])[question], 1e-9)

    def share(pair: Ints, cell: Ints) -> Floats:
        return np.bincount(pair, weight[cell], n) / total

    overlap = share(*here)
    either = np.sort(np.concatenate([pair * max(q.nnz, 1) + cell for pair, cell in (here, ahead)]))
    either = either[np.diff(either, prepend=-1) > 0]  # np.unique takes much longer
    best = np.zeros(q.shape[0])
    np.maximum.at(best, question, overlap)
    count = np.bincount(here[0], minlength=n).astype(np.float64)
    asked = np.diff(q.indptr).astype(np.float64)[question]
    rare = np.bincount(here[0], (weight / np.maximum(counts, 1.0))[here[1]], n)
    return {"overlap": overlap, "overlap -1": share(*ahead), "overlap +1": share(*after),
            "joined": share(*np.divmod(either, max(q.nnz, 1))), "alone": rare, "below": best[question] - overlap,
            "count": count, "asked": asked, "missed": asked - count}


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


def _weigh(cells: Sparse, question: Ints, place: Ints, count: int) -> tuple[Floats, Bytes]:
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
