"""Manifest of a run folder: its form, and the digests of the other files, which are checked when it is read.

The manifest is written last. A run folder is foreign when it is opened, so what a report reads of the manifest must
have its type; the digests show that the tables are those of the run.
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

from memlab.support.errors import MemlabError
from memlab.support.files import open_plain, write_json
from memlab.support.foreign import load_yaml, read_json
from memlab.support.redaction import redact_tree

FORMAT = 2
"""Format of run folders; one of another format is refused."""

MANIFEST = "manifest.json"

ANSWERS = {"question": pl.Int32, "sample": pl.Int32, "hypothesis": pl.String}
VERDICTS = {"question": pl.Int32, "judge": pl.String, "correct": pl.Boolean}
"""Columns of answers.jsonl and verdicts.jsonl that a report needs, and their types."""

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

    format: int
    files: dict[str, str]
    """Name of each other file of the folder -> its BLAKE2b."""

    arm: str
    digest: str
    experiment: str
    command: str
    source: str
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


def describe_files(folder: Path) -> dict[str, Any]:
    """Return the entries of a manifest that describe a run folder's other files: format, and name -> BLAKE2b."""
    return {"format": FORMAT, "files": {path.name: file_digest(path) for path in sorted(folder.iterdir())
                                        if path.is_file() and path.name != MANIFEST}}


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a run folder that is otherwise complete, without keys."""
    plain = json.dumps(redact_tree({**content, **describe_files(folder)}), default=str)
    write_json(folder / MANIFEST, Manifest.model_validate_json(plain).model_dump())


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the manifest and the metrics of a run folder.

    Raises MemlabError if it cannot be read, is of another format, or has changed since the run.
    """
    content = _object(folder / MANIFEST)
    if (version := content.get("format", "unknown")) != FORMAT:
        raise MemlabError(f"the format of this run is {str(version)[:20]}, and this memlab reads format {FORMAT} alone",
                          where=str(folder), fix="read it with the memlab that wrote it, or run the arm again")
    try:
        listed = Manifest.model_validate(content).files
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))[:120]
        raise MemlabError(f"it is not as memlab writes it: {place}: {first['msg']}", where=str(folder / MANIFEST),
                          fix=_fix(folder)) from error
    for name, digest in listed.items():
        path = folder / name
        with readable(path):
            if path.parent != folder or file_digest(path) != digest:
                raise MemlabError("it has changed since the run: its content does not match the digest in the manifest",
                                  where=str(path), fix=_fix(folder))
    return content, _object(folder / "metrics.json")


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise MemlabError(f"cannot be read ({error})", where=str(path), fix=_fix(path.parent)) from error


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


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise what polars raises about a file of a run folder as MemlabError; of damaged bytes it may panic."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise MemlabError(f"cannot be read ({' '.join(str(error).split())[:200]})", where=str(path),
                          fix=_fix(path.parent)) from error


def _fix(folder: Path) -> str:
    return f"delete the folder {folder} and run the arm again"
