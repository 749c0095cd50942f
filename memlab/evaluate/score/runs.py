"""Readers of ranking files: TREC runs, MTEB's predictions, LongMemEval's retrieval logs, and plain JSON.

``read_run`` chooses by content:

* TREC: ``topic Q0 document rank score name`` on each line (trec_eval's format).
* MTEB: JSON ``{topic: {document: score}}``, at any depth under names of subsets and splits.
* LongMemEval: JSON lines with ``question_id`` and ``retrieval_results.ranked_items``, each with a ``corpus_id``
  (github.com/xiaowu0162/LongMemEval, ``src/retrieval``; MemPalace writes the same).
* Plain: JSON, or JSON lines, of ``{"question_id": ..., "ranked": [document, ...]}``.

Scores decide, as in trec_eval: the rank column of a TREC run is compared with them, and topics where both disagree are
counted.
"""

from __future__ import annotations

import codecs
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import polars as pl

from memlab.evaluate.export import NOTHING, UNJUDGED
from memlab.support.errors import MemlabError
from memlab.support.foreign import read_bytes
from memlab.support.text.display import replace_surrogates

Format = Literal["TREC run", "MTEB predictions", "LongMemEval retrieval log", "ranked lists"]

Order = Literal["score", "ascending", "rank"]
"""What ranks the documents: the highest score, the lowest (distances), or the rank column."""

LARGEST = 2_000_000_000
"""Bytes of a run file at most."""

LARGEST_RANK = 2**53
"""Ranks that are kept exactly."""

DEEPEST = 6
"""Levels of names above MTEB's topics."""

ABOUT = "mteb_model_meta"
"""MTEB's own entry beside the topics."""

EXPECTED = ("a TREC run (topic Q0 document rank score name), MTEB predictions {topic: {document: score}}, "
            'LongMemEval\'s retrieval log, or JSON lines {"question_id": "q1", "ranked": ["s1", "s2"]}')

Row = tuple[str, str, float, int]
"""Topic, document, score, place in the file's own order from 1."""


@dataclass(frozen=True)
class Run:
    """A ranking file: its rows (topic, document, score, place), best first within a topic, and what it was read as.

    ``tied`` counts rows whose score another row of the topic has, ``contradicted`` topics whose rank column contradicts
    the order. ``left_out`` names entries of MTEB's JSON that hold no scores.
    """

    rows: pl.DataFrame
    format: Format
    tied: int = 0
    contradicted: int = 0
    left_out: tuple[str, ...] = ()
    order: Order = "score"


def read_run(path: Path, order: Order = "score") -> Run:
    """Read a ranking file. Rows are ordered by score, equal scores by the file's own order; a higher score is better.

    ``order="ascending"`` is for distances: the scores change their sign. ``order="rank"`` takes the rank column of a
    TREC run; the scores are then -rank. Beside memlab's own ``run.trec`` the file of its unjudged topics is read too.

    Raises MemlabError for a file that is none of the formats, with the line where that is known.
    """
    found, rows, left_out = _parse(_text(path), path)
    beside = path.with_suffix(UNJUDGED)
    if found == "TREC run" and path.suffix == ".trec" and beside.is_file():
        rows += _trec(_text(beside), beside)
    if order == "rank" and found == "MTEB predictions":
        raise MemlabError("MTEB predictions have no ranks", where=str(path), fix="leave out --by-rank")
    if order == "ascending" and found not in ("TREC run", "MTEB predictions"):
        raise MemlabError(f"a file of the format '{found}' has no scores", where=str(path), fix="leave out --ascending")
    rows = [(replace_surrogates(topic), replace_surrogates(name), score, at) for topic, name, score, at in rows]
    table = pl.DataFrame(rows, schema={"topic": pl.String, "document": pl.String, "score": pl.Float64,
                                       "place": pl.Int64}, orient="row").filter(pl.col("document") != NOTHING)
    if table.is_empty():
        raise MemlabError("the run has no rows", where=str(path), fix=f"expected {EXPECTED}")
    best = {"score": pl.col("score"), "ascending": 0.0 - pl.col("score"), "rank": -pl.col("place").cast(pl.Float64)}
    table = table.with_columns(best[order].alias("score"))
    tied = table.filter(pl.len().over("topic", "score") > 1).height
    ordered = table.sort("topic", "score", "place", descending=[False, True, False], maintain_order=True)
    contradicted = _count_contradicted(table) if found == "TREC run" and order != "rank" else 0
    return Run(ordered, found, tied, contradicted, tuple(left_out), order)


def _count_contradicted(table: pl.DataFrame) -> int:
    """Count the topics in which some row has a higher score than one of a better rank."""
    ranks = table.group_by("topic", "place").agg(
        pl.col("score").min().alias("low"), pl.col("score").max().alias("high"))
    before = pl.col("low").cum_min().shift(1).over("topic")
    return ranks.sort("topic", "place").filter(pl.col("high") > before)["topic"].n_unique()


def _text(path: Path) -> str:
    try:
        content = read_bytes(path, LARGEST, MemlabError(
            f"the file has more than {LARGEST / 1e9:.0f} GB", where=str(path),
            fix="cut the run to the first hundred documents of each topic"))
    except OSError as error:
        raise MemlabError(f"the run cannot be read ({error.strerror or error})", where=str(path),
                          fix="check the path") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in content[:2]
        raise MemlabError("the file is no UTF-8 text" + (", but UTF-16" if utf_16 else ""), where=str(path),
                          fix="save it as UTF-8" if utf_16 else f"expected {EXPECTED}")
    return text.replace("\n\ufeff", "\n")  # files that were joined each bring their mark


def _parse(text: str, path: Path) -> tuple[Format, list[Row], list[str]]:
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return "TREC run", _trec(text, path), []
    try:
        whole = json.loads(text, object_pairs_hook=partial(_distinct, str(path)))
    except RecursionError as error:
        raise MemlabError("the JSON is nested too deeply", where=str(path), fix=f"expected {EXPECTED}") from error
    except ValueError:
        return *_records(_lines(text, path), path), []
    if isinstance(whole, dict) and "question_id" not in whole:
        left_out: list[str] = []
        return "MTEB predictions", list(_mteb(whole, path, left_out, {})), left_out
    return *_records(enumerate(whole if isinstance(whole, list) else [whole], 1), path), []


def _trec(text: str, path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        parts = line.split()
        where = f"{path}, line {number}"
        if len(parts) != 6:  # noqa: PLR2004  (the columns of a TREC run)
            raise MemlabError(f"{len(parts)} columns, where a TREC run has six", where=where,
                              fix=f"expected {EXPECTED}")
        topic, _, document, rank, score, _ = parts
        try:
            place = int(rank)
            if abs(place) > LARGEST_RANK:
                raise ValueError(f"{place} is no rank")
            rows.append((unquote(topic), unquote(document), _number(score), place))
        except ValueError as error:
            raise MemlabError(f"rank '{rank}' and score '{score}' must be numbers", where=where,
                              fix="topic Q0 document rank score name") from error
    return rows


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"the score is {json.dumps(value, default=str)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"the score is {number}")
    return number


def _distinct(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise MemlabError for a name that is given twice, of which JSON would keep the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), = Counter(name for name, _ in pairs).most_common(1)
        raise MemlabError(f"'{twice}' is there twice", where=where,
                          fix="give each topic, each document and each field once")
    return found


def _mteb(value: dict[str, Any], path: Path, left_out: list[str], parts: dict[str, str], part: str = "",
          depth: int = 0) -> Iterator[Row]:
    """Yield the rows of the topics; entries beside them without scores (names of models, settings) are left out.

    parts: topic -> the subset or split that it was found in; a topic of two is refused, since they are two rankings.
    """
    for topic, scores in value.items():
        if topic == ABOUT:
            continue
        if not isinstance(scores, dict) or depth > DEEPEST or (scores and all(map(_is_word, scores.values()))):
            left_out.append(topic)
        elif any(isinstance(score, dict) for score in scores.values()):
            yield from _mteb(scores, path, left_out, parts, f"{part}/{topic}".strip("/"), depth + 1)
        else:
            if parts.setdefault(topic, part) != part:
                raise MemlabError(f"topic '{topic}' is in '{parts[topic]}' and in '{part}'", where=str(path),
                                  fix="score each subset by a file of its own")
            for place, (document, score) in enumerate(scores.items(), 1):
                try:
                    if isinstance(score, str):
                        raise ValueError(f"the score is the text {score!r}")
                    yield topic, document, _number(score), place
                except ValueError as error:
                    raise MemlabError(f"document '{document}' of '{topic}': {error}", where=str(path),
                                      fix="scores are finite numbers") from error


def _is_word(value: Any) -> bool:
    """Whether a value is a text that is no number."""
    try:
        return isinstance(value, str) and not isinstance(float(value), float)
    except ValueError:
        return True


def _lines(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield number, json.loads(line, object_pairs_hook=partial(_distinct, where))
            except (ValueError, RecursionError) as error:
                raise MemlabError(f"no JSON ({error})", where=where, fix=f"expected {EXPECTED}") from error


def _records(records: Iterable[tuple[int, Any]], path: Path) -> tuple[Format, list[Row]]:
    found: Format = "ranked lists"
    rows: list[Row] = []
    first: dict[str, int] = {}
    for number, record in records:
        where = f"{path}, record {number}"
        topic = record.get("question_id") if isinstance(record, dict) else None
        if not isinstance(topic, str | int) or isinstance(topic, bool):
            raise MemlabError("question_id is missing", where=where, fix=f"expected {EXPECTED}")
        if first.setdefault(str(topic), number) != number:
            raise MemlabError(f"question_id '{topic}' was there before, in record {first[str(topic)]}", where=where,
                              fix="rank each question once")
        log = record.get("retrieval_results")
        if isinstance(log, dict):
            found, items = "LongMemEval retrieval log", log.get("ranked_items")
            documents = [item.get("corpus_id") if isinstance(item, dict) else None for item in items] \
                if isinstance(items, list) else None
        else:
            documents = record.get("ranked") if isinstance(record.get("ranked"), list) else None
        if documents is None:
            raise MemlabError("no list of documents", where=where, fix=f"expected {EXPECTED}")
        for place, document in enumerate(documents, 1):
            if not isinstance(document, str):
                raise MemlabError(f"document {place} has no name", where=where, fix=f"expected {EXPECTED}")
            rows.append((str(topic), document, -float(place), place))
    return found, rows
