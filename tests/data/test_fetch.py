"""Downloading from a real local server: whole, resumed, wrong, missing, broken off, unreachable."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memlab.data import benchmarks
from memlab.data.fetch import checksum, fetch
from memlab.errors import MemlabError

BODY = bytes(range(256)) * 4000  # about 1 MB
FILE = "longmemeval_m_cleaned.json"


class Server(ThreadingHTTPServer):
    """Serves one body, and notes what it was asked for."""

    body, ranges, tag, cut, status = BODY, True, '"v1"', 0, 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/files"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        body, start = self.server.body, 0
        if self.server.status:
            self.send_error(self.server.status)
            return
        fresh = self.headers.get("If-Range") in (None, self.server.tag)
        if wanted and self.server.ranges and fresh:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body) - start))
        if self.server.tag:
            self.send_header("ETag", self.server.tag)
        self.end_headers()
        self.wfile.write(body[start:self.server.cut or None])

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> str:
    """A benchmark whose published checksum is that of the body."""
    entry = benchmarks.OfficialFile("made", "made.json", "http://unused.invalid", len(BODY),
                                  hashlib.sha256(BODY).hexdigest(), "MIT")
    monkeypatch.setitem(benchmarks.FILES, "made", entry)
    return "made"


def left(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_whole_download_is_verified_and_leaves_nothing_else(server: Server, known: str, tmp_path: Path) -> None:
    path = fetch(known, base=server.base, folder=tmp_path / "new", quiet=True)
    assert path.read_bytes() == BODY
    assert left(path.parent) == {"made.json"}
    assert server.asked == [("/files/made.json", None)]


def test_a_file_that_is_there_is_verified_and_not_fetched_again(server: Server, known: str, tmp_path: Path) -> None:
    fetch(known, base=server.base, folder=tmp_path, quiet=True)
    fetch(known, base=server.base, folder=tmp_path, quiet=True)
    assert len(server.asked) == 1
    (tmp_path / "made.json").write_bytes(b"changed")
    with pytest.raises(MemlabError, match="the checksum is"):
        fetch(known, base=server.base, folder=tmp_path, quiet=True)
    assert (tmp_path / "made.json").read_bytes() == b"changed"  # the user's file is never removed


def test_the_default_folder_and_the_address_in_the_environment(
    server: Server, known: str, memlab_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMLAB_DATA_BASE", server.base + "/")
    assert fetch(known, quiet=True) == memlab_home / "data" / "made.json"


def test_a_broken_download_is_kept_and_resumed(server: Server, known: str, tmp_path: Path) -> None:
    server.cut = 300_000
    with pytest.raises(MemlabError, match=r"broke off.*run the same command again.*made\.json"):
        fetch(known, base=server.base, folder=tmp_path, quiet=True)
    had = (tmp_path / "made.json.part").stat().st_size
    assert 0 < had <= 300_000
    assert not (tmp_path / "made.json").exists()
    server.cut = 0
    path = fetch(known, base=server.base, folder=tmp_path, quiet=True)
    assert path.read_bytes() == BODY
    assert server.asked[-1] == ("/files/made.json", f"bytes={had}-")
    assert left(tmp_path) == {"made.json"}


def test_a_server_without_ranges_makes_it_start_over(server: Server, known: str, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "made.json.part").write_bytes(b"x" * 1000)
    assert fetch(known, base=server.base, folder=tmp_path, quiet=True).read_bytes() == BODY


def test_a_file_that_changed_in_between_is_not_patched_together(server: Server, known: str, tmp_path: Path) -> None:
    (tmp_path / "made.json.part").write_bytes(b"x" * 1000)
    (tmp_path / "made.json.part.etag").write_text('"v0"')
    assert fetch(known, base=server.base, folder=tmp_path, quiet=True).read_bytes() == BODY
    assert server.asked == [("/files/made.json", "bytes=1000-")]


def test_a_complete_part_is_only_verified(server: Server, known: str, tmp_path: Path) -> None:
    (tmp_path / "made.json.part").write_bytes(BODY)
    assert fetch(known, base=server.base, folder=tmp_path, quiet=True).read_bytes() == BODY


def test_a_part_that_is_too_long_is_removed(server: Server, known: str, tmp_path: Path) -> None:
    (tmp_path / "made.json.part").write_bytes(BODY + b"x")
    with pytest.raises(MemlabError, match="it was removed"):
        fetch(known, base=server.base, folder=tmp_path, quiet=True)
    assert fetch(known, base=server.base, folder=tmp_path, quiet=True).read_bytes() == BODY


def test_a_wrong_checksum_is_named_and_a_retry_starts_over(server: Server, known: str, tmp_path: Path) -> None:
    server.body = b"y" + BODY[1:]
    with pytest.raises(MemlabError, match="expected " + hashlib.sha256(BODY).hexdigest()):
        fetch(known, base=server.base, folder=tmp_path, quiet=True)
    assert not any(name in left(tmp_path) for name in ("made.json", "made.json.part"))
    server.body, server.tag = BODY, '"v2"'
    assert fetch(known, base=server.base, folder=tmp_path, quiet=True).read_bytes() == BODY


def test_an_unknown_checksum_is_recorded_at_first_and_verified_afterwards(server: Server, tmp_path: Path) -> None:
    path = fetch("longmemeval_m", base=server.base, folder=tmp_path, quiet=True)
    digest = hashlib.sha256(BODY).hexdigest()
    assert (tmp_path / f"{FILE}.sha256").read_text() == f"{digest}  {FILE}\n"
    assert checksum("longmemeval_m", path) == digest
    path.unlink()
    server.body = BODY + b"more"
    with pytest.raises(MemlabError, match=f"expected {digest}"):
        fetch("longmemeval_m", base=server.base, folder=tmp_path, quiet=True)


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusal_names_the_status_and_the_place_for_the_file(server: Server, known: str, tmp_path: Path,
                                                               status: int) -> None:
    server.status = status
    with pytest.raises(MemlabError, match=rf"answered {status} .*by other means and put it at .*made\.json"):
        fetch(known, base=server.base, folder=tmp_path, quiet=True)
    assert left(tmp_path) == set()


def test_no_network_says_where_to_put_the_file(known: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(MemlabError, match=rf"no connection.*put it at {tmp_path}/made\.json"):
        fetch(known, base=f"http://127.0.0.1:{port}", folder=tmp_path, quiet=True)
    with pytest.raises(MemlabError, match="cannot be fetched|no connection|broke off"):
        fetch(known, base="nonsense", folder=tmp_path, quiet=True)


def test_a_folder_that_cannot_be_written(server: Server, known: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MemlabError, match="cannot be written"):
        fetch(known, base=server.base, folder=tmp_path / "file" / "below", quiet=True)


def test_an_unknown_name() -> None:
    with pytest.raises(MemlabError, match="did you mean 'longmemeval_s'"):
        fetch("longmemeval-s")
