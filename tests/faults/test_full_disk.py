"""Commands whose place cannot be written: one line names it, what was finished is untouched, no half file is left.

The place is on a full disk, may take no large file, is read-only, or a file stands there. What else a command writes
is elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from memlab import run
from memlab.commands import ask
from memlab.commands.import_chats import main as import_chats
from memlab.commands.judge import main as judge
from memlab.commands.train import main as train
from memlab.report.build import RECORD
from memlab.store.segment import IDENTITY
from memlab.support.terminal import print
from tests.data.official_records import record, turn, write
from tests.faults.limits import fill, largest_file, read_only, small_disk
from tests.small import LIVES, on_lives, words


@dataclass(frozen=True)
class Command:
    """A command that writes below ``place``, a folder of ``root``.

    ``prepare`` makes what is finished there before, and in ``root`` what the command reads.
    """

    main: Callable[[list[str]], int]
    line: Callable[[Path, Path], list[str]]
    prepare: Callable[[Path, Path], None] = lambda root, place: place.mkdir(exist_ok=True)
    status: int = 1


def finish_an_arm(root: Path, place: Path) -> None:
    assert run.main(words(root, f"out={place}", "rank.select.k=3", "name=k3")) == 0


def import_some(root: Path, place: Path) -> None:
    for count in (3, 40):  # the later export is not imported yet
        if count == 40:
            assert import_chats([str(root / "chat.json"), "--out", str(place)]) == 0
        (root / "chat.json").write_text(json.dumps([
            {"role": "user", "content": f"I adopted beagle {n} in May. " * 9} for n in range(count)]))


def write_answers(root: Path, place: Path) -> None:
    place.mkdir(exist_ok=True)
    write(root / "oracle.json", [record(
        f"q{n}", answer="3", haystack_dates=["2023/05/20 (Sat) 02:21"], haystack_session_ids=["answer_1"],
        answer_session_ids=["answer_1"], haystack_sessions=[[turn("user", "hello", has_answer=True)]])
        for n in range(20)])
    (place / "mine.jsonl").write_text("".join(
        json.dumps({"question_id": f"q{n}", "hypothesis": f"There were 3, not {n}. " * 9}) + "\n" for n in range(20)))


def judged(root: Path, place: Path) -> list[str]:
    return [str(place / "mine.jsonl"), "--data", "longmemeval_oracle", "--path", str(root / "oracle.json"),
            "--store", str(root / "store"), "--judge", "contains"]


QUICK = {
    "import": Command(import_chats, lambda root, place: [str(root / "chat.json"), "--out", str(place)], import_some),
    "judge": Command(judge, judged, write_answers),
    "pairs": Command(train, lambda root, place: ["pairs", *words(root), f"file={place / 'pairs.jsonl'}"]),
}
SLOW = {
    "run": Command(run.main, lambda root, place: words(root, f"out={place}", "rank.select.k=5", "name=k5"),
                   finish_an_arm),
    "ask": Command(ask.main, lambda root, place: ["Which pet do I have?", "corpus=life-0", *LIVES, f"store={place}"]),
}
COMMANDS = {**QUICK, **SLOW}
READS_ITS_PLACE = ("judge",)


@contextmanager
def fault_of(kind: str, place: Path, prepare: Callable[[], None]) -> Iterator[None]:
    """A place that is prepared, and that has a fault in the block."""
    with ExitStack() as stack:
        if kind == "full":
            stack.enter_context(small_disk(place))
        prepare()
        match kind:
            case "full":
                fill(place)
            case "limit":
                stack.enter_context(largest_file(600))
            case "read-only":
                stack.enter_context(read_only(place))
            case "file":
                shutil.rmtree(place)
                place.write_text("a file")
        yield


def contents(place: Path) -> dict[str, bytes]:
    """The files of a place, but for those that describe others, and the one that fills the disk."""
    described = (RECORD, IDENTITY, "much")
    files = (path for path in [place, *place.rglob("*")] if path.is_file() and path.name not in described)
    return {path.name: path.read_bytes() for path in files}


@pytest.mark.parametrize(("name", "fault"), [
    pytest.param(name, fault, marks=[pytest.mark.nightly] if name in SLOW else [])
    for name in COMMANDS for fault in ("full", "limit", "read-only", "file")
    if not (fault == "file" and name in READS_ITS_PLACE)])
def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, fault: str
                                        ) -> None:
    command, place = COMMANDS[name], tmp_path / "place"
    line = command.line(tmp_path, place)
    with fault_of(fault, place, lambda: command.prepare(tmp_path, place)):
        before = contents(place)
        capsys.readouterr()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            status = command.main(line)
        said = capsys.readouterr()
        after = contents(place)
    told = [*(said.out + said.err).splitlines(), *(str(warning.message) for warning in warned)]
    print("\n".join(told))
    assert status == command.status
    assert not [one for one in told if "Traceback" in one]
    assert len([one for one in told if "Fix: " in one]) == 1
    assert [one for one in told if "Fix: " in one and str(place) in one]
    assert after == before
    if fault in ("limit", "read-only"):
        assert command.main(line) == 0  # the same line goes on where it can be written


def test_a_first_import_that_a_full_disk_cut_short_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "I adopted a beagle."}]')
    with small_disk(tmp_path / "place") as place:
        fill(place)
        os.truncate(place / "much", (place / "much").stat().st_size - 4096)  # room for one of two files
        line = [str(tmp_path / "chat.json"), "--out", str(place)]
        assert import_chats(line) == 1
        (place / "much").unlink()
        assert import_chats(line) == 0
        assert {file.name for file in place.iterdir()} == {"sessions.jsonl", "import.json"}


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["full", "read-only", "file"])
def test_a_home_that_cannot_be_written_stops_no_run(tmp_path: Path, memlab_home: Path, fault: str) -> None:
    with fault_of(fault, memlab_home, lambda: None):
        assert run.main(on_lives(tmp_path)) == 0
    assert list((tmp_path / "runs").rglob("report.html"))
