"""Files of a run folder: the form and seal of its manifest, which is written last, and the form of its tables.

A run folder is foreign when it is opened. Digests show that its files are those of the run; a folder of another
program, or another version, may hold other things, so what a report reads must have its type.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memlab.errors import MemlabError
from memlab.runtime.files import open_plain, write_json
from memlab.runtime.foreign import load_yaml, read_json
from memlab.runtime.redaction import redact_tree

FORMAT = 2
"""Format of run folders; one of another format is refused."""

MANIFEST = "manifest.json"
SEAL = "seal"
"""Name of the manifest's digest of itself."""


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


class _Totals(_Form):
    replies: Finite
    prompt_tokens: Finite
    completion_tokens: Finite
    seconds: Finite
    p50: Finite | None = None
    p95: Finite | None = None


class Manifest(_Form):
    """The manifest of a run: what a report reads of it by type, and what else describes the run."""

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
    replies: dict[str, dict[str, _Totals]]
    haystack: dict[str, Finite]


class _Metrics(_Form):
    __pydantic_extra__: dict[str, Finite | None]


_KINDS: dict[str, tuple[str, type[pl.DataType] | None]] = {column: (words, kind) for words, kind, columns in (
    ("whole numbers", None, "question unit rank session group corpus position"), ("numbers", None, "tokens score"),
    ("true or false", pl.Boolean, "scored selected abstain gold"), ("lists", pl.List, "turns"),
    ("texts", pl.String, "text text_id answer category class level label_error"), ("dates", pl.Datetime, "said_on"),
) for column in columns.split()}
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


def describe_files(folder: Path) -> dict[str, Any]:
    """Return the entries of a manifest that describe a run folder's other files: format, and name -> BLAKE2b."""
    return {"format": FORMAT, "files": {path.name: file_digest(path) for path in sorted(folder.iterdir())
                                        if path.is_file() and path.name != MANIFEST}}


def with_seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the digest of its own content under ``seal``."""
    plain = {name: value for name, value in content.items() if name != SEAL}
    text = json.dumps(json.loads(json.dumps(plain, default=str)), sort_keys=True)  # as write_json writes it
    return {**plain, SEAL: hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a run folder that is otherwise complete, without keys and with its seal."""
    manifest = Manifest.model_validate_json(json.dumps(redact_tree({**content, **describe_files(folder)}), default=str))
    write_json(folder / MANIFEST, with_seal(manifest.model_dump()))


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the manifest and the metrics of a run folder.

    Raises MemlabError if it cannot be read, has changed since the run, or has another form than memlab writes.
    """
    manifest, metrics = _object(folder / MANIFEST), _object(folder / "metrics.json")
    _verify(folder, manifest)
    _check_form(folder, manifest, metrics)
    return manifest, metrics


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise MemlabError(f"cannot be read ({error})", where=str(path), fix=_fix(path.parent)) from error


def _verify(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise MemlabError if a file that the manifest lists is missing or changed, or its format is another one."""
    version, listed, fix = manifest.get("format", "unknown"), manifest.get("files"), _fix(folder)
    if version != FORMAT:
        raise MemlabError(f"the format of this run is {str(version)[:20]}, and this memlab reads format {FORMAT} alone",
                          where=str(folder), fix="read it with the memlab that wrote it, or run the arm again")
    if with_seal(manifest)[SEAL] != manifest.get(SEAL):
        raise MemlabError("it has changed since the run: its content does not match its own digest",
                          where=str(folder / MANIFEST), fix=fix)
    if not isinstance(listed, dict) or not listed:
        raise MemlabError("its list of files cannot be read", where=str(folder / MANIFEST), fix=fix)
    for name, digest in listed.items():
        path = folder / name
        try:
            if path.parent != folder or file_digest(path) != digest:
                raise MemlabError("it has changed since the run: its content does not match the digest in the manifest",
                                  where=str(path), fix=fix)
        except OSError as error:
            raise MemlabError(f"cannot be read ({error.strerror})", where=str(path), fix=fix) from error


def file_digest(path: Path) -> str:
    """Return the BLAKE2b of a file's content, 16 bytes in hexadecimal; raise OSError if it cannot be read."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def plain_yaml(text: str, path: Path) -> Any:
    """Return the value of YAML text without aliases and tags; raise MemlabError naming its file if it is none.

    >>> plain_yaml("a: [1, x]", Path("config.yaml"))
    {'a': [1, 'x']}
    """
    try:
        return load_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise MemlabError(f"cannot be read as a configuration ({' '.join(str(error).split())[:120]})", where=str(path),
                          fix="delete the run folder and run the arm again") from error


def _check_form(folder: Path, manifest: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    """Raise MemlabError if the manifest, the metrics or a table of a run folder has another form than memlab writes."""
    for name, form, content in ((MANIFEST, Manifest, manifest), ("metrics.json", _Metrics, metrics)):
        try:
            form.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise _other_form(folder / name, f"{'.'.join(map(str, first['loc']))[:120]}: {first['msg']}") from error
    for name in _COLUMNS:
        _check_table(folder / f"{name}.parquet", name)


def _check_table(path: Path, name: str) -> None:
    with readable(path):
        schema = pl.read_parquet_schema(open_plain(path))
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
        if complete and pl.read_parquet(path, columns=list(complete), glob=False).null_count().sum_horizontal().sum():
            raise _other_form(path, f"a value of {', '.join(complete)} is missing")
        numbers = [column for column in schema if column not in _KINDS and schema[column].is_numeric()]
        if name == "questions" and numbers:
            sizes = pl.read_parquet(path, columns=numbers, glob=False).select(
                pl.all().cast(pl.Float64).abs().nan_max()).row(0)
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
