"""Readers of ranking files: TREC runs, MTEB's predictions, LongMemEval's retrieval logs, and plain JSON.

``read_run`` chooses by content:

* TREC: ``topic Q0 document rank score name`` on each line (trec_eval's format).
* MTEB: JSON ``{topic: {document: score}}``, at any depth under names of subsets and splits.
* LongMemEval: JSON lines with ``question_id`` and ``retrieval_results.ranked_items``, each with a ``corpus_id``
  (github.com/xiaowu0162/LongMemEval, ``src/retrieval``; MemPalace writes the same).
* Plain: JSON, or JSON lines, of ``{"question_id": ..., "ranked": [document, ...]}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import polars as pl

from memlab.errors import MemlabError
from memlab.text.unicode import replace_surrogates

Format = Literal["TREC run", "MTEB predictions", "LongMemEval retrieval log", "ranked lists"]

LARGEST = 2_000_000_000
"""Bytes of a run file; larger ones are refused before they are read."""

DEEPEST = 6
"""Levels of names above MTEB's topics."""

EXPECTED = ("a TREC run (topic Q0 document rank score name), MTEB predictions {topic: {document: score}}, "
            'LongMemEval\'s retrieval log, or JSON lines {"question_id": "q1", "ranked": ["s1", "s2"]}')

Row = tuple[str, str, float, int]
"""Topic, document, score, place in the file's own order from 1."""


@dataclass(frozen=True)
class Run:
    """A ranking file: its rows (topic, document, score, place), best first within a topic, and what it was read as.

    ``tied`` counts rows whose score another row of the topic has, ``repeated`` rows that name a document again.
    """

    rows: pl.DataFrame
    format: Format
    tied: int
    repeated: int


def read_run(path: Path) -> Run:
    """Read a ranking file. Rows are ordered by score, equal scores by the file's own order.

    Raises MemlabError for a file that is none of the formats, with the line where that is known.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise MemlabError(f"the file has more than {LARGEST / 1e9:.0f} GB", where=str(path),
                              fix="cut the run to the first hundred documents of each topic")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MemlabError("the file is no UTF-8 text", where=str(path), fix=f"expected {EXPECTED}") from error
    except OSError as error:
        raise MemlabError(f"the run cannot be read ({error.strerror or error})", where=str(path),
                          fix="check the path") from error
    found, rows = _parse(text, path)
    rows = [(replace_surrogates(topic), replace_surrogates(name), score, at) for topic, name, score, at in rows]
    table = pl.DataFrame(rows, schema={"topic": pl.String, "document": pl.String, "score": pl.Float64,
                                       "place": pl.Int64}, orient="row")
    if table.is_empty():
        raise MemlabError("the run has no rows", where=str(path), fix=f"expected {EXPECTED}")
    tied = table.filter(pl.len().over("topic", "score") > 1).height
    once = table.sort("topic", "score", "place", descending=[False, True, False]).unique(
        ["topic", "document"], keep="first", maintain_order=True)
    return Run(once, found, tied, table.height - once.height)


def _parse(text: str, path: Path) -> tuple[Format, list[Row]]:
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return "TREC run", list(_trec(text, path))
    try:
        whole = json.loads(text)
    except RecursionError as error:
        raise MemlabError("the JSON is nested too deeply", where=str(path), fix=f"expected {EXPECTED}") from error
    except ValueError:
        return _records(_lines(text, path), path)
    if isinstance(whole, dict) and "question_id" not in whole:
        return "MTEB predictions", list(_mteb(whole, path))
    return _records(enumerate(whole if isinstance(whole, list) else [whole], 1), path)


def _trec(text: str, path: Path) -> Iterator[Row]:
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
            yield unquote(topic), unquote(document), _number(score), int(rank)
        except ValueError as error:
            raise MemlabError(f"rank '{rank}' and score '{score}' must be numbers", where=where,
                              fix="topic Q0 document rank score name") from error


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{number} is no score")
    return number


def _mteb(value: dict[str, Any], path: Path, depth: int = 0) -> Iterator[Row]:
    for topic, scores in value.items():
        if not isinstance(scores, dict) or depth > DEEPEST:
            continue  # names of models and settings stand beside the topics
        if scores and all(isinstance(score, int | float) and not isinstance(score, bool) for score in scores.values()):
            for place, (document, score) in enumerate(scores.items(), 1):
                try:
                    yield topic, document, _number(score), place
                except ValueError as error:
                    raise MemlabError(f"document '{document}' of '{topic}': {error}", where=str(path),
                                      fix="scores are finite numbers") from error
        else:
            yield from _mteb(scores, path, depth + 1)


def _lines(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise MemlabError(f"no JSON ({error})", where=f"{path}, line {number}",
                                  fix=f"expected {EXPECTED}") from error


def _records(records: Iterable[tuple[int, Any]], path: Path) -> tuple[Format, list[Row]]:
    found: Format = "ranked lists"
    rows: list[Row] = []
    for number, record in records:
        where = f"{path}, record {number}"
        topic = record.get("question_id") if isinstance(record, dict) else None
        if not isinstance(topic, str | int) or isinstance(topic, bool):
            raise MemlabError("question_id is missing", where=where, fix=f"expected {EXPECTED}")
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
