"""The form of a run folder's manifest, metrics and tables: what a report reads must have its type.

Digests show that files are those of the run; a folder of another program, or another version, may hold other things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memlab.errors import MemlabError

Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Point(_Form):
    k: int
    tokens: Finite
    value: Finite | None


class _Count(_Form):
    number: int
    of: int


class _Importance(_Form):
    feature: str
    share: Finite


class _Manifest(_Form):
    arm: str
    digest: str
    experiment: str
    command: str
    source: dict[str, str]
    finished: str
    total_seconds: Finite
    questions: int
    dataset: str
    data: dict[str, Any]
    pipeline: dict[str, Any]
    tokens: str
    oracle: bool
    tainted: bool
    looks_at_gold: list[str]
    notes: list[str]
    told: dict[str, _Count]
    constant_k: dict[str, list[_Point]]
    reliability: list[dict[str, Finite | None]]
    importances: list[_Importance]
    costs: dict[str, Finite]
    haystack: dict[str, Finite]


class _Metrics(_Form):
    __pydantic_extra__: dict[str, Finite | None]


_KINDS: dict[str, tuple[str, type[pl.DataType] | None]] = {
    "question": ("whole numbers", None), "unit": ("whole numbers", None), "rank": ("whole numbers", None),
    "session": ("whole numbers", None), "group": ("whole numbers", None), "corpus": ("whole numbers", None),
    "position": ("whole numbers", None), "tokens": ("numbers", None), "score": ("numbers", None),
    "scored": ("true or false", pl.Boolean), "selected": ("true or false", pl.Boolean),
    "abstain": ("true or false", pl.Boolean), "gold": ("true or false", pl.Boolean), "turns": ("lists", pl.List),
    "text": ("texts", pl.String), "text_id": ("texts", pl.String), "answer": ("texts", pl.String),
    "category": ("texts", pl.String), "class": ("texts", pl.String), "level": ("texts", pl.String),
    "label_error": ("texts", pl.String), "said_on": ("dates", pl.Datetime)}
"""Column -> its values in words, and their type; None for numbers."""

_COLUMNS: dict[str, tuple[str, ...]] = {
    "questions": ("question", "corpus", "group", "text", "answer", "category", "abstain", "scored", "label_error"),
    "ranking": ("question", "unit", "score", "rank", "selected"),
    "context": ("question", "text_id", "tokens"),
    "shown": ("question", "rank", "unit", "session", "turns", "said_on", "text", "gold", "selected"),
    "classes": ("question", "class")}
"""Table -> the columns that a report needs."""

_COMPLETE = {"questions": ("question", "scored", "category"), "ranking": ("question", "rank", "selected"),
             "shown": ("question", "rank")}
"""Table -> the columns that cannot be null."""


ANSWERS = {"question": pl.Int32, "sample": pl.Int32, "hypothesis": pl.String}
VERDICTS = {"question": pl.Int32, "judge": pl.String, "correct": pl.Boolean}
"""Columns of answers.jsonl and verdicts.jsonl that a report needs, and their types."""

_NUMBERS = ("questions", "ranking")
"""Tables whose other columns are metrics and signals."""


_LARGEST = 1e15
"""Size of a metric's value; tokens and seconds stay far below, and the squares of larger ones overflow. NaN is none:
what a question does not define is null."""


def check_form(folder: Path, manifest: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    """Raise MemlabError if the manifest, the metrics or a table of a run folder has another form than memlab writes."""
    for name, form, content in (("manifest.json", _Manifest, manifest), ("metrics.json", _Metrics, metrics)):
        try:
            form.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise _other_form(folder / name, f"{'.'.join(map(str, first['loc']))[:120]}: {first['msg']}") from error
    for name in _COLUMNS:
        _check_table(folder / f"{name}.parquet", name)


def _check_table(path: Path, name: str) -> None:
    with readable(path):
        schema = pl.read_parquet_schema(path)
        for column in dict.fromkeys([*_COLUMNS[name], *(known for known in schema if known in _KINDS)]):
            words, kind = _KINDS[column]
            if column not in schema:
                raise _other_form(path, f"it has no column {column}")
            actual = schema[column]
            fits = actual == kind if kind else actual.is_integer() if words == "whole numbers" else actual.is_numeric()
            if not fits:
                raise _other_form(path, f"column {column} holds no {words}")
        for column in schema if name in _NUMBERS else ():
            if column not in _KINDS and not (schema[column].is_numeric() or schema[column] in (pl.Null, pl.Boolean)):
                raise _other_form(path, f"column {column[:60]} holds no numbers")
        complete = _COMPLETE.get(name, ())
        if complete and pl.read_parquet(path, columns=list(complete)).null_count().sum_horizontal().sum():
            raise _other_form(path, f"a value of {', '.join(complete)} is missing")
        numbers = [column for column in schema if column not in _KINDS and schema[column].is_numeric()]
        if name == "questions" and numbers:
            sizes = pl.read_parquet(path, columns=numbers).select(pl.all().cast(pl.Float64).abs().nan_max()).row(0)
            for column, size in zip(numbers, sizes):
                if size is not None and not size <= _LARGEST:  # it may be NaN
                    raise _other_form(path, f"column {column[:60]} holds a number beyond {_LARGEST:g}, or NaN")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise what polars raises about a file of a run folder as MemlabError; of damaged bytes it may panic."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise MemlabError(f"cannot be read ({' '.join(str(error).split())[:200]})", where=str(path),
                          fix=_fix(path.parent)) from error


def _other_form(path: Path, what: str) -> MemlabError:
    return MemlabError(f"it is not as memlab writes it: {what}", where=str(path), fix=_fix(path.parent))


def _fix(folder: Path) -> str:
    return f"delete the folder {folder} and run the arm again"
