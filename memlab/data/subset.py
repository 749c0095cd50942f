"""Options of every data set: a part of its questions (split, types, sample, limit), larger haystacks (grow, pool).

Corpora without a question left are dropped with their texts. Numbers are kept, so that a question has the same number
whatever was cut. Larger haystacks leave questions, answers and evidence as they are, and number a haystack's sessions
in the order of their dates. A grown haystack has a multiple of its own size, so that one data set gives several sizes;
the pool has one size, that of the data.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import polars as pl
from pydantic import Field, model_validator

from memlab.data.dataset import GroupBy, components, session_texts
from memlab.data.numbering import corpus_digests, draw
from memlab.pipeline.stage import Names, stage
from memlab.pipeline.tables import SESSION, Notes, Tables
from memlab.support.errors import MemlabError, did_you_mean


@stage
class Subset:
    """The options of every data set, applied in the order split, types, sample, limit, then grow or pool."""

    benchmark: ClassVar[str]

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
            return grow(tables, whole, self.grow, self.grow_seed)
        return pool_corpora(tables) if self.pool else tables

    @property
    def name(self) -> str:
        """The benchmark, such as ``locomo``, with ``-pooled`` or such as ``-x10``."""
        return self.sized_name(self.benchmark)

    def grouping(self) -> GroupBy:
        """Group the questions of one corpus."""
        return "corpus"

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
    return components(edges, questions.height).tolist()


def keep(tables: Tables, questions: pl.DataFrame, corpora: Iterable[int] | None = None) -> Tables:
    """Filter to these questions, their corpora (or ``corpora``) and all rows of both."""
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
    ).updated({name: tables[name].filter(rows) for name, rows in (
        ("fields", of_corpus & (pl.col("question").is_null() | of_question)), ("outdated", of_question))
        if name in tables})


def pool_corpora(tables: Tables) -> Tables:
    """Make all corpora one, number 0, its sessions in the order of their dates.

    All sessions stay: a text with several dates is there once per date. Evidence stays in the session of the question's
    own haystack.
    """
    ordered = tables["sessions"].sort("said_on", *SESSION, nulls_last=True)
    places = ordered.select(
        pl.lit(0, pl.Int32).alias("corpus"), pl.int_range(pl.len(), dtype=pl.Int32).alias("session"), "said_on",
        pl.col("corpus").alias("owner"), pl.col("session").alias("old"), pl.lit(True).alias("own"))
    pool = tables["ids"].filter(pl.col("kind") == "corpus").head(1).with_columns(name=pl.lit("pool"))
    return _place(tables, tables, places, corpora=pool, full_name=pl.lit(True)).updated(
        {"questions": tables["questions"].with_columns(corpus=pl.lit(0, pl.Int32))})


def grow(tables: Tables, source: Tables, times: int, seed: int = 0) -> Tables:
    """Grow each corpus of ``tables`` to ``times`` its sessions by sessions of other corpora of ``source``.

    ``source`` is the whole data set, of which ``tables`` may be a part. A corpus gets sessions whose content it does
    not have, each content once: so none of them is evidence of its questions. They are drawn by hashes of the seed and
    of both contents: no order or number of the file matters, and a larger ``times`` keeps the sessions of a smaller
    one. Each has a random date between the corpus's first session and its last, or its earliest question if that comes
    before, so that every question sees it; none where the corpus has no dates. Raises MemlabError where the data has
    too few sessions.
    """
    digests = dict(corpus_digests(source["turns"]).iter_rows())
    contents = session_texts(source["turns"])
    donors = _one_of_each(contents, digests)
    held: dict[int, list[str]] = dict(contents.group_by("corpus").agg("content").iter_rows())
    earliest = tables["questions"].group_by("corpus").agg(pl.col("asked_on").min().alias("asked"))
    haystacks = tables["sessions"].group_by("corpus").agg(
        pl.len().alias("size"), pl.col("said_on").min().alias("first"), pl.col("said_on").max().alias("last")).join(
        earliest, on="corpus", how="left").sort("corpus")
    others = {corpus: donors.filter(~pl.col("content").is_in(held.get(corpus, []))) for corpus in haystacks["corpus"]}
    sizes = dict(haystacks.select("corpus", "size").iter_rows())
    _refuse_too_few(sizes, {corpus: rows.height for corpus, rows in others.items()}, times, source["ids"])
    place = (pl.col("session").rank("ordinal").over("corpus") - 1).cast(pl.Float64).alias("place")
    parts = [tables["sessions"].select(
        "corpus", "said_on", pl.col("corpus").alias("owner"), pl.col("session").alias("old"), place)]
    for corpus, size, first, last, asked in haystacks.iter_rows():
        mine, rows = digests.get(corpus, ""), others[corpus]
        lots = pl.Series("lot", [draw(f"{mine} {content}", seed) for content in rows["content"]], pl.Float64)
        drawn = rows.with_columns(lots).sort("lot", "content").head(size * (times - 1))
        shares = [draw(f"{content} {mine}", seed) for content in drawn["content"]]
        dates = [_between(first, last, asked, share) for share in shares]
        parts.append(drawn.select(
            pl.lit(corpus, pl.Int32).alias("corpus"), pl.Series("said_on", dates, pl.Datetime("us")), "owner", "old",
            pl.Series("place", [share * size for share in shares], pl.Float64)))
    ordered = pl.concat(parts).sort("corpus", "said_on", "place", nulls_last=True)
    own = pl.col("corpus") == pl.col("owner")
    number = pl.int_range(pl.len(), dtype=pl.Int32).over("corpus")
    places = ordered.with_columns(own.alias("own"), number.alias("session"))
    return _place(tables, source, places, corpora=tables["ids"].filter(pl.col("kind") == "corpus"), full_name=~own)


def _one_of_each(contents: pl.DataFrame, digests: Mapping[int, str]) -> pl.DataFrame:
    """Return (content, owner, old): one session of each content, which one depends on contents alone."""
    of_corpus = pl.DataFrame({"corpus": list(digests), "digest": list(digests.values())},
                             schema={"corpus": pl.Int32, "digest": pl.String})
    return contents.join(of_corpus, on="corpus").sort("content", "digest", *SESSION).group_by(
        "content", maintain_order=True).first().select(
        "content", pl.col("corpus").alias("owner"), pl.col("session").alias("old"))


def _refuse_too_few(sizes: Mapping[int, int], others: Mapping[int, int], times: int, ids: pl.DataFrame) -> None:
    """Raise MemlabError if a corpus of some size has fewer sessions in other corpora than it is to get."""
    short = [corpus for corpus, size in sizes.items() if others[corpus] < size * (times - 1)]
    if not short:
        return
    worst = min(short, key=lambda corpus: (others[corpus] / sizes[corpus], corpus))
    names = dict(ids.filter(pl.col("kind") == "corpus").select("corpus", "name").iter_rows())
    most = 1 + others[worst] // sizes[worst]
    fix = f"the most for all of them is data.grow={most}" if most > 1 else "use more data"
    raise MemlabError(
        f"{len(short):,} of {len(sizes):,} haystacks cannot grow {times:,} times: '{names.get(worst, worst)}' has "
        f"{sizes[worst]:,} sessions and needs {sizes[worst] * (times - 1):,} others, and there are {others[worst]:,} "
        "distinct ones", where="data.grow", fix=f"{fix}; data.pool=true searches all sessions of the data as one")


def _between(first: datetime | None, last: datetime | None, asked: datetime | None, share: float) -> datetime | None:
    """Return a date, to the minute, this share of the way from the first to the last that a question may see.

    >>> _between(datetime(2024, 1, 1), datetime(2024, 1, 9), datetime(2024, 1, 5), 0.5)
    datetime.datetime(2024, 1, 3, 0, 0)
    """
    if first is None or last is None:
        return None
    end = last if asked is None else min(last, asked)
    start = min(first, end)
    return (start + share * (end - start)).replace(second=0, microsecond=0)


def _place(tables: Tables, source: Tables, places: pl.DataFrame, corpora: pl.DataFrame, full_name: pl.Expr) -> Tables:
    """Return ``tables`` with the sessions of ``source`` at these places.

    places: (corpus, session, said_on, owner, old, own): ``own`` marks the place of a session in which evidence stays.
    corpora: their rows in ``ids``. full_name: whether a session's corpus is written before its name.
    """
    def move(rows: pl.DataFrame, *order: str) -> pl.DataFrame:
        renamed = rows.rename({"corpus": "owner", "session": "old"})
        moved = renamed.join(places.drop("said_on"), on=["owner", "old"], how="inner")
        return moved.select(*rows.columns, "owner").sort("corpus", "session", *order)

    turns = move(source["turns"], "turn").drop("owner")
    labels = {}
    for label in ("evidence", "outdated"):
        if label in tables:
            rows = tables[label].join(tables["questions"].select("question", pl.col("corpus").alias("owner")),
                                     on="question", maintain_order="left").rename({"session": "old"})
            labels[label] = rows.join(places.filter("own").select("owner", "old", "session"), on=["owner", "old"],
                                      how="left", maintain_order="left").select(tables[label].columns)
    names = source["ids"].filter(pl.col("kind") == "corpus").select(
        pl.col("corpus").alias("owner"), pl.col("name").alias("owner_name"))
    said = move(source["ids"].filter(pl.col("kind").is_in(["session", "turn"])), "kind", "turn").join(
        names, on="owner", how="left", maintain_order="left")
    name = pl.when(full_name).then(pl.format("{}/{}", "owner_name", "name")).otherwise("name")
    asked = tables["ids"].filter(pl.col("kind") == "question")
    used = pl.concat([turns["text_id"], tables["questions"]["text_id"]]).unique().implode()
    return tables.updated({
        "texts": source["texts"].filter(pl.col("text_id").is_in(used)),
        "sessions": places.select("corpus", "session", "said_on").sort("corpus", "session"),
        "turns": turns,
        "ids": pl.concat([corpora, said.with_columns(name=name).select(asked.columns), asked]),
    } | labels).updated({"fields": pl.concat([
        move(source["fields"].filter(pl.col("session").is_not_null())).drop("owner"),
        tables["fields"].filter(pl.col("session").is_null())])} if "fields" in source else {})
