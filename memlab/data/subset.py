"""Options of every data set: a part of its questions (split, types, sample, limit), larger haystacks (grow, pool).

Corpora without a question left are dropped with their texts. Numbers are kept, so that a question has the same number
whatever was cut.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from pydantic import Field, model_validator

from memlab.data.haystacks import grown, pooled
from memlab.errors import MemlabError, did_you_mean
from memlab.stage import Names, stage
from memlab.tables import SESSION, Notes, Tables


@stage
class Subset:
    """The options of every data set, applied in the order split, types, sample, limit, then grow or pool."""

    limit: Annotated[int, Field(ge=1)] | None = None  # the first n questions, for a quick look; null: all
    sample: Annotated[int, Field(ge=1)] | None = None  # n questions, from each type and corpus in proportion; null: all
    types: Names | None = None  # question types to keep; null: all
    split: Literal["a", "b"] | None = None  # halves without shared evidence; null: all
    pool: bool = False  # true: all corpora as one, a stress test
    # n: each haystack gets n times its sessions, the further ones from the others and visible to every question
    grow: Annotated[int, Field(ge=1)] | None = None
    grow_seed: Annotated[int, Field(ge=0)] = 0  # another seed is another choice of these sessions

    @model_validator(mode="after")
    def _one_way_to_be_larger(self) -> Subset:
        if self.pool and self.grows():
            raise MemlabError(f"all corpora as one (data.pool) have one size and cannot grow {self.grow} times",
                              where="data.grow", fix="choose one of the two")
        return self

    def options(self) -> dict[str, Any]:
        """Return the options as they enter a data set's identity."""
        larger = {"grow": self.grow, "grow_seed": self.grow_seed} if self.grows() else {}
        return {"limit": self.limit, "sample": self.sample, "split": self.split, "pool": self.pool,
                "types": None if self.types is None else sorted(set(self.types)), **larger}

    def grows(self) -> bool:
        """Return whether haystacks get sessions of others."""
        return self.grow is not None and self.grow > 1

    def cut(self, tables: Tables, missing: Mapping[int, int] | None = None) -> Tables:
        """Apply the options to the tables of the whole data set.

        missing: question -> pieces of evidence that its file cites and its corpus does not hold. The table ``notes``
        counts those of the questions that stay, so that a report says how many no metric asks for.
        """
        tables = self._cut(tables)
        kept = set(tables["questions"]["question"])
        number = sum(count for question, count in (missing or {}).items() if question in kept)
        if not number:
            return tables
        notes = Notes()
        notes.add(number, number + tables["evidence"].height,
                  "pieces of evidence are cited by the file and not in it, so no metric asks for them")
        return tables.updated({"notes": notes.table()})

    def _cut(self, tables: Tables) -> Tables:
        whole, questions = tables, tables["questions"]
        if self.split is not None:
            questions = questions.filter(half(tables) == self.split)
        if self.types is not None:
            gold = tables["gold"]
            known_types(self.types, gold["category"].unique())
            chosen = gold.filter(pl.col("category").is_in(list(self.types)))["question"]
            questions = questions.filter(pl.col("question").is_in(chosen.implode()))
        if self.sample is not None:
            questions = stratified_sample(questions, tables, self.sample)
        if self.limit is not None:
            questions = questions.sort("question").head(self.limit)
        if questions.is_empty():
            raise MemlabError("no question is left after data.split, data.types, data.sample and data.limit",
                              fix="ask for more")
        if questions.height < tables["questions"].height:
            tables = keep(tables, questions)
        if self.grow is not None and self.grows():
            return grown(tables, whole, self.grow, self.grow_seed)
        return pooled(tables) if self.pool else tables

    def sized_name(self, name: str) -> str:
        """Return a data set's name, with ``-pooled`` if its corpora are one, or such as ``-x10`` if they are grown."""
        return f"{name}-pooled" if self.pool else f"{name}-x{self.grow}" if self.grows() else name

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        notes = []
        if self.pool:
            notes.append("All corpora are searched as one (data.pool): another user's session may also answer a "
                         "question, and the same text occurs under several dates, so some misses are none.")
        if self.grows():
            notes.append(f"Each haystack has {self.grow} times its sessions (data.grow); the further ones are of other "
                         "haystacks, under dates that every question sees. One of them may also answer a question.")
        cuts = [f"{name}={value}" for name, value in self.options().items()
                if name in ("limit", "sample", "split", "types") and value is not None]
        if cuts:
            notes.append(f"Only a part of the questions ({', '.join(cuts)}).")
        return notes


def known_types(types: Sequence[str] | None, known: Iterable[str]) -> None:
    """Raise MemlabError for a question type that the data set does not have."""
    options = list(known)
    for name in types or ():
        if name not in options:
            raise MemlabError(f"there is no question type '{name}'", where="data.types",
                              fix=did_you_mean(name, options))


def stratified_sample(questions: pl.DataFrame, tables: Tables, n: int) -> pl.DataFrame:
    """Draw n questions, from each type, and within it from each corpus, in proportion to its size.

    The questions of a type and corpus are ordered by a hash of their wording; the i-th of m gets the quantile
    (i + 1/2) / m. The questions of a type are ordered by these quantiles and get quantiles in the same way; the n
    smallest are drawn. The order of the file does not matter.
    """
    strata = questions.join(tables["gold"].select("question", "category"), on="question").sort("text_id", "question")
    quantile = (pl.int_range(pl.len()) + 0.5) / pl.len()
    mixed = strata.with_columns(quantile.over("category", "corpus").alias("q")).sort("q", "text_id", "question")
    order = mixed.with_columns(quantile.over("category").alias("q")).sort("q", "text_id", "question")
    return questions.join(order.head(n).select("question"), on="question", how="semi")


def half(tables: Tables) -> pl.Series:
    """Assign each row of ``questions`` to half ``a`` or ``b``, so that no evidence is in both.

    Questions of one corpus, and questions that share the text of an evidence session, form a group (LoCoMo: a
    conversation; LongMemEval: mostly one question). Groups go to the half with fewer questions, large ones
    first, equal ones in the order of a hash of their questions' wording: deterministic, and independent of ids.
    """
    text_ids = tables["questions"]["text_id"]
    members: dict[int, list[int]] = defaultdict(list)
    for row, group in enumerate(_groups(tables)):
        members[group].append(row)

    def order(rows: list[int]) -> tuple[int, str]:
        wording = "".join(sorted(text_ids[row] for row in rows))
        return -len(rows), hashlib.blake2b(wording.encode(), digest_size=16).hexdigest()

    sizes = {"a": 0, "b": 0}
    halves = [""] * len(text_ids)
    for rows in sorted(members.values(), key=order):
        smaller = "a" if sizes["a"] <= sizes["b"] else "b"
        sizes[smaller] += len(rows)
        for row in rows:
            halves[row] = smaller
    return pl.Series("half", halves, dtype=pl.String())


def _groups(tables: Tables) -> list[int]:
    """Return the group of each row of ``questions``: a component of questions that share a corpus or evidence text."""
    questions = tables["questions"].select("question", "corpus").with_row_index("row")
    content = tables["turns"].sort(*SESSION, "turn").group_by(SESSION).agg(
        pl.col("text_id").str.join(" ").alias("shared"))
    cited = tables["evidence"].join(questions, on="question").join(content, on=SESSION).select("row", "shared")
    corpora = questions.select("row", pl.format("corpus {}", "corpus").alias("shared"))
    edges = pl.concat([corpora, cited]).select("row", pl.col("shared").rank("dense") + questions.height).to_numpy()
    size = int(edges.max(initial=0)) + 1  # nodes: the questions, then what they share
    graph = scipy.sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size))
    return scipy.sparse.csgraph.connected_components(graph, directed=False)[1][:questions.height].tolist()  # type: ignore[no-any-return]


def keep(tables: Tables, questions: pl.DataFrame, corpora: Iterable[int] | None = None) -> Tables:
    """Keep these questions, their corpora (or ``corpora``) and what belongs to them."""
    numbers = questions["corpus"].unique() if corpora is None else pl.Series(list(corpora), dtype=pl.Int32)
    of_corpus = pl.col("corpus").is_in(numbers.implode())
    of_question = pl.col("question").is_in(questions["question"].implode())
    turns = tables["turns"].filter(of_corpus)
    used = pl.concat([turns["text_id"], questions["text_id"]]).unique().implode()
    return Tables(
        texts=tables["texts"].filter(pl.col("text_id").is_in(used)),
        sessions=tables["sessions"].filter(of_corpus),
        turns=turns,
        questions=questions,
        gold=tables["gold"].filter(of_question),
        evidence=tables["evidence"].filter(of_question),
        ids=tables["ids"].filter(of_corpus & (pl.col("question").is_null() | of_question)),
    )

