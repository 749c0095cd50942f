"""Downloads: whole, resumed, wrong, missing, broken off, unreachable."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from memlab.commands.data import main
from memlab.data import benchmarks
from memlab.data import fetch as module
from memlab.data.beam import Beam
from memlab.data.fetch import checksum, fetch
from memlab.data.realmem import RealMem
from memlab.data.realtalk import RealTalk
from memlab.support.errors import MemlabError
from tests.faults.limits import largest_file

BODY = bytes(range(256)) * 4000  # about 1 MB
BASE = "http://server.invalid/files"


class Body(httpx.SyncByteStream):
    """A body in pieces that breaks off after some bytes."""

    def __init__(self, content: bytes, most: int) -> None:
        self.content, self.most = content, most

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, min(len(self.content), self.most), 50_000):
            yield self.content[at:at + 50_000]
        if self.most < len(self.content):
            raise httpx.RemoteProtocolError("peer closed connection")


class Server(httpx.MockTransport):
    """Serves one body, or several by their path, and notes what it was asked for."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.bodies: dict[str, bytes] = {}  # path -> body; if there are any, other paths do not exist
        self.body, self.ranges, self.most, self.status = BODY, True, 1 << 30, 0
        self.asked: list[tuple[str, str | None]] = []

    def reply(self, request: httpx.Request) -> httpx.Response:
        path, wanted = request.url.path.removeprefix("/files/"), request.headers.get("Range")
        self.asked.append((path, wanted))
        if self.status or self.bodies and path not in self.bodies:
            return httpx.Response(self.status or 404)
        body, status, headers = self.bodies.get(path, self.body), 200, {"ETag": '"v1"'}
        if wanted and self.ranges and request.headers.get("If-Range") in (None, '"v1"'):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                return httpx.Response(416, headers={"Content-Range": f"bytes */{len(body)}"})
            body, status = body[start:], 206
        return httpx.Response(status, headers=headers | {"Content-Length": str(len(body))},
                              stream=Body(body, self.most))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    running = Server()
    monkeypatch.setattr(module.httpx, "Client", partial(httpx.Client, transport=running))
    return running


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> str:
    """A benchmark whose published checksum is that of the body."""
    entry = benchmarks.OfficialFile("made", "made.json", "http://unused.invalid", len(BODY),
                                    hashlib.sha256(BODY).hexdigest(), "MIT")
    monkeypatch.setitem(benchmarks.FILES, "made", entry)
    return "made"


def get(name: str, folder: Path) -> Path:
    return fetch(name, base=BASE, folder=folder, quiet=True)


def left(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
            and path.suffix != ".sha256"}


def test_a_download_is_verified_and_not_fetched_again(server: Server, known: str, memlab_home: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLAB_DATA_BASE", BASE + "/")
    path = fetch(known, quiet=True)
    assert (path, path.read_bytes()) == (memlab_home / "data" / "made.json", BODY)
    assert left(path.parent) == {"made.json"}
    fetch(known, quiet=True)
    assert server.asked == [("made.json", None)]
    path.write_bytes(b"changed")
    with pytest.raises(MemlabError, match="the checksum is"):
        fetch(known, quiet=True)
    assert path.read_bytes() == b"changed"  # the user's file is never removed


def test_a_broken_download_is_kept_and_resumed(server: Server, known: str, tmp_path: Path) -> None:
    server.most = 300_000
    with pytest.raises(MemlabError, match=r"broke off.*run the same command again.*made\.json"):
        get(known, tmp_path)
    assert left(tmp_path) == {"made.json.part", "made.json.part.etag"}
    had = (tmp_path / "made.json.part").stat().st_size
    assert 0 < had <= 300_000
    server.most = 1 << 30
    assert get(known, tmp_path).read_bytes() == BODY
    assert server.asked[-1] == ("made.json", f"bytes={had}-")
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
    assert get(known, tmp_path).read_bytes() == BODY
    assert left(tmp_path) == {"made.json"}


def test_a_wrong_checksum_is_named_and_a_retry_starts_over(server: Server, known: str, tmp_path: Path) -> None:
    server.body = b"y" + BODY[1:]
    with pytest.raises(MemlabError, match="expected " + hashlib.sha256(BODY).hexdigest()):
        get(known, tmp_path)
    assert not any(name in left(tmp_path) for name in ("made.json", "made.json.part"))
    server.body = BODY
    assert get(known, tmp_path).read_bytes() == BODY


def test_an_unknown_checksum_is_recorded_at_first_and_verified_afterwards(server: Server, tmp_path: Path) -> None:
    path, digest = get("longmemeval_m", tmp_path), hashlib.sha256(BODY).hexdigest()
    assert path.with_name(f"{path.name}.sha256").read_text() == f"{digest}  {path.name}\n"
    assert checksum(benchmarks.FILES["longmemeval_m"], path) == digest
    path.unlink()
    server.body = BODY + b"more"
    with pytest.raises(MemlabError, match=f"expected {digest}"):
        get("longmemeval_m", tmp_path)


def test_ten_chats_are_fetched_recorded_and_verified(server: Server, tmp_path: Path) -> None:
    server.bodies = {f"Chat_{chat}.json": chat.encode() for chat in benchmarks.CHATS}
    home = get("realtalk", tmp_path)
    assert (home, files_below(home)) == (tmp_path / "realtalk", server.bodies)
    assert [path.name for path in RealTalk(path=home)._files()] == [f"Chat_{chat}.json" for chat in benchmarks.CHATS]
    server.asked.clear()
    assert get("realtalk", tmp_path) == home
    assert not server.asked  # all is there and as recorded
    first = home / "Chat_1_Emi_Elise.json"
    first.write_text("changed")
    with pytest.raises(MemlabError, match="expected " + hashlib.sha256(b"1_Emi_Elise").hexdigest()):
        get("realtalk", tmp_path)
    first.unlink()
    del server.bodies[first.name]
    with pytest.raises(MemlabError, match=r"answered 404 .*put it at .*realtalk/Chat_1_Emi_Elise\.json"):
        get("realtalk", tmp_path)


def test_a_folder_with_known_checksums_refuses_other_files(server: Server, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    server.bodies = {"a.json": b"first", "b.json": b"changed at the source"}
    digests = {"a.json": hashlib.sha256(b"first").hexdigest(), "b.json": hashlib.sha256(b"second").hexdigest()}
    monkeypatch.setitem(benchmarks.FOLDERS, "made", benchmarks.OfficialFolder(
        "made", "made", "http://unused.invalid", (("a.json",), ("b.json",)), "MIT", digests))
    with pytest.raises(MemlabError, match=rf"made/b\.json: the checksum is .*expected {digests['b.json']}"):
        get("made", tmp_path)
    assert left(tmp_path / "made") == {"a.json"}  # nothing is recorded in place of what is known


def test_ten_people_are_fetched_and_those_with_a_known_checksum_are_verified(
        server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = benchmarks.FOLDERS["realmem"]
    server.bodies = {name: name.encode() for (name,) in entry.files}
    assert (len(server.bodies), set(entry.sha256) < set(server.bodies)) == (10, True)
    with pytest.raises(MemlabError, match=rf"Adeleke.*expected {entry.sha256['Adeleke_Okonjo_dialogues_256k.json']}"):
        get("realmem", tmp_path)
    monkeypatch.setitem(benchmarks.FOLDERS, "realmem", replace(
        entry, sha256={name: hashlib.sha256(server.bodies[name]).hexdigest() for name in entry.sha256}))
    assert files_below(home := get("realmem", tmp_path)) == server.bodies
    assert sum(path.suffix == ".sha256" for path in home.iterdir()) == 10 - len(entry.sha256)  # the others are recorded
    assert [path.name for path in RealMem(path=home)._files()] == sorted(server.bodies)


def test_a_chat_of_beam_is_the_shortened_file_where_there_is_one(server: Server, tmp_path: Path) -> None:
    for number in range(1, 11):
        place = f"chats/10M/{number}"
        server.bodies |= {f"{place}/chat.json": b"whole", f"{place}/probing_questions/probing_questions.json": b"{}"}
    server.bodies["chats/10M/3/chat_trunecated.json"] = b"short"
    home = get("beam_10m", tmp_path)
    assert files_below(home) == {path: body for path, body in server.bodies.items() if path != "chats/10M/3/chat.json"}
    assert len(Beam(size="10M", path=home)._folders()) == 10
    server.status = 500  # another fault than "no such file" is told
    (home / "chats/10M/1/chat.json").unlink()
    with pytest.raises(MemlabError, match=r"answered 500 .*chat_trunecated"):
        get("beam_10m", tmp_path)


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusal_names_the_status_and_the_place_for_the_file(server: Server, known: str, tmp_path: Path,
                                                               status: int) -> None:
    server.status = status
    with pytest.raises(MemlabError, match=rf"answered {status} .*by other means and put it at .*made\.json"):
        get(known, tmp_path)
    assert left(tmp_path) == set()


def test_no_network_says_where_to_put_the_file(known: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(MemlabError, match=rf"no connection.*put it at {tmp_path}/made\.json"):
        fetch(known, base=f"http://127.0.0.1:{port}", folder=tmp_path, quiet=True)
    with pytest.raises(MemlabError, match="cannot be fetched|no connection|broke off"):
        fetch(known, base="nonsense", folder=tmp_path, quiet=True)


@pytest.mark.parametrize("unpublished", [False, True])
def test_a_full_disk_names_the_file_and_the_same_line_goes_on(
        server: Server, known: str, memlab_home: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str], unpublished: bool) -> None:
    if unpublished:  # the checksum is recorded in a file beside it
        monkeypatch.setitem(benchmarks.FILES, known, replace(benchmarks.FILES[known], sha256=None))
    file = memlab_home / "data" / "made.json"
    with largest_file(100_000):
        assert main(["fetch", known, "--base", BASE]) == 1
    assert f"{file}: cannot be written: the limit on file sizes is reached. Fix: " in capsys.readouterr().err
    assert left(file.parent) == {"made.json.part", "made.json.part.etag"}
    assert main(["fetch", known, "--base", BASE]) == 0
    assert server.asked[-1][1] == "bytes=100000-"
    assert file.read_bytes() == BODY
    assert left(file.parent) == {"made.json"} | ({"made.json.sha256"} if unpublished else set())


def test_names_and_folders_that_cannot_be(server: Server, known: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MemlabError, match="/file: a file is there, where a folder is needed"):
        get(known, tmp_path / "file" / "below")
    with pytest.raises(MemlabError, match="did you mean 'longmemeval_s'"):
        fetch("longmemeval-s")
