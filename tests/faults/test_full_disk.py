"""A command whose place cannot be written: one line names it, what was finished is untouched, and no half file is left.

The place is on a full disk, may take no larger file, is read-only, or is a file. All that is written before is elsewhere.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from memlab import ask, run
from memlab.chats.__main__ import main as import_chats
from memlab.data import benchmarks
from memlab.data.__main__ import main as data
from memlab.judge.__main__ import main as judge
from memlab.learn.__main__ import main as train
from memlab.report.__main__ import main as report
from memlab.score.__main__ import main as score
from memlab.store import Store
from memlab.store.__main__ import main as store
from memlab.track.__main__ import main as track
from tests.data.test_fetch import Server
from tests.faults.limits import fill, largest_file, read_only, small_disk
from tests.small import LIVES, words
from tests.store.worker import DigestEmbedder, some_texts


@dataclass(frozen=True)
class Command:
    """A command that writes below a place; ``prepare`` makes what is finished there before, and what it reads."""

    main: Callable[[list[str]], int]
    prepare: Callable[[Path, Path], None]
    line: Callable[[Path, Path], list[str]]
    status: int = 1


def chat(count: int) -> str:
    return json.dumps([{"role": "user", "content": f"I adopted beagle {n} in May. " * 9} for n in range(count)])


def _runs(root: Path, place: Path) -> None:
    assert run.main(words(root, f"out={place}", "rank.select.k=3", "name=k3")) == 0


def _export(root: Path, place: Path) -> None:
    (root / "messages.json").write_text(chat(3))
    assert import_chats([str(root / "messages.json"), "--out", str(place)]) == 0
    (root / "messages.json").write_text(chat(40))


def _ranking(root: Path, place: Path) -> None:
    assert run.main(words(root / "other", "name=bm25")) == 0
    (file,) = (root / "other").rglob("run.trec")
    shutil.copy(file, root / "mine.trec")
    place.mkdir(exist_ok=True)


def _segments(root: Path, place: Path) -> None:
    for count in (30, 40, 50):
        Store(place, flush_seconds=0).vectors(DigestEmbedder(), some_texts(count), "document")


def _nothing(root: Path, place: Path) -> None:
    place.mkdir(exist_ok=True)


COMMANDS = {
    "run": Command(run.main, _runs, lambda root, place: words(root, f"out={place}", "rank.select.k=5", "name=k5")),
    "report": Command(report, _runs, lambda root, place: [str(place)]),
    "import": Command(import_chats, _export, lambda root, place: [str(root / "messages.json"), "--out", str(place)]),
    "score": Command(score, _ranking, lambda root, place: [str(root / "mine.trec"), *LIVES, f"out={place}"]),
    "pairs": Command(train, _nothing, lambda root, place: [
        "pairs", *words(root)[:-2], f"file={place / 'pairs.jsonl'}"]),
    "store": Command(store, _segments, lambda root, place: ["compact", "--store", str(place)], status=2),
    "track": Command(track, _runs, lambda root, place: [str(place)]),
    "ask": Command(ask.main, _nothing, lambda root, place: ["Which pet do I have?", *LIVES, f"store={place}"]),
}


def full(place: Path, stack: ExitStack) -> None:
    fill(place)


FAULTS = ["full", "limit", "read-only", "file"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", COMMANDS)
def test_x(name: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, place = COMMANDS[name], tmp_path / "place"
    with ExitStack() as stack:
        if fault == "full":
            stack.enter_context(small_disk(place))
        command.prepare(tmp_path, place)
        if fault == "file":
            shutil.rmtree(place)
            place.write_text("x")
        before = contents(place)
        if fault == "full":
            fill(place)
        if fault == "limit":
            stack.enter_context(largest_file(1000))
        if fault == "read-only":
            stack.enter_context(read_only(place))
        capsys.readouterr()
        status = command.main(command.line(tmp_path, place))
        said = capsys.readouterr()
        after = contents(place)
    print(status, "\nOUT", said.out, "\nERR", said.err)
    told = said.out + said.err
    assert status == command.status
    assert "Traceback" not in told
    assert len([line for line in told.splitlines() if "Fix: " in line and str(place) in line]) == 1
    after.pop(place / "much", None)
    assert after == before


def contents(place: Path) -> dict[Path, bytes]:
    files = [place, *place.rglob("*")]
    return {path: path.read_bytes() if path.is_file() else b"" for path in files}
