"""A user's own answers: JSONL of ``{"question_id": ..., "hypothesis": ...}``, as LongMemEval's script reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.tables import Tables, add_texts, frame
from memlab.text.unicode import replace_surrogates


class HypothesisFile(NamedTuple):
    """Hypotheses by question number, unknown ids, and ids of questions without a hypothesis."""

    hypotheses: dict[int, str]
    unknown: list[str]
    missing: list[str]


def question_ids(tables: Tables) -> dict[str, int]:
    """Return the benchmark's question ids with their numbers; raise MemlabError if two questions share one."""
    rows = tables["ids"].filter(pl.col("kind") == "question").select("name", "question")
    if rows["name"].n_unique() < rows.height:
        raise MemlabError("two questions have one id, so that no answer can be assigned", where="table ids")
    return dict(rows.iter_rows())


def read(path: Path, question_of: Mapping[str, int]) -> HypothesisFile:
    """Read a file of hypotheses: JSONL, or a JSON list of the same objects; further fields are allowed.

    Raises Faults with all broken lines and repeated ids. Ids that the benchmark does not have are skipped, as in the
    official script, and reported; it is an error if no id is left.
    """
    hypotheses: dict[int, str] = {}
    first: dict[str, int] = {}
    unknown: list[str] = []
    faults: list[str] = []
    for number, record in _records(path, faults):
        where = f"{path.name}, line {number}"
        name, text = record.get("question_id"), record.get("hypothesis")
        wrong = [key for key, value in (("question_id", name), ("hypothesis", text)) if not isinstance(value, str)]
        if wrong:
            faults += [f"{where}, field {key}: " + ("expected a text" if key in record else "is missing")
                       for key in wrong]
            continue
        name, text = str(name), replace_surrogates(str(text))
        if name in first:
            faults.append(f"{where}: question_id '{name}' was there before, on line {first[name]}")
            continue
        first[name] = number
        if name in question_of:
            hypotheses[question_of[name]] = text
        else:
            unknown.append(f"{where}: no question has the id '{name}'; {_nearest(name, question_of)}")
    if faults:
        raise Faults(faults)
    if not hypotheses:
        raise MemlabError("no line names a question of this data set", where=str(path),
                          fix=(unknown[0].partition("; ")[2] + "; " if unknown else "") + "check --data and --path")
    return HypothesisFile(hypotheses, unknown, [name for name, q in question_of.items() if q not in hypotheses])


def _nearest(name: str, known: Mapping[str, int]) -> str:
    hint = did_you_mean(name, known)
    return hint.partition(" (known:")[0] if hint.startswith("did you mean") else f"ids look like '{next(iter(known))}'"


def _records(path: Path, faults: list[str]) -> list[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise MemlabError(f"cannot be read ({getattr(fault, 'strerror', None) or 'it is not UTF-8'})",
                          where=str(path), fix="give a JSONL file of question_id and hypothesis") from fault
    if text.lstrip().startswith("["):
        try:
            records = list(enumerate(json.loads(text), start=1))
        except (ValueError, RecursionError) as fault:
            raise MemlabError(f"is not a JSON list ({fault})", where=str(path)) from fault
    else:
        records = []
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    records.append((number, json.loads(line)))
                except (ValueError, RecursionError) as fault:
                    faults.append(f"{path.name}, line {number}: is not JSON ({fault})")
    faults += [f"{path.name}, line {n}: expected an object" for n, value in records if not isinstance(value, dict)]
    if not records and not faults:
        raise MemlabError("there is no line in it", where=str(path))
    return [(n, value) for n, value in records if isinstance(value, dict)]


def with_answers(tables: Tables, hypotheses: Mapping[int, str]) -> Tables:
    """Return the tables that a judge reads, with the hypotheses as answers (sample 0; tokens and seconds unknown)."""
    rows = sorted(hypotheses.items())
    ids, texts = add_texts(tables["texts"], [text for _, text in rows])
    answers = frame("answers", {"question": [q for q, _ in rows], "sample": [0] * len(rows), "text_id": ids})
    return tables.only(("questions", "gold")).updated({"answers": answers, "texts": texts})
