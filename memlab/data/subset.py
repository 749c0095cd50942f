"""Cutting a benchmark down (types, split, limit) or pouring it into one pile (pool); shared by all datasets.

Applied in this order: split, types, sample, limit, pool. Corpora without a question left are dropped with their texts.
Numbers are kept, so that a question has the same number whatever was cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import Field

from memlab.errors import MemlabError, did_you_mean
from memlab.stage import Names, stage
from memlab.tables import SESSION, Tables


@stage
class Subset:
    """The options of every data set: which questions are kept, and whether all corpora become one.

    The options are applied in the order split, types, sample, limit, pool.
    """

    limit: Annotated[int, Field(ge=1)] | None = None  # the first n questions, for a quick look; null: all
    sample: Annotated[int, Field(ge=1)] | None = None  # n questions, from each type and corpus in proportion; null: all
    types: Names | None = None  # question types to keep; null: all
    split: Literal["a", "b"] | None = None  # halves without shared evidence; null: all
    pool: bool = False  # true: all corpora in one pile, a stress test

    def options(self) -> dict[str, Any]:
        """Return the options as they enter a data set's identity."""
        return {"limit": self.limit, "sample": self.sample, "split": self.split, "pool": self.pool,
                "types": None if self.types is None else sorted(set(self.types))}

    def cut(self, tables: Tables) -> Tables:
        """Apply the options to the tables of the whole data set."""
        return cut(tables, **(self.options() | {"types": self.types}))

    def pooled_name(self, name: str) -> str:
        """Return a data set's name, with ``-pooled`` where its corpora are one."""
        return f"{name}-pooled" if self.pool else name

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        notes = []
        if self.pool:
            notes.append("All sessions lie in one pile (data.pool): another user's session may also answer a question, "
                         "and the same text stands in it under several dates, so a miss is not always one.")
        kept = {name: value for name, value in self.options().items() if name != "pool" and value is not None}
        if kept:
            notes.append(f"Only a part of the questions ({', '.join(f'{k}={v}' for k, v in kept.items())}).")
        return notes


def cut(tables: Tables, *, limit: int | None = None, sample: int | None = None, types: Sequence[str] | None = None,
        split: str | None = None, pool: bool = False) -> Tables:
    """Apply all the options of a dataset to its tables."""
    questions = tables["questions"]
    if split is not None:
        questions = questions.filter(half(tables) == split)
    if types is not None:
        gold = tables["gold"]
        known_types(types, gold["category"].unique())
        kept = gold.filter(pl.col("category").is_in(list(types)))["question"]
        questions = questions.filter(pl.col("question").is_in(kept.implode()))
    if sample is not None:
        questions = drawn(questions, tables, sample)
    if limit is not None:
        questions = questions.sort("question").head(limit)
    if questions.is_empty():
        raise MemlabError("no question is left after data.split, data.types, data.sample and data.limit",
                          fix="ask for more")
    if questions.height < tables["questions"].height:
        tables = keep(tables, questions)
    return pooled(tables) if pool else tables


def known_types(types: Sequence[str] | None, known: Iterable[str]) -> None:
    """Raise MemlabError if a question type is asked for that a dataset does not have."""
    options = list(known)
    for name in types or ():
        if name not in options:
            raise MemlabError(f"there is no question type '{name}'", where="data.types",
                              fix=did_you_mean(name, options))


def drawn(questions: pl.DataFrame, tables: Tables, n: int) -> pl.DataFrame:
    """Draw n questions, as many from each type, and in it from each corpus, as its share.

    Questions of a type and corpus stand in the order of a hash of their wording, at (i + 1/2) / size of the way; so
    ordered, the questions of a type stand likewise, and those nearest to the beginning are taken. The order of the
    file does not matter.
    """
    strata = questions.join(tables["gold"].select("question", "category"), on="question").sort("text_id", "question")
    way = (pl.int_range(pl.len()) + 0.5) / pl.len()
    mixed = strata.with_columns(way.over("category", "corpus").alias("way")).sort("way", "text_id", "question")
    order = mixed.with_columns(way.over("category").alias("way")).sort("way", "text_id", "question")
    return questions.join(order.head(n).select("question"), on="question", how="semi")


def half(tables: Tables) -> pl.Series:
    """Assign each row of ``questions`` to half ``a`` or ``b``, so that no evidence lies in both.

    Questions of one corpus, and questions that share the text of an evidence session, form a group (LoCoMo: a
    conversation; LongMemEval: mostly one question). Groups go to the half with fewer questions, large ones
    first, equal ones in the order of a hash of their questions' wording: deterministic, and independent of ids.
    """
    questions = tables["questions"]
    groups = _groups(tables)
    wording = dict(zip(questions["question"], questions["text_id"]))
    members: dict[int, list[int]] = {}
    for question in questions["question"]:
        members.setdefault(groups[question], []).append(question)

    def order(group: list[int]) -> tuple[int, str]:
        words = "".join(sorted(wording[q] for q in group))
        return -len(group), hashlib.blake2b(words.encode(), digest_size=16).hexdigest()

    sizes, side = {"a": 0, "b": 0}, {}
    for group in sorted(members.values(), key=order):
        smaller = "a" if sizes["a"] <= sizes["b"] else "b"
        sizes[smaller] += len(group)
        side.update(dict.fromkeys(group, smaller))
    return pl.Series("half", [side[q] for q in questions["question"]], dtype=pl.String())


def _groups(tables: Tables) -> dict[int, int]:
    """Join questions over corpora and evidence texts; return question -> a member that stands for its group."""
    content = (
        tables["turns"].sort("corpus", "session", "turn").group_by("corpus", "session")
        .agg(pl.col("text_id").str.join(" ").alias("content"))
    )
    cited = (
        tables["evidence"].join(tables["questions"].select("question", "corpus"), on="question")
        .join(content, on=SESSION).select("question", "content").unique().sort("question", "content")
    )
    parent = {q: q for q in tables["questions"]["question"].sort()}

    def root(question: int) -> int:
        while parent[question] != question:
            parent[question] = parent[parent[question]]
            question = parent[question]
        return question

    first: dict[object, int] = {}
    corpora = tables["questions"].select("question", "corpus").sort("question")
    for question, shared in [*corpora.iter_rows(), *cited.iter_rows()]:
        mine, other = root(question), root(first.setdefault(shared, question))
        parent[max(mine, other)] = min(mine, other)
    return {q: root(q) for q in parent}


def keep(tables: Tables, questions: pl.DataFrame, corpora: Iterable[int] | None = None) -> Tables:
    """Keep these questions, their corpora (or those named) and what belongs to them."""
    asked = questions["question"].implode()
    named = questions["corpus"].unique() if corpora is None else pl.Series(list(corpora), dtype=pl.Int32)
    of_question, of_corpus = pl.col("question").is_in(asked), pl.col("corpus").is_in(named.implode())
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


def pooled(tables: Tables) -> Tables:
    """Make all corpora one, number 0, its sessions in the order of their dates.

    Every slot stays: the same session text under several dates is there once a date. Gold stays with the slot of
    the question's own haystack.
    """
    slots = tables["sessions"].sort("said_on", "corpus", "session", nulls_last=True).with_row_index("new")
    place = slots.select("corpus", "session", pl.col("new").cast(pl.Int32))

    def moved(table: pl.DataFrame) -> pl.DataFrame:
        joined = table.join(place, on=SESSION, how="left", maintain_order="left")
        return joined.with_columns(corpus=pl.lit(0, pl.Int32), session=pl.col("new")).drop("new")

    evidence = tables["evidence"]
    owners = tables["questions"].select("question", "corpus")
    return tables.updated({
        "sessions": moved(tables["sessions"]).sort("session"),
        "turns": moved(tables["turns"]).sort("session", "turn"),
        "questions": tables["questions"].with_columns(corpus=pl.lit(0, pl.Int32)),
        "evidence": moved(evidence.join(owners, on="question", maintain_order="left")).select(evidence.columns),
        "ids": moved(_with_corpus_names(tables["ids"])),
    })


def _with_corpus_names(ids: pl.DataFrame) -> pl.DataFrame:
    """Write the corpus before the names of sessions and turns, and name the one corpus ``pool``."""
    is_corpus = pl.col("kind") == "corpus"
    corpora = ids.filter(is_corpus).select("corpus", pl.col("name").alias("owner"))
    named = pl.when(pl.col("kind").is_in(["session", "turn"])).then(pl.format("{}/{}", "owner", "name"))
    rest = (
        ids.filter(~is_corpus).join(corpora, on="corpus", how="left", maintain_order="left")
        .with_columns(name=named.otherwise("name")).drop("owner")
    )
    return pl.concat([ids.filter(is_corpus).head(1).with_columns(name=pl.lit("pool")), rest])
