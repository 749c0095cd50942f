"""Token vectors of a live memory: each turn is encoded once, kept, and gone from the disk when it is forgotten."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from memlab.errors import MemlabError
from memlab.live.token_log import MAPPED
from memlab.memory import Memory, Session
from memlab.pipeline import Pipeline
from memlab.search.late_interaction import WeightedLate
from tests.live.test_token_files import resident
from tests.token_words import TokenWords

SAID = [("2023-01-01", "tea tastes lovely"), ("2023-01-02", "my cat Tom naps"), ("2023-01-03", "rain again today")]


@pytest.fixture(autouse=True)
def _none_asked() -> None:
    TokenWords.asked.clear()


def pipeline(precision: str = "fp32") -> Pipeline:
    return Pipeline(late=WeightedLate(matcher=TokenWords(), precision=precision))  # type: ignore[arg-type]


def filled(folder: Path, precision: str = "fp32") -> Memory:
    memory = Memory(folder, pipeline(precision))
    for day, text in SAID:
        memory.add(Session(day, [("user", text)], day))
    return memory


def on_disk(folder: Path, text: str) -> bool:
    ((_, _, (matrix,)),) = TokenWords().token_vectors([text], "document")
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return any(matrix.tobytes() in data for data in files)


def test_a_search_encodes_the_question_alone(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        memory.search("which cat", "2023-02-01")
        TokenWords.asked.clear()
        assert memory.search("where is Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
    assert TokenWords.asked == ["where is Tom"]


def test_vectors_outlive_the_process(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        before = memory.search("cat Tom", "2023-02-01")
    TokenWords.asked.clear()
    with Memory(tmp_path, pipeline()) as memory:
        assert memory.search("cat Tom", "2023-02-01").equals(before)
    assert TokenWords.asked == ["cat Tom"]


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "4bit", "2bit"])
def test_a_reloaded_memory_ranks_as_before_in_each_number_format(tmp_path: Path, precision: str) -> None:
    with filled(tmp_path, precision) as memory:
        before = memory.search("cat Tom", "2023-02-01")
    with Memory(tmp_path, pipeline(precision)) as memory:
        assert memory.search("cat Tom", "2023-02-01").equals(before)


def test_forgotten_turns_leave_the_disk_and_the_others_stay(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        assert on_disk(tmp_path, SAID[1][1])
        memory.forget("2023-01-02")
        assert not on_disk(tmp_path, SAID[1][1])
        assert on_disk(tmp_path, SAID[0][1])
        assert not memory.search("cat Tom", "2023-02-01")["text"].str.contains("cat").any()
    assert not on_disk(tmp_path, SAID[1][1])


def test_a_damaged_row_is_encoded_again(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        before = memory.search("cat Tom", "2023-02-01")
    (path,) = tmp_path.glob("store/tokens/*/vectors")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    TokenWords.asked.clear()
    with Memory(tmp_path, pipeline()) as memory:
        assert memory.search("cat Tom", "2023-02-01").equals(before)
    assert TokenWords.asked == ["cat Tom", SAID[2][1]]


def test_additions_are_one_mapped_block(tmp_path: Path) -> None:
    with Memory(tmp_path, pipeline()) as memory:
        for n in range(12):
            memory.add(Session("2023-01-01", [("user", f"word{n} tea")]))
        (log,) = (log for log in memory._store._token_logs.values() if log.on_disk)  # type: ignore[attr-defined]
        assert {name: len(block.keys) for name, block in log._blocks.items()} == {MAPPED: 12}
        assert np.isfinite(memory.search("word7", "2023-02-01")["score"].to_numpy()).all()


@pytest.mark.filterwarnings("ignore:vectors are not saved")  # those of whole texts
def test_what_the_disk_cannot_take_is_kept_in_few_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with filled(tmp_path) as memory:
        before = memory.search("cat Tom", "2023-02-01")
        (log,) = (log for log in memory._store._token_logs.values() if log.on_disk)  # type: ignore[attr-defined]
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            for n in range(12):
                with pytest.warns(UserWarning, match="token vectors are not saved.*the disk is full"):
                    memory.add(Session("2024-01-01", [("user", f"word{n} tea")], f"s{n}"))
        assert len(log._blocks) <= 5
        assert sum(len(block.keys) for block in log._blocks.values()) == 15
        assert memory.search("cat Tom", "2023-02-01").equals(before)
        assert memory.search("word7", "2024-02-01")["text"][0].endswith("word7 tea")
        memory.forget("s7")
        assert sum(len(block.keys) for block in log._blocks.values()) == 14
    TokenWords.asked.clear()
    with Memory(tmp_path, pipeline()) as memory:
        memory.search("word8", "2024-02-01")
    assert len(TokenWords.asked) == 12  # the question, and what was not saved


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs /proc")
def test_no_vector_stays_in_memory_after_a_question(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        memory.search("cat Tom", "2023-02-01")
        (path,) = tmp_path.glob("store/tokens/*/vectors")
        assert resident(path) == 0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_closed_memory_holds_no_file(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        memory.search("cat Tom", "2023-02-01")
        used = {os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()}
        assert any(str(tmp_path) in path for path in used)
    gc.collect()
    assert not any(str(tmp_path) in os.path.realpath(path) for path in Path("/proc/self/fd").iterdir())


def test_a_question_fails_if_the_vectors_were_cut(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        memory.search("cat Tom", "2023-02-01")
        (path,) = tmp_path.glob("store/tokens/*/vectors")
        os.truncate(path, 7)
        with pytest.raises(MemlabError, match="vectors was deleted, replaced or cut while the memory was open"):
            memory.search("cat Tom", "2023-02-01")
    with Memory(tmp_path, pipeline()) as memory:
        assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")
