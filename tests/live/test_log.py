"""The file of a live memory: whole lines or none, damage named and set aside, one holder."""

from __future__ import annotations

import json
import resource
import signal
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.live.log import DAMAGED, FILE, LOCK, Log
from memlab.live.sessions import Entry, Session
from memlab.runtime.checked_lines import decode, encode


def entry(number: int, text: str = "hello") -> Entry:
    turns = [("user", text), ("assistant", "Hi! \u2028é\n")]
    return Entry.new(number, Session("2023-05-20T18:30", turns, f"s{number}"))


def filled(folder: Path, count: int = 3) -> bytes:
    log = Log(folder)
    assert log.open() == []
    for number in range(count):
        log.append(entry(number))
    log.close()
    return (folder / FILE).read_bytes()


def opened(folder: Path) -> list[Entry]:
    log = Log(folder)
    try:
        return log.open()
    finally:
        log.close()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    assert not Log.there(tmp_path)
    whole = filled(tmp_path)
    assert Log.there(tmp_path)
    assert whole.isascii()
    assert whole.count(b"\n") == 4
    assert opened(tmp_path) == [entry(0), entry(1), entry(2)]


@pytest.mark.parametrize("cut", [1, 2, 40, 100])
def test_a_line_that_was_cut_off_is_dropped_and_named(tmp_path: Path, cut: int) -> None:
    whole = filled(tmp_path)
    (tmp_path / FILE).write_bytes(whole[:-cut])
    with pytest.warns(UserWarning, match=r"memory.jsonl: line 4 is damaged .* kept as damaged.jsonl"):
        assert opened(tmp_path) == [entry(0), entry(1)]
    log = Log(tmp_path)
    assert log.open() == [entry(0), entry(1)]  # without a warning: it was set aside
    log.append(entry(2))
    log.close()
    assert (tmp_path / FILE).read_bytes() == whole
    assert (tmp_path / DAMAGED).read_bytes() == whole.splitlines(keepends=True)[3][:-cut].rstrip(b"\n") + b"\n"


def test_a_damaged_line_costs_no_other(tmp_path: Path) -> None:
    whole = filled(tmp_path)
    (tmp_path / FILE).write_bytes(whole.replace(b"s1", b"s7", 1))
    with pytest.warns(UserWarning, match="line 3 is damaged"):
        assert opened(tmp_path) == [entry(0), entry(2)]


@pytest.mark.parametrize("kept", [0, 1, 20])
def test_a_file_that_was_just_begun(tmp_path: Path, kept: int) -> None:
    (tmp_path / FILE).write_bytes(filled(tmp_path, 0)[:kept])
    if kept:
        with pytest.warns(UserWarning, match="line 1"):
            assert opened(tmp_path) == []
    log = Log(tmp_path)
    assert log.open() == []
    log.append(entry(0))
    log.close()
    assert opened(tmp_path) == [entry(0)]


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    foreign = b'{"corpus": "ann", "session": "s1"}\nnothing\n'
    (tmp_path / FILE).write_bytes(foreign)
    with pytest.raises(MemlabError, match=r"memory.jsonl is no live memory. Fix: choose another folder"):
        opened(tmp_path)
    assert (tmp_path / FILE).read_bytes() == foreign
    (tmp_path / FILE).write_bytes(encode({"memlab": "live memory", "format": 2}))
    with pytest.raises(MemlabError, match="format 2, which this version does not know"):
        opened(tmp_path)


def test_replacing_keeps_the_other_lines_to_the_byte(tmp_path: Path) -> None:
    whole = filled(tmp_path).splitlines(keepends=True)
    log = Log(tmp_path)
    log.open()
    assert log.find({1}) == [entry(1)]
    log.replace({1: entry(1).without([0]), 2: entry(2).without(None)})
    log.close()
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    assert lines[:2] == whole[:2]
    assert json.loads(lines[2])["turns"] == [[1, "assistant", None, "Hi! \u2028é\n"]]
    assert decode(lines[3]) is not None
    assert (opened(tmp_path)[1].numbers, opened(tmp_path)[2]) == ((1,), Entry(2, None))


def test_the_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    first, second = Log(tmp_path), Log(tmp_path)
    first.open()
    with pytest.raises(MemlabError, match=r"in use by process \d+ on .*one at a time"):
        second.open()
    first.close()
    second.open()
    second.close()
    assert (tmp_path / LOCK).exists()


def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path: Path) -> None:
    whole = filled(tmp_path)
    log = Log(tmp_path)
    log.open()
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 50, before[0][1]))
    try:
        with pytest.raises(MemlabError, match="the memory cannot be used: File too large"):
            log.append(entry(3, "x" * 500))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
    assert (tmp_path / FILE).read_bytes() == whole
    log.append(entry(3))
    log.close()
    assert len(opened(tmp_path)) == 4


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MemlabError, match="the memory cannot be used: "):
        Log(tmp_path / "file" / "folder").open()


def test_what_a_killed_process_was_rewriting_is_removed(tmp_path: Path) -> None:
    filled(tmp_path)
    for name in (f"{FILE}.tmp", f".{FILE}.00ff.tmp"):
        (tmp_path / name).write_text("forgotten since")
    assert len(opened(tmp_path)) == 3
    assert not list(tmp_path.glob("*.tmp"))
