"""``python -m memlab.store info | verify | compact | prune``: look after a store.

Every command is safe while runs read and fill the store: files are added whole before others are removed, and a
run whose segment vanishes looks for its successor, or computes the rows again. Completions lie in files of lines;
``compact`` leaves those as they are, and ``prune`` takes damaged lines out of files that nobody has written to lately.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import MemlabError, did_you_mean
from memlab.runtime.files import TEMPORARY, is_stale
from memlab.runtime.home import store_root
from memlab.store import completions
from memlab.store.segments import DAMAGED, IDENTITY, listed, load, read, write
from memlab.store.store import KEYS

COMPLETIONS = "completions"
"""The kind that lies in lines."""


@dataclass(frozen=True)
class Entry:
    """One fingerprint of a store."""

    path: Path
    kind: str
    said: dict[str, Any]

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.said.get("name") or f"({IDENTITY} is unreadable)")

    @property
    def segments(self) -> list[Path]:
        """The folder's segments, or files of lines, by name."""
        if self.kind == COMPLETIONS:
            return completions.listed(self.path)
        return [self.path / name for name in listed(self.path)]

    @property
    def written(self) -> float:
        """When a segment was last written, in seconds since the epoch; 0 if there is none."""
        return max((p.stat().st_mtime for p in self.segments), default=0.0)


def entries(root: Path) -> list[Entry]:
    """List a store's fingerprints, by kind, model and folder."""
    found = []
    for kind in (*KEYS, COMPLETIONS):
        for path in sorted(p for p in (root / kind).glob("*") if p.is_dir()):
            try:
                said = json.loads((path / IDENTITY).read_text())
            except (OSError, ValueError):
                said = {}
            found.append(Entry(path, kind, said if isinstance(said, dict) else {}))
    return sorted(found, key=lambda e: (e.kind, e.model, e.path))


def info(root: Path) -> pl.DataFrame:
    """Describe every fingerprint: kind, model, role, rows, segments, bytes, days since the last write, folder."""
    rows = []
    for entry in entries(root):
        paths = entry.segments
        rows.append({
            "kind": entry.kind, "model": entry.model, "role": entry.said.get("role") or "",
            "rows": sum(map(_rows, paths)),
            "segments": len(paths), "bytes": sum(p.stat().st_size for p in paths),
            "days": (time.time() - entry.written) / 86400 if paths else 0.0, "folder": entry.path.name,
        })
    schema = {"kind": pl.String, "model": pl.String, "role": pl.String, "rows": pl.Int64, "segments": pl.Int64,
              "bytes": pl.Int64, "days": pl.Float64, "folder": pl.String}
    return pl.DataFrame(rows, schema=schema)


def _rows(path: Path) -> int:
    if path.suffix == completions.SUFFIX:
        return sum(1 for _ in completions.lines(path))
    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError):  # damaged, or gone meanwhile: ``verify`` tells which
        return 0


def verify(root: Path) -> list[Path]:
    """Read every file and return those with bytes that do not match their digest; changes nothing."""
    damaged = []
    for entry in entries(root):
        for path in entry.segments:
            try:
                bad = completions.damaged(path) > 0 if entry.kind == COMPLETIONS else read(path) is None
            except FileNotFoundError:
                continue
            if bad:
                damaged.append(path)
    return damaged


def compact(root: Path, below_mb: float = 64.0, target_mb: float = 256.0) -> int:
    """Merge segments smaller than ``below_mb`` into ones of about ``target_mb``; return how many were replaced."""
    replaced = 0
    for entry in (e for e in entries(root) if e.kind in KEYS):
        group: list[Path] = []
        size = 0.0
        for path in [*(p for p in entry.segments if p.stat().st_size < below_mb * 1e6), None]:
            if path is None or size >= target_mb * 1e6:
                replaced += _merge(entry, group)
                group, size = [], 0.0
            if path is not None:
                group.append(path)
                size += path.stat().st_size
    return replaced


def _merge(entry: Entry, paths: Sequence[Path]) -> int:
    parts = {path: rows for path in paths if (rows := load(path)) is not None}
    if len(parts) < 2:
        return 0
    # first by name wins, as it does for readers
    merged = pl.concat(list(parts.values())).unique(KEYS[entry.kind], keep="first", maintain_order=True)
    name = write(entry.path, merged.rechunk())
    for path in parts:
        if path.name != name:
            path.unlink(missing_ok=True)
    return len(parts)


def prune(root: Path, model: str | None = None, older: float | None = None) -> list[Path]:
    """Remove stale temporary files, damaged segments and damaged lines; return what was removed.

    With ``model`` (part of a name) or ``older`` (days since the last write), or both, fingerprints that match go too.
    """
    removed = []
    known = entries(root)
    if model is not None and not any(model in e.model for e in known):
        raise MemlabError(f"no model in {root} is called '{model}'", fix=did_you_mean(model, {e.model for e in known}))
    for entry in known:
        old = older is None or time.time() - entry.written > older * 86400
        if (model is not None or older is not None) and (model is None or model in entry.model) and old:
            shutil.rmtree(entry.path)
            removed.append(entry.path)
            continue
        stale = [path for path in entry.path.glob(f".*{TEMPORARY}") if is_stale(path)]
        for path in [*stale, *entry.path.glob(f"*{DAMAGED}")]:
            path.unlink(missing_ok=True)
            removed.append(path)
    for path in verify(root):
        if path.suffix != completions.SUFFIX:
            path.unlink(missing_ok=True)
        elif is_stale(path):  # its writer is dead
            completions.mend(path)
        else:
            continue
        removed.append(path)
    return removed


def _show(root: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"store {root}")
    frame = info(root)
    for column in frame.columns:
        table.add_column(column, justify="right" if frame.schema[column].is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows(named=True):
        shown = {**row, "rows": f"{row['rows']:,}", "bytes": f"{row['bytes']:,}", "days": f"{row['days']:.1f}"}
        table.add_row(*(str(v) for v in shown.values()))
    Console().print(table)
    print(f"{frame.height} fingerprints, {frame['rows'].sum():,} rows, {frame['bytes'].sum():,} bytes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status (1 if ``verify`` finds damage, 2 for a mistake in the command)."""
    given = [a if not a.startswith("store=") else "--" + a for a in (sys.argv[1:] if arguments is None else arguments)]
    parser = argparse.ArgumentParser(prog="python -m memlab.store", description="Look after a store of model results.")
    parser.add_argument("command", choices=["info", "verify", "compact", "prune"],
                        help="info: what is there; verify: check every segment's digest; compact: merge small "
                             "segments; prune: remove stale temporary files and damaged segments")
    parser.add_argument("--store", type=Path, default=None, help="folder (also store=DIR); default $MEMLAB_HOME/store")
    parser.add_argument("--model", help="prune: also remove the fingerprints of models with this in their name")
    parser.add_argument("--older", type=float, help="prune: also remove fingerprints not written to for so many days")
    options = parser.parse_args(given)
    root = (options.store or store_root()).expanduser()
    if not root.is_dir():
        print(f"there is no store at {root} yet", file=sys.stderr)
        return 0 if options.store is None else 2
    try:
        if options.command == "info":
            _show(root)
        elif options.command == "compact":
            print(f"{compact(root)} segments merged into larger ones")
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
