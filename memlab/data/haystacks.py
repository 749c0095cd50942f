"""Larger haystacks: each grown by sessions of other conversations (grow), or all of them as one (pool).

Both leave questions, answers and evidence as they are, and number a haystack's sessions in the order of their dates. A
grown haystack has a multiple of its own size, so that one data set gives several sizes; the pool has one size, that of
the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import polars as pl

from memlab.data.groups import session_texts
from memlab.data.numbering import corpus_digests, draw
from memlab.errors import MemlabError
from memlab.tables import SESSION, Tables


def pooled(tables: Tables) -> Tables:
    """Make all corpora one, number 0, its sessions in the order of their dates.

    All sessions stay: a text with several dates is there once per date. Evidence stays in the session of the question's
    own haystack.
    """
    ordered = tables["sessions"].sort("said_on", *SESSION, nulls_last=True)
    places = ordered.select(
        pl.lit(0, pl.Int32).alias("corpus"), pl.int_range(pl.len(), dtype=pl.Int32).alias("session"), "said_on",
        pl.col("corpus").alias("owner"), pl.col("session").alias("old"), pl.lit(True).alias("own"))
    pool = tables["ids"].filter(pl.col("kind") == "corpus").head(1).with_columns(name=pl.lit("pool"))
    return _placed(tables, tables, places, corpora=pool, full_name=pl.lit(True)).updated(
        {"questions": tables["questions"].with_columns(corpus=pl.lit(0, pl.Int32))})


def grown(tables: Tables, source: Tables, times: int, seed: int = 0) -> Tables:
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
    return _placed(tables, source, places, corpora=tables["ids"].filter(pl.col("kind") == "corpus"), full_name=~own)


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


def _placed(tables: Tables, source: Tables, places: pl.DataFrame, corpora: pl.DataFrame, full_name: pl.Expr) -> Tables:
    """Return ``tables`` with the sessions of ``source`` at these places.

    places: (corpus, session, said_on, owner, old, own): ``own`` marks the place of a session in which evidence stays.
    corpora: their rows in ``ids``. full_name: whether a session's corpus is written before its name.
    """
    def move(rows: pl.DataFrame, *order: str) -> pl.DataFrame:
        renamed = rows.rename({"corpus": "owner", "session": "old"})
        moved = renamed.join(places.drop("said_on"), on=["owner", "old"], how="inner")
        return moved.select(*rows.columns, "owner").sort("corpus", "session", *order)

    turns = move(source["turns"], "turn").drop("owner")
    evidence = tables["evidence"].join(
        tables["questions"].select("question", pl.col("corpus").alias("owner")), on="question", maintain_order="left")
    moved = evidence.rename({"session": "old"}).join(
        places.filter("own").select("owner", "old", "session"), on=["owner", "old"], how="left", maintain_order="left")
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
        "evidence": moved.select(tables["evidence"].columns),
        "ids": pl.concat([corpora, said.with_columns(name=name).select(asked.columns), asked]),
    })
