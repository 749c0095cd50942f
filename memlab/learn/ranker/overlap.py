"""Features of the words that a question and a turn share, weighted by their rarity among the question's candidates."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.learn.ranker.texts import nearby
from memlab.tables import SESSION, Tables, with_text
from memlab.text.tokenize import LUCENE_STOP_WORDS, words

STOP_WORDS = (*LUCENE_STOP_WORDS, "what", "when", "where", "who", "which", "why", "how", "did", "do", "does", "has",
              "have", "had", "were", "been", "about", "from", "her", "his", "she", "he", "i", "my", "me", "you", "your",
              "would", "could", "any", "s", "so", "can", "many", "much", "am")

Sparse: TypeAlias = "scipy.sparse.csr_array"

KINDS = ("word", "name")
"""All words, and words with a capital inside a sentence."""


def overlap_features(head: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return features of the terms that each row's turn shares with its question.

    A term counts ln(1 + n / df), df being the number of the question's n candidates with it. "overlap" is the share of
    the question's weight that the turn holds; "alone" the weight of terms divided by df, the terms that this turn
    answers and few others do; -1 and +1 mean the neighbours; "joined" a turn with its predecessor.
    """
    asked = with_text(tables["questions"], tables["texts"]).select(
        "corpus", "question", pl.col("text").fill_null("")).with_row_index("row")
    said = nearby(head, tables).select(*SESSION, "turn", "text").with_row_index("row")
    here, before, behind = (_rows(head, said, step) for step in (0, -1, 1))
    question = head.select("question").join(asked, on="question", maintain_order="left")["row"].to_numpy()
    columns: dict[str, NDArray[np.float64]] = {}
    for kind in KINDS:
        q, t = _matrices(asked, said["text"], kind, tables["turns"])
        values = _shared(q, t, question.astype(np.int64), here, before, behind)
        columns |= {f"{kind} {name}": column for name, column in values.items()}
    return pl.DataFrame(columns)


def _rows(head: pl.DataFrame, said: pl.DataFrame, step: int) -> NDArray[np.int64]:
    """Return the row in ``said`` of the turn ``step`` turns after each row's, (n,); -1 where there is none."""
    wanted = head.select(*SESSION, pl.col("turn") + step)
    rows = wanted.join(said.select(*SESSION, "turn", "row"), on=[*SESSION, "turn"], how="left", maintain_order="left")
    return rows["row"].cast(pl.Int64).fill_null(-1).to_numpy()


def _matrices(asked: pl.DataFrame, said: pl.Series, kind: str, turns: pl.DataFrame) -> tuple[Sparse, Sparse]:
    """Return which terms of the questions occur in each question (q, terms) and in each turn (t + 1, terms).

    The last row of the second is empty: the turn that is not there. The speakers of the question's own corpus are no
    names, since their turns rarely say them.
    """
    texts = asked["text"]
    if kind == "name":  # capitals at the start of a sentence say nothing
        texts = pl.Series([" ".join(found) for found in texts.str.extract_all(r"[\w,;'] +[A-Z][\w]+").to_list()],
                          dtype=pl.String)
    left = words(texts, r"\w+", STOP_WORDS, "english")
    if kind == "name":
        people = turns.select("corpus", "speaker").unique().drop_nulls()
        speakers = words(people["speaker"], r"\w+", (), "english").join(
            people.select("corpus").with_row_index("row"), on="row").select("corpus", "term")
        left = left.join(asked.select("row", "corpus"), on="row").join(speakers, on=["corpus", "term"], how="anti")
    terms = left.select(pl.col("term").unique().sort()).with_row_index("id")

    def matrix(tokens: pl.DataFrame, size: int) -> Sparse:
        cells = tokens.join(terms, on="term").select("row", "id").unique().sort("row", "id")
        at = cells["row"].to_numpy(), cells["id"].to_numpy()
        return scipy.sparse.csr_array((np.ones(cells.height), at), shape=(size, max(terms.height, 1)))

    return matrix(left, asked.height), matrix(words(said, r"\w+", STOP_WORDS, "english"), len(said) + 1)


def _shared(q: Sparse, t: Sparse, question: NDArray[np.int64], turn: NDArray[np.int64],
            before: NDArray[np.int64], behind: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Return the features of one kind of terms for pairs (question, turn); before, behind: the neighbours' rows."""
    asks = q[question]                                                   # (pairs, terms)
    here = asks.multiply(t[turn]).tocsr()
    n = len(question)
    group = scipy.sparse.csr_array((np.ones(n), (question, np.arange(n))), shape=(q.shape[0], n))
    df = (group @ here).tocsr()                                          # (questions, terms)
    size = np.bincount(question, minlength=q.shape[0])
    owner = np.repeat(np.arange(q.shape[0]), np.diff(q.indptr))
    counts = np.asarray(df[owner, q.indices]).ravel() if q.nnz else np.zeros(0)
    rarity = np.log1p(size[owner] / np.maximum(counts, 0.5))
    weight = scipy.sparse.csr_array((rarity, q.indices, q.indptr), shape=q.shape)
    alone = scipy.sparse.csr_array((weight.data / np.maximum(counts, 1.0), q.indices, q.indptr), shape=q.shape)
    total = np.maximum(np.asarray(weight.sum(axis=1)).ravel()[question], 1e-9)
    weighted = weight[question]
    def share(present: Sparse) -> NDArray[np.float64]:
        return np.asarray(weighted.multiply(present).sum(axis=1)).ravel() / total

    overlap = share(t[turn])
    joined = share(t[turn].maximum(t[before]))
    best = np.zeros(q.shape[0])
    np.maximum.at(best, question, overlap)
    count = np.asarray(here.sum(axis=1)).ravel()
    asked = np.asarray(asks.sum(axis=1)).ravel()
    rare = np.asarray(alone[question].multiply(t[turn]).sum(axis=1)).ravel()
    return {"overlap": overlap, "overlap -1": share(t[before]), "overlap +1": share(t[behind]), "joined": joined,
            "alone": rare, "below": best[question] - overlap, "count": count, "asked": asked, "missed": asked - count}
