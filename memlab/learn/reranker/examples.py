"""What a reranker is taught: evidence turns as positives, the lanes' best other turns as hard negatives.

The only place where a reranker meets gold. Questions of the held-out fold give no label, and turns that the
held-out fold will be tested on give no negative.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from memlab.errors import MemlabError
from memlab.learn.folds import folds, session_texts, shared_sessions
from memlab.rank.rerank import passages_of
from memlab.tables import PLACE, Tables, text_hash

NEEDED = ("questions", "evidence", "gold", "turns", "texts", "memories", "units", "ranking")


@dataclass(frozen=True)
class Fold:
    """Questions to learn from and questions kept apart. Both frames: question, text, key (see ``question_keys``)."""

    name: str
    train: pl.DataFrame
    held_out: pl.DataFrame
    forbidden: pl.DataFrame
    """(corpus, session) that may be no one's negatives: the held-out questions have them in their corpora too."""


def question_keys(questions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Return (question, text, key): key names the question's wording together with all that its corpus says.

    Numbers mean nothing outside a run, and two users may ask the same words: only wording and corpus together
    tell, in another run, whether a question was held out.
    """
    said = session_texts(turns).sort(PLACE).group_by("corpus", maintain_order=True).agg(
        pl.col("content").str.join(" "))
    rows = questions.select("question", "corpus", "text").join(said, on="corpus", how="left").sort("question")
    keys = [text_hash(f"{text} {content or ''}") for text, content in rows.select("text", "content").iter_rows()]
    return rows.select("question", "text", pl.Series("key", keys, pl.String))


def part(tables: Tables, fold: str) -> Fold:
    """Part the questions: ``all`` holds nothing out, ``2/3`` the second of three folds (memlab.learn.folds).

    Raises MemlabError where the data cannot be parted so.
    """
    keys = question_keys(tables["questions"], tables["turns"])
    if fold == "all":
        nothing = tables["turns"].select(PLACE).head(0)
        return Fold(fold, keys, keys.head(0), nothing)
    which, count = parse_fold(fold)
    parted = folds(tables["questions"], tables["evidence"], tables["turns"], count)
    there = int(parted["fold"].max() or 0) + 1  # type: ignore[arg-type]
    if there < count:
        raise MemlabError(f"these data part into {there} disjoint folds at most", where=f"fold={fold}",
                          fix=f"fold=1/{there}")
    apart = parted.with_columns((pl.col("fold") == which - 1).cast(pl.Int32).alias("fold"))
    shared = shared_sessions(tables["questions"], tables["turns"], apart).filter("shared").select(PLACE)
    mine = apart.filter(pl.col("fold") == 1)
    return Fold(fold, keys.join(mine, on="question", how="anti"), keys.join(mine, on="question", how="semi"), shared)


def parse_fold(fold: str) -> tuple[int, int]:
    """Read ``k/n``: fold k of n, counted from 1. Raises ValueError for anything else.

    >>> parse_fold("2/3")
    (2, 3)
    """
    match = re.fullmatch(r"(\d+)/(\d+)", fold)
    if not match or not 1 <= int(match[1]) <= int(match[2]) or int(match[2]) < 2:
        raise ValueError("write all, or k/n with 1 <= k <= n and n >= 2, such as 1/3")
    return int(match[1]), int(match[2])


def examples(tables: Tables, fold: Fold, depth: int, roles: tuple[str, ...]) -> pl.DataFrame:
    """Return (question, query, positive, negatives), one row an evidence turn of a question to learn from.

    ``tables`` hold a first stage's ranking of turns. Texts are what a reranker reads ("Speaker: text").
    ``negatives`` are the first ``depth`` ranked turns, best first, without: evidence; turns of a session of which
    only the session is known to be evidence; turns that read like a positive; ``fold.forbidden`` sessions. Questions
    that do not count in retrieval averages, and examples without a negative, are left out.
    """
    if not tables["units"]["level"].eq("turn").all():
        raise MemlabError("a reranker learns from turns", where="rank/score, level", fix="rank.score.level=turn")
    scored = tables["gold"].filter("scored")
    asked = tables["questions"].select("question", "corpus", "text").join(fold.train, on="question", how="semi").join(
        scored, on="question", how="semi").join(tables["texts"].rename({"text": "query"}), left_on="text",
                                                right_on="hash")
    known = tables["evidence"].join(asked.select("question", "corpus"), on="question")
    turns = tables["units"].explode("turns").select("unit", *PLACE, pl.col("turns").alias("turn"))
    right = known.join(turns, on=[*PLACE, "turn"]).select("question", "unit").unique()
    head = tables["ranking"].filter(pl.col("rank") <= depth).join(asked, on="question", how="semi").select(
        "question", "unit", "rank")
    read = passages_of(pl.concat([right.select("unit"), head.select("unit")]).unique(), tables, roles).select(
        "unit", "passage")
    positives = right.join(read, on="unit").sort("question", "unit")
    vague = known.filter(pl.col("turn").is_null()).select("question", *PLACE)
    negatives = (
        head.join(right, on=["question", "unit"], how="anti")
        .join(turns.select("unit", *PLACE), on="unit")
        .join(vague, on=["question", *PLACE], how="anti").join(fold.forbidden, on=PLACE, how="anti")
        .join(read, on="unit").join(positives, on=["question", "passage"], how="anti").sort("question", "rank")
        .group_by("question", maintain_order=True).agg(pl.col("passage").unique(maintain_order=True)
                                                       .alias("negatives"))
    )
    return positives.join(asked.select("question", "query"), on="question").join(negatives, on="question").sort(
        "question", "unit").select("question", "query", pl.col("passage").alias("positive"), "negatives")
