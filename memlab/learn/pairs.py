"""Training pairs: questions with evidence turns as positives, and other highly ranked turns as hard negatives.

Models that are trained on texts see gold here only. Questions of the held-out fold give no labels, and turns that the
held-out fold is tested on are no negatives.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from memlab.data.numbering import question_digests
from memlab.learn.folds import folds, in_folds
from memlab.pipeline.tables import SESSION, Tables, with_text
from memlab.stages.rank.rerank import passages_of
from memlab.support.errors import MemlabError, error_message
from memlab.support.files import atomic_write, open_plain
from memlab.support.progress import progress

FORMAT = "memlab-examples-1"

WINDOW = 8
"""Batches that are filled from one sorted stretch of the shuffled examples: little padding, and still mixed."""

NEEDED = ("questions", "evidence", "gold", "turns", "texts", "memories", "units", "ranking")


@pydantic_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class TrainingExample:
    """A question, a passage that answers it, and others that do not."""

    query: str
    positive: str
    negatives: Annotated[list[str], Field(min_length=1)]


@pydantic_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class FileHead:
    """The first line of a file of examples."""

    format: Literal["memlab-examples-1"]
    record: dict[str, Any]


_EXAMPLE, _HEAD = TypeAdapter(TrainingExample), TypeAdapter(FileHead)


@dataclass(frozen=True)
class Fold:
    """Training and held-out questions. Columns of both frames: question, text_id, key (see ``question_keys``)."""

    train: pl.DataFrame
    held_out: pl.DataFrame
    forbidden: pl.DataFrame
    """(corpus, session) that may give no negatives, since corpora of held-out questions hold them too."""


def question_keys(questions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Return (question, text_id, key): the key is a hash of the question's text and of the whole text of its corpus.

    Ids mean nothing outside a run, and two users may ask the same question: only text and corpus together identify a
    held-out question in another run.
    """
    keys = question_digests(questions, turns).rename({"digest": "key"})
    return questions.select("question", "text_id").join(keys, on="question").sort("question")


def split(tables: Tables, fold: str) -> Fold:
    """Split the questions: ``all`` holds nothing out, ``2/3`` the second of three folds (memlab.learn.folds).

    Raises MemlabError where the data do not have so many disjoint folds.
    """
    keys = question_keys(tables["questions"], tables["turns"])
    if fold == "all":
        nothing = tables["turns"].select(SESSION).head(0)
        return Fold(keys, keys.head(0), nothing)
    which, count = parse_fold(fold)
    fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], count)
    possible = int(fold_of["fold"].max() or 0) + 1  # type: ignore[arg-type]
    if possible < count:
        raise MemlabError(f"these data split into {possible} disjoint folds at most", where=f"fold={fold}",
                          fix=f"fold=1/{possible}")
    sides = fold_of.with_columns((pl.col("fold") == which - 1).cast(pl.Int32).alias("fold"))
    sessions = tables["turns"].select(SESSION).unique().sort(SESSION)
    shared = sessions.filter(pl.Series(in_folds(sessions, tables["questions"], tables["turns"], sides).all(axis=0)))
    held_out = sides.filter(pl.col("fold") == 1)
    return Fold(keys.join(held_out, on="question", how="anti"), keys.join(held_out, on="question", how="semi"), shared)


def parse_fold(fold: str) -> tuple[int, int]:
    """Read ``k/n``: fold k of n, counted from 1. Raises ValueError for anything else.

    >>> parse_fold("2/3")
    (2, 3)
    """
    match = re.fullmatch(r"(\d+)/(\d+)", fold)
    if not match or not 1 <= int(match[1]) <= int(match[2]) or int(match[2]) < 2:
        raise ValueError("write all, or k/n with 1 <= k <= n and n >= 2, such as 1/3")
    return int(match[1]), int(match[2])


def examples(tables: Tables, fold: Fold, depth: int, roles: tuple[str, ...], absolute_margin: float | None = None,
             relative_margin: float | None = None) -> pl.DataFrame:
    """Return (question, query, positive, negatives), one row per evidence turn of a training question.

    ``tables`` hold a first stage's ranking of turns. Texts are what a model reads ("Speaker: text").
    ``negatives`` are the first ``depth`` ranked turns, best first, without: evidence; turns of a session that is
    evidence as a whole; turns with the text of a positive; ``fold.forbidden`` sessions; and turns whose score is too
    near that of the positive, or above it, since they may be evidence that nobody marked. With the margins, named as in
    sentence-transformers' ``mine_hard_negatives``, a negative's score n beside that of the positive p has

        n <= p - absolute_margin,   n <= p - |p| x relative_margin

    A positive that is not ranked has no score, and with a margin no negatives. Questions that do not count in retrieval
    averages, and examples without a negative, are left out.
    """
    if not tables["units"]["level"].eq("turn").all():
        raise MemlabError("a model is trained on turns", where="rank/score, level", fix="rank.score.level=turn")
    scored = tables["gold"].filter("scored").join(fold.train, on="question", how="semi")
    questions = with_text(tables["questions"].join(scored, on="question", how="semi"), tables["texts"], name="query")
    evidence = tables["evidence"].join(questions.select("question", "corpus"), on="question")
    turns = tables["units"].explode("turns").select("unit", *SESSION, pl.col("turns").alias("turn"))
    evidence_units = evidence.join(turns, on=[*SESSION, "turn"]).select("question", "unit").unique()
    head = tables["ranking"].filter(pl.col("rank") <= depth).join(questions, on="question", how="semi").select(
        "question", "unit", "rank", "score")
    units = pl.concat([evidence_units.select("unit"), head.select("unit")]).unique()
    passages = passages_of(units, tables, roles).select("unit", pl.col("text").alias("passage"))
    scores = tables["ranking"].select("question", "unit", pl.col("score").alias("best"))
    positives = evidence_units.join(passages, on="unit").join(scores, on=["question", "unit"], how="left").sort(
        "question", "unit")
    whole_sessions = evidence.filter(pl.col("turn").is_null()).select("question", *SESSION)
    distractors = (
        head.join(evidence_units, on=["question", "unit"], how="anti")
        .join(turns.select("unit", *SESSION), on="unit")
        .join(whole_sessions, on=["question", *SESSION], how="anti").join(fold.forbidden, on=SESSION, how="anti")
        .join(passages, on="unit").join(positives, on=["question", "passage"], how="anti").sort("question", "rank")
        .group_by("question", "passage", maintain_order=True).agg(pl.col("rank").first(), pl.col("score").max())
    )
    highest = [pl.col("best") - margin for margin in (
        None if absolute_margin is None else pl.lit(absolute_margin),
        None if relative_margin is None else pl.col("best").abs() * relative_margin) if margin is not None]
    negatives = positives.select("question", "unit", "best").join(distractors, on="question").filter(
        pl.lit(True), *(pl.col("score") <= limit for limit in highest)).sort("question", "unit", "rank").group_by(
        "question", "unit", maintain_order=True).agg(pl.col("passage").alias("negatives"))
    return positives.join(questions.select("question", "query"), on="question").join(
        negatives, on=["question", "unit"]).sort("question", "unit").select(
        "question", "query", pl.col("passage").alias("positive"), "negatives")


@dataclass(frozen=True)
class TrainingLists:
    """Lists in the order of training: ``passages[i]`` are the positive of ``queries[i]``, then its negatives."""

    queries: list[str]
    passages: list[list[str]]


def draw(examples: pl.DataFrame, negatives: int, epochs: int, batch: int, seed: int) -> TrainingLists:
    """Return each of the ``examples`` once for each epoch, with negatives drawn anew; the same for the same seed.

    An example with fewer negatives has all of them. Each ``batch`` lists in a row have similar lengths.
    """
    rng = np.random.default_rng([seed, 2])
    longest = examples.select(pl.col("query").str.len_chars() + pl.max_horizontal(
        pl.col("positive").str.len_chars(), pl.col("negatives").list.eval(pl.element().str.len_chars()).list.max()))
    lengths, order = longest.to_series().to_numpy(), []
    shuffled = np.concatenate([rng.permutation(examples.height) for _ in range(epochs)])
    for window in np.split(shuffled, range(WINDOW * batch, len(shuffled), WINDOW * batch)):
        window = window[np.argsort(lengths[window], kind="stable")]
        parts = np.split(window, range(batch, len(window), batch))
        whole = len(window) // batch
        order += [row for part in (*rng.permutation(whole), *range(whole, len(parts))) for row in parts[part]]
    rows = examples.select("query", "positive", "negatives").rows()
    return TrainingLists([rows[row][0] for row in order], [
        [positive, *(pool[at] for at in rng.permutation(len(pool))[:negatives])]
        for _, positive, pool in (rows[row] for row in order)])


def distinct_batches(lists: TrainingLists, batch: int) -> TrainingLists:
    """Return lists nearly in their order, for a loss in which all passages of a step are negatives of each other.

    In each ``batch`` of them no text comes twice, and none is evidence of another's question. What fits into no full
    batch is left out, unless there is no full batch.

    >>> lists = TrainingLists(["a", "b", "a", "c"], [["1", "2"], ["3", "4"], ["1", "5"], ["6", "7"]])
    >>> distinct_batches(lists, 2).queries
    ['a', 'b', 'a', 'c']
    >>> distinct_batches(TrainingLists(["a", "a", "b"], [["1"], ["2"], ["3"]]), 2).queries
    ['a', 'b']
    """
    evidence: dict[str, set[str]] = {}
    for query, (positive, *_) in zip(lists.queries, lists.passages):
        evidence.setdefault(query, set()).add(positive)
    full: list[list[int]] = []
    started: list[tuple[list[int], set[str], set[str]]] = []  # rows, their texts, evidence of their questions
    for row, (query, passages) in enumerate(zip(lists.queries, lists.passages)):
        texts, answers = {query, *passages}, evidence[query]
        place = next((one for one in started if one[1].isdisjoint(texts | answers) and one[2].isdisjoint(texts)), None)
        if place is None:
            place = ([], set(), set())
            started.append(place)
        place[0].append(row)
        place[1].update(texts)
        place[2].update(answers)
        if len(place[0]) == batch:
            full.append(place[0])
            started.remove(place)
    if not full:
        full = [max((rows for rows, _, _ in started), key=len)]
    order = [row for rows in full for row in rows]
    return TrainingLists([lists.queries[row] for row in order], [lists.passages[row] for row in order])


def write_examples(file: Path, examples: pl.DataFrame, record: dict[str, Any]) -> None:
    """Write examples as JSON lines: first what is to be known of them, then query, positive and negatives of each."""
    lines = [{"format": FORMAT, "record": record}, *examples.select("query", "positive", "negatives").to_dicts()]
    atomic_write(file, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def read_examples(file: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the examples of a file and what is to be known of them; raise MemlabError where it is of another form."""
    fix, number, rows = "write the file with `memlab train pairs`", 0, []
    try:
        with open_plain(file) as lines, progress(f"reading {file.name}", file.stat().st_size, "bytes") as step:
            for number, line in enumerate(lines, start=1):
                step(len(line))
                if number == 1:
                    head = _HEAD.validate_json(line)
                else:
                    rows.append(_EXAMPLE.validate_json(line))
    except ValidationError as error:
        problem = error.errors()[0]
        expected = "query, positive and negatives" if number > 1 else f"the format {FORMAT} and a record"
        raise MemlabError(f"expected {expected}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}",
                          where=f"{file}, line {number}", fix=fix) from error
    except OSError as error:
        raise MemlabError(f"cannot be read ({error_message(error)})", where=str(file), fix=fix) from error
    if not rows:
        raise MemlabError("there is no example", where=str(file), fix=fix)
    return pl.DataFrame([dataclasses.asdict(row) for row in rows]), head.record


def draw_examples(examples: pl.DataFrame, limit: int | None, seed: int) -> pl.DataFrame:
    """Return at most ``limit`` examples, drawn by seed, in their order."""
    if limit is None or limit >= examples.height:
        return examples
    return examples[np.sort(np.random.default_rng([seed, 1]).permutation(examples.height)[:limit])]
