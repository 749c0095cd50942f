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

from memlab.learn.ranker.signals import Floats, Ints, dense_numbers
from memlab.pipeline.tables import SESSION, Tables, with_text
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


def overlap_features(head: pl.DataFrame, said: pl.DataFrame, here: Ints, spoken: pl.DataFrame,
                     tables: Tables) -> pl.DataFrame:
    """Return features of the terms that each row's turn shares with its question.

    ``said`` and ``here`` are those of ``nearby``, ``spoken`` the words of ``said``. A term counts ln(1 + n / df), df
    being the number of the question's n candidates with it. "overlap" is the share of the question's weight that the
    turn holds; "alone" the weight of terms divided by df, the terms that this turn answers and few others do; -1 and +1
    mean the neighbours; "joined" a turn with its predecessor.
    """
    asked = with_text(tables["questions"], tables["texts"]).select(
        "corpus", "question", pl.col("text").fill_null("")).with_row_index("row")
    rows = head.select("question").join(asked, on="question", maintain_order="left")["row"]
    question = rows.cast(pl.Int64).to_numpy()
    before, behind = (_next(said, step)[here] for step in (-1, 1))
    spoken = spoken.join(said.select("corpus").with_row_index("row"), on="row")
    columns: dict[str, Floats] = {}
    for kind in KINDS:
        matrices = _matrices(asked, spoken, len(said), kind, tables["turns"])
        shared = _shared_terms(*matrices, question, here, before, behind)
        columns |= {f"{kind} {name}": column for name, column in shared.items()}
    return pl.DataFrame(columns)


def _next(said: pl.DataFrame, step: int) -> Ints:
    """Return the row in ``said`` of the turn ``step`` turns after each turn, (t,); -1 where there is none."""
    turns = said.select(*SESSION, "turn").with_row_index("row")
    rows = turns.with_columns(pl.col("turn") + step).join(turns, on=[*SESSION, "turn"], how="left",
                                                          maintain_order="left")
    return rows["row_right"].cast(pl.Int64).fill_null(-1).to_numpy()


def _matrices(asked: pl.DataFrame, spoken: pl.DataFrame, size: int, kind: str, turns: pl.DataFrame
              ) -> tuple[Sparse, Sparse]:
    """Return which terms of the questions occur in each question (q, terms) and which turns hold each (terms, t).

    ``spoken`` are the words (row, corpus, term) of ``size`` turns; a term of two corpora is two terms. The speakers of
    the question's own corpus are no names, since their turns rarely say them.
    """
    texts = asked["text"]
    if kind == "name":  # capitals at the start of a sentence say nothing
        texts = pl.Series([" ".join(found) for found in texts.str.extract_all(r"[\w,;'] +[A-Z][\w]+").to_list()],
                          dtype=pl.String)
    left = words(texts, r"\w+", STOP_WORDS, "english").join(asked.select("row", "corpus"), on="row")
    if kind == "name":
        people = turns.select("corpus", "speaker").unique().drop_nulls()
        speakers = words(people["speaker"], r"\w+", (), "english").join(
            people.select("corpus").with_row_index("row"), on="row").select("corpus", "term")
        left = left.join(speakers, on=["corpus", "term"], how="anti")
    terms = left.select("corpus", "term").unique().sort("corpus", "term").with_row_index("id")

    def matrix(tokens: pl.DataFrame, rows: str, columns: str, shape: tuple[int, int]) -> Sparse:
        cells = tokens.join(terms, on=["corpus", "term"]).select("row", "id").unique().sort(rows, columns)
        at = cells[rows].to_numpy(), cells[columns].to_numpy()
        return scipy.sparse.csr_array((np.ones(cells.height), at), shape=shape)

    count = max(terms.height, 1)
    return matrix(left, "row", "id", (asked.height, count)), matrix(spoken, "id", "row", (count, size))


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


@dataclass(frozen=True)
class Terms:
    """Distinct terms of turns. matrix: (turns, terms), 1 where a turn has the term; turn: (n,) that of each row."""

    matrix: Sparse
    turn: Ints


def spoken_words(said: pl.DataFrame) -> pl.DataFrame:
    """Return (row, term) of the texts of turns (text, ...): English stems without stop words."""
    return words(said["text"], r"\w+", STOP_WORDS, "english")


def turn_terms(spoken: pl.DataFrame, size: int, here: Ints) -> Terms:
    """Return the terms of turns by their ``spoken_words`` of ``size`` turns; here (n,): the turn of each row."""
    cells = spoken.unique()
    terms = cells.select(pl.col("term").unique().sort()).with_row_index("id")
    cells = cells.join(terms, on="term").sort("row", "id")
    matrix = scipy.sparse.csr_array((np.ones(cells.height), (cells["row"].to_numpy(), cells["id"].to_numpy())),
                                    shape=(size, terms.height))
    return Terms(matrix, here)


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
