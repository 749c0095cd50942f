"""Maintenance of a store: ``memlab store info | verify | prune``.

Each command is safe while runs read and fill the store: files are added whole before others are removed, and what a
run has mapped stays. Completions are files of lines:
``prune`` removes damaged lines from files without a write for an hour.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from memlab.store import completions, segment
from memlab.store.segment import DAMAGED, IDENTITY, store_errors
from memlab.store.store import KINDS
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.files import TEMPORARY, is_stale, open_plain
from memlab.support.help_text import Parser
from memlab.support.paths import expand, path_argument, store_root
from memlab.support.terminal import as_flags, print
from memlab.support.text.display import plural

MOST_OF_IDENTITY = 1 << 20
"""Bytes of the description of a model that are read."""


@dataclass(frozen=True)
class Fingerprint:
    """One fingerprint of a store; ``identity`` describes the model, as its folder states it."""

    path: Path
    kind: str
    identity: dict[str, Any]

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.identity.get("name") or f"({IDENTITY} is unreadable)")

    @property
    def segments(self) -> list[Path]:
        """The folder's segments, or files of lines, by name."""
        if self.kind == "completions":  # files of lines
            return completions.files(self.path)
        return [self.path / name for name in segment.names(self.path)]

    @property
    def days(self) -> float:
        """Days since the last write; infinity if nothing is stored."""
        return (time.time() - max((p.stat().st_mtime for p in self.segments), default=-math.inf)) / 86400


def fingerprints(root: Path) -> list[Fingerprint]:
    """List a store's fingerprints, by kind, model and folder."""
    listing = []
    for kind in KINDS:
        for path in (p for p in (root / kind).glob("*") if p.is_dir()):
            try:
                with open_plain(path / IDENTITY) as file:
                    identity = json.loads(file.read(MOST_OF_IDENTITY))
            except (OSError, ValueError):
                identity = {}
            listing.append(Fingerprint(path, kind, identity if isinstance(identity, dict) else {}))
    return sorted(listing, key=lambda f: (f.kind, f.model, f.path))


def info(root: Path) -> pl.DataFrame:
    """Describe each fingerprint: kind, model, role, rows, segments, bytes, days since the last write, folder."""
    rows = [(f.kind, f.model, f.identity.get("role") or "", sum(map(_rows, paths)), len(paths),
             sum(p.stat().st_size for p in paths), f.days if paths else 0.0, f.path.name)
            for f in fingerprints(root) for paths in [f.segments]]
    schema = {"kind": pl.String, "model": pl.String, "role": pl.String, "rows": pl.Int64, "segments": pl.Int64,
              "bytes": pl.Int64, "days": pl.Float64, "folder": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _rows(path: Path) -> int:
    if path.suffix == completions.SUFFIX:
        return sum(1 for _ in completions.lines(path)) if path.is_file() else 0
    return segment.count(path)


def verify(root: Path) -> list[Path]:
    """Read every file and return those with bytes that do not match their digest; changes nothing."""
    damaged = []
    for path in (path for fingerprint in fingerprints(root) for path in fingerprint.segments):
        with suppress(FileNotFoundError):
            if not path.is_file() or _is_damaged(path):
                damaged.append(path)
    return damaged


def _is_damaged(path: Path) -> bool:
    if path.suffix == completions.SUFFIX:
        return bool(completions.count_damaged(path))
    return segment.read(path) is None


def prune(root: Path, model: str | None = None, older: float | None = None) -> list[Path]:
    """Remove stale temporary files, damaged segments and damaged lines; return what was removed.

    With ``model`` (part of a name) or ``older`` (days since the last write), or both, fingerprints that match go too.
    """
    if model is not None and not model.strip():
        raise MemlabError("a model's name is empty, which would match every model", where="--model",
                          fix="give part of a name, or leave --model out; an unset variable of the shell is empty")
    models = {fingerprint.model for fingerprint in fingerprints(root)}
    if model is not None and not any(model in name for name in models):
        raise MemlabError(f"no model in {root} is called '{model}'", fix=did_you_mean(model, models))
    with store_errors(root):
        return [*_remove(root, model, older), *_remove_damaged(root)]


def _remove(root: Path, model: str | None, older: float | None) -> Iterator[Path]:
    """Remove the fingerprints that match, and what killed processes left in the others; yield what was removed."""
    for fingerprint in fingerprints(root):
        folder = fingerprint.path
        old = older is None or fingerprint.days > older
        if (model is not None or older is not None) and (model is None or model in fingerprint.model) and old:
            shutil.rmtree(folder)
            yield folder
            continue
        stale = [path for path in folder.glob(f".*{TEMPORARY}") if is_stale(path)]
        for path in [*stale, *folder.glob(f"*{DAMAGED}")]:
            path.unlink(missing_ok=True)
            yield path


def _remove_damaged(root: Path) -> Iterator[Path]:
    """Remove damaged segments, and damaged lines of replies whose writer is dead; yield the files."""
    for path in verify(root):
        if path.suffix != completions.SUFFIX:
            path.unlink(missing_ok=True)
        elif is_stale(path):
            completions.remove_damaged(path)
        else:
            continue
        yield path


def _show(root: Path) -> None:
    from rich.table import Table

    from memlab.support.console import Console

    table = Table(title=f"store {root}")
    frame = info(root)
    for column in frame.columns:
        table.add_column(column, justify="right" if frame.schema[column].is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows(named=True):
        shown = {**row, "rows": f"{row['rows']:,}", "bytes": f"{row['bytes']:,}", "days": f"{row['days']:.1f}"}
        table.add_row(*(str(v) for v in shown.values()))
    Console().print(table)
    print(f"{plural(frame.height, 'fingerprint')}, {plural(int(frame['rows'].sum()), 'row')}, "
          f"{frame['bytes'].sum():,} bytes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status (1 if ``verify`` finds damage, 2 for a mistake in the command)."""
    given = as_flags(sys.argv[1:] if arguments is None else arguments, {"store": "--store"})
    parser = Parser(prog="memlab store", description="Maintain a store of model results.")
    parser.add_argument("command", choices=["info", "verify", "prune"],
                        help="info: what is stored; verify: check the digest of every segment; prune: remove stale "
                             "temporary files and damaged segments")
    parser.add_argument("--store", type=path_argument, help="folder (also store=DIR); default $MEMLAB_HOME/store")
    parser.add_argument("--model", metavar="NAME", help="prune: also remove models with NAME in their name")
    parser.add_argument("--older", type=float, metavar="DAYS", help="prune: also remove what has had no write for DAYS")
    options = parser.parse_args(given)
    root = expand(options.store or store_root())
    if not root.is_dir():
        print(f"there is no store at {root} yet", file=sys.stderr)
        return 0 if options.store is None else 2
    try:
        if options.command == "info":
            _show(root)
        elif options.command == "prune":
            removed = prune(root, options.model, options.older)
            print("\n".join([*(f"removed {path}" for path in removed), f"{len(removed)} removed"]))
        else:
            damaged = verify(root)
            print("\n".join(f"damaged: {path}" for path in damaged) or "every segment is whole")
            return 1 if damaged else 0
    except MemlabError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
