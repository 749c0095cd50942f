"""Downloading from a real local server: whole, resumed, wrong, missing, broken off, unreachable."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memlab.data import benchmarks
from memlab.data.__main__ import main
from memlab.data.beam import SIZES, Beam
from memlab.data.fetch import checksum, fetch
from memlab.data.realtalk import RealTalk
from memlab.errors import MemlabError
from tests.faults.limits import largest_file

BODY = bytes(range(256)) * 4000  # about 1 MB
FILE = "longmemeval_m_cleaned.json"


class Server(ThreadingHTTPServer):
    """Serves one body, and notes what it was asked for."""

    body, ranges, tag, cut, status = BODY, True, '"v1"', 0, 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: dict[str, bytes] = {}  # path -> body; if there are any, other paths do not exist
        self.asked: list[tuple[str, str | None]] = []

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/files"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        body, start = self.server.bodies.get(self.path.removeprefix("/files/"), self.server.body), 0
        if self.server.status:
            self.send_error(self.server.status)
            return
        if self.server.bodies and self.path.removeprefix("/files/") not in self.server.bodies:
            self.send_error(404)
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


def test_a_download_is_verified_and_not_fetched_again(server: Server, known: str, memlab_home: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLAB_DATA_BASE", server.base + "/")
    path = fetch(known, quiet=True)
    assert (path, path.read_bytes()) == (memlab_home / "data" / "made.json", BODY)
    assert left(path.parent) == {"made.json"}
    fetch(known, quiet=True)
    assert server.asked == [("/files/made.json", None)]
    path.write_bytes(b"changed")
    with pytest.raises(MemlabError, match="the checksum is"):
        fetch(known, quiet=True)
    assert path.read_bytes() == b"changed"  # the user's file is never removed


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


@pytest.mark.parametrize(("part", "tag", "ranges"), [
    (b"x" * 1000, "", False), (b"x" * 1000, '"v0"', True), (BODY, "", True), (BODY + b"x", "", True)],
    ids=["no ranges", "changed in between", "complete", "too long"])
def test_an_unfinished_download_is_never_patched_together(server: Server, known: str, tmp_path: Path, part: bytes,
                                                          tag: str, ranges: bool) -> None:
    server.ranges = ranges
    (tmp_path / "made.json.part").write_bytes(part)
    if tag:
        (tmp_path / "made.json.part.etag").write_text(tag)
    assert fetch(known, base=server.base, folder=tmp_path, quiet=True).read_bytes() == BODY
    assert left(tmp_path) == {"made.json"}


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
    assert checksum(benchmarks.FILES["longmemeval_m"], path) == digest
    path.unlink()
    server.body = BODY + b"more"
    with pytest.raises(MemlabError, match=f"expected {digest}"):
        fetch("longmemeval_m", base=server.base, folder=tmp_path, quiet=True)


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
            and path.suffix != ".sha256"}


def test_ten_chats_are_fetched_recorded_and_verified(server: Server, tmp_path: Path) -> None:
    server.bodies = {f"Chat_{chat}.json": chat.encode() for chat in benchmarks.CHATS}
    home = fetch("realtalk", base=server.base, folder=tmp_path, quiet=True)
    assert home == tmp_path / "realtalk"
    assert files_below(home) == server.bodies
    assert [path.name for path in RealTalk(path=home)._files()] == [f"Chat_{chat}.json" for chat in benchmarks.CHATS]
    server.asked.clear()
    assert fetch("realtalk", base=server.base, folder=tmp_path, quiet=True) == home
    assert not server.asked  # all is there and as recorded
    first = home / "Chat_1_Emi_Elise.json"
    first.write_text("changed")
    with pytest.raises(MemlabError, match="expected " + hashlib.sha256(b"1_Emi_Elise").hexdigest()):
        fetch("realtalk", base=server.base, folder=tmp_path, quiet=True)
    first.unlink()
    fetch("realtalk", base=server.base, folder=tmp_path, quiet=True)
    assert [path for path, _ in server.asked] == ["/files/Chat_1_Emi_Elise.json"]
    del server.bodies["Chat_2_Kevin_Elise.json"]
    (home / "Chat_2_Kevin_Elise.json").unlink()
    with pytest.raises(MemlabError, match=r"answered 404 .*put it at .*realtalk/Chat_2_Kevin_Elise\.json"):
        fetch("realtalk", base=server.base, folder=tmp_path, quiet=True)


def test_a_folder_with_known_checksums_refuses_other_files(server: Server, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    server.bodies = {"a.json": b"first", "b.json": b"changed at the source"}
    digests = {"a.json": hashlib.sha256(b"first").hexdigest(), "b.json": hashlib.sha256(b"second").hexdigest()}
    monkeypatch.setitem(benchmarks.FOLDERS, "made", benchmarks.OfficialFolder(
        "made", "made", "http://unused.invalid", (("a.json",), ("b.json",)), "MIT", digests))
    with pytest.raises(MemlabError, match=rf"made/b\.json: the checksum is .*expected {digests['b.json']}"):
        fetch("made", base=server.base, folder=tmp_path, quiet=True)
    assert "b.json" not in left(tmp_path / "made")
    assert not list(tmp_path.rglob("*.sha256"))  # nothing is recorded in place of what is known
    server.bodies["b.json"] = b"second"
    assert files_below(fetch("made", base=server.base, folder=tmp_path, quiet=True)) == server.bodies
    (tmp_path / "made" / "a.json").write_bytes(b"changed here")
    with pytest.raises(MemlabError, match=f"expected {digests['a.json']}"):
        fetch("made", base=server.base, folder=tmp_path, quiet=True)


def test_a_chat_of_beam_is_the_shortened_file_where_there_is_one(server: Server, tmp_path: Path) -> None:
    for number in range(1, 11):
        place = f"chats/10M/{number}"
        server.bodies |= {f"{place}/chat.json": b"whole", f"{place}/probing_questions/probing_questions.json": b"{}"}
    server.bodies["chats/10M/3/chat_trunecated.json"] = b"short"
    home = fetch("beam_10m", base=server.base, folder=tmp_path, quiet=True)
    wanted = {path: body for path, body in server.bodies.items() if path != "chats/10M/3/chat.json"}
    assert files_below(home) == wanted
    assert len(Beam(size="10M", path=home)._folders()) == 10
    server.asked.clear()
    fetch("beam_10m", base=server.base, folder=tmp_path, quiet=True)
    assert not server.asked
    server.status = 500  # another fault than "no such file" is told
    (home / "chats/10M/1/chat.json").unlink()
    with pytest.raises(MemlabError, match=r"answered 500 .*chat_trunecated"):
        fetch("beam_10m", base=server.base, folder=tmp_path, quiet=True)


def test_the_sizes_of_beam_are_those_that_are_read() -> None:
    assert tuple(benchmarks.BEAM_CHATS) == SIZES
    assert {f"beam_{size.lower()}" for size in SIZES} < set(benchmarks.FOLDERS)
    for size, chats in benchmarks.BEAM_CHATS.items():
        assert len(benchmarks.FOLDERS[f"beam_{size.lower()}"].files) == 2 * chats


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
    with pytest.raises(MemlabError, match="/file: a file is there, where a folder is needed"):
        fetch(known, base=server.base, folder=tmp_path / "file" / "below", quiet=True)


@pytest.mark.parametrize("unpublished", [False, True])
def test_a_full_disk_names_the_file_and_the_same_line_goes_on(
        server: Server, known: str, memlab_home: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str], unpublished: bool) -> None:
    if unpublished:  # the checksum is recorded in a file beside it
        monkeypatch.setitem(benchmarks.FILES, known, replace(benchmarks.FILES[known], sha256=None))
    file = memlab_home / "data" / "made.json"
    with largest_file(100_000):
        assert main(["fetch", known, "--base", server.base]) == 1
    assert f"{file}: cannot be written: the limit on file sizes is reached. Fix: " in capsys.readouterr().err
    assert left(file.parent) == {"made.json.part", "made.json.part.etag"}
    assert main(["fetch", known, "--base", server.base]) == 0
    assert server.asked[-1][1] == "bytes=100000-"
    assert file.read_bytes() == BODY
    assert left(file.parent) == {"made.json"} | ({"made.json.sha256"} if unpublished else set())


def test_an_unknown_name() -> None:
    with pytest.raises(MemlabError, match="did you mean 'longmemeval_s'"):
        fetch("longmemeval-s")
