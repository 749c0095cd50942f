"""Downloads of official benchmark files, resumed after interruptions and verified by SHA-256.

A download is written to ``NAME.part`` and renamed when its checksum is right. If nobody has published a checksum, that
of the first download is written to ``NAME.sha256`` and verified from then on. A benchmark of several files is
downloaded file by file, with one display of their number; what is there already is verified alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import httpx
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from memlab.data import benchmarks, readers
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write, disk_faults, make_folder

BASE = "MEMLAB_DATA_BASE"
"""Environment variable with the address of a mirror."""

_TIMEOUT = httpx.Timeout(30.0)


def fetch(name: str, *, base: str | None = None, folder: Path | None = None, quiet: bool = False) -> Path:
    """Download a benchmark's files as ``download`` does; raise MemlabError for an unknown name too."""
    return download(benchmarks.official(name), base=base, folder=folder, quiet=quiet)


def download(entry: benchmarks.OfficialFile | benchmarks.OfficialFolder, *, base: str | None = None,
             folder: Path | None = None, quiet: bool = False) -> Path:
    """Download files unless they are there, verify them, and return the path of the file or the folder.

    ``base`` is the address of the folder that holds them (default: ``$MEMLAB_DATA_BASE``, then the official address).
    Raises MemlabError if a checksum is wrong, or, with the place to put a copy by hand, if a download fails.
    """
    home = folder or benchmarks.data_folder()
    source = (base or os.environ.get(BASE) or entry.base).rstrip("/")
    if isinstance(entry, benchmarks.OfficialFile):
        return _fetch_file(entry, source, home / entry.file, quiet)
    with Progress(disable=quiet) as progress:
        for paths in progress.track(entry.files, description=f"{entry.name}, {len(entry.files)} files"):
            _fetch_first(entry, source, paths, home / entry.folder)
    return home / entry.folder


def _fetch_first(entry: benchmarks.OfficialFolder, source: str, paths: tuple[str, ...], home: Path) -> None:
    """Fetch the first of these paths that the source has; if one of them is here, verify it."""
    here = [path for path in paths if (home / path).exists()]
    *preferred, last = here[:1] or paths
    for path in preferred:
        try:
            _fetch_file(entry.file(path), source, home / path, quiet=True)
            return
        except MemlabError as fault:
            refused = fault.__cause__
            if not (isinstance(refused, httpx.HTTPStatusError) and refused.response.status_code == 404):
                raise
    _fetch_file(entry.file(last), source, home / last, quiet=True)


def _fetch_file(entry: benchmarks.OfficialFile, source: str, target: Path, quiet: bool) -> Path:
    """Download one file unless it is there, verify it and return its path."""
    if target.exists():
        _verify(entry, target, target)
        return target
    url = f"{source}/{entry.file}"
    part, by_hand = target.with_name(target.name + ".part"), _by_hand(entry, target)
    with disk_faults(target, other="choose another place with MEMLAB_HOME=DIR"):
        try:
            make_folder(target.parent)
            _download(url, part, quiet)
        except httpx.ConnectError as fault:
            raise MemlabError(f"there is no connection ({fault})", where=url, fix=by_hand) from fault
        except httpx.TransportError as fault:
            raise MemlabError(f"the download broke off ({fault or type(fault).__name__})", where=url,
                              fix=f"run the same command again to continue, or {by_hand}") from fault
        except httpx.HTTPStatusError as fault:
            raise MemlabError(f"the server answered {fault.response.status_code} {fault.response.reason_phrase}",
                              where=url, fix=by_hand) from fault
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise MemlabError(f"cannot be fetched ({fault})", where=url, fix=by_hand) from fault
        _etag(part).unlink(missing_ok=True)
        _verify(entry, part, target)
        part.replace(target)
    return target


def checksum(entry: benchmarks.OfficialFile, target: Path) -> str | None:
    """Return the checksum that a file must have: the published one, else the one recorded at first download."""
    sidecar = target.with_name(target.name + ".sha256")
    return entry.sha256 or (sidecar.read_text().split()[0] if sidecar.is_file() else None)


def _verify(entry: benchmarks.OfficialFile, file: Path, target: Path) -> None:
    """Compare a file with its checksum, or record it; a wrong ``.part`` is removed, so that a retry starts over."""
    expected, actual = checksum(entry, target), readers.sha256(file)
    if expected is None:
        atomic_write(target.with_name(target.name + ".sha256"), f"{actual}  {target.name}\n")
    elif actual != expected:
        if file != target:
            file.unlink()
        raise MemlabError(f"the checksum is {actual}, expected {expected}", where=str(target),
                          fix="remove the file if it is there and fetch it again; if that does not help, the source "
                              "has changed or is not the official one")


def _by_hand(entry: benchmarks.OfficialFile, target: Path) -> str:
    check = f" (SHA-256 {entry.sha256})" if entry.sha256 else ""
    return f"download {entry.base}/{entry.file}{check} by other means and put it at {target}"


def _etag(part: Path) -> Path:
    return part.with_name(part.name + ".etag")


def _download(url: str, part: Path, quiet: bool) -> None:
    """Write the body at ``url`` to ``part``, after the bytes that it already has if the server can resume."""
    start = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}  # a compressed body could not be resumed
    if start:
        headers["Range"] = f"bytes={start}-"
        if _etag(part).is_file():  # start over if the file has changed in the meantime
            headers["If-Range"] = _etag(part).read_text()
    with (
        httpx.Client(follow_redirects=True, timeout=_TIMEOUT) as client,
        client.stream("GET", url, headers=headers) as reply,
    ):
        if reply.status_code == 416 and start:
            if reply.headers.get("Content-Range") != f"bytes */{start}":  # else the part is complete
                part.unlink()
                _download(url, part, quiet)
            return
        reply.raise_for_status()
        resumed = reply.status_code == 206
        tag = reply.headers.get("ETag", "")
        if tag and not tag.startswith("W/"):  # If-Range allows strong tags only
            _etag(part).write_text(tag)
        else:
            _etag(part).unlink(missing_ok=True)
        _write(reply, part, start if resumed else 0, quiet)


def _write(reply: httpx.Response, part: Path, start: int, quiet: bool) -> None:
    length = int(reply.headers.get("Content-Length", 0))
    total = start + length if length else None
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn())
    with Progress(*columns, disable=quiet) as progress, part.open("ab" if start else "wb") as out:
        task = progress.add_task(part.name.removesuffix(".part"), total=total, completed=start)
        for block in reply.iter_bytes(1 << 18):
            out.write(block)
            progress.advance(task, len(block))
