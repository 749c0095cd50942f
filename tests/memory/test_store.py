"""Vectors of a live memory: each turn is encoded once, kept, and gone from the disk when it is forgotten."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from memlab.memory.database import Database
from memlab.memory.memory import Memory, Session
from memlab.memory.store import LiveStore
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.search.late_interaction import WeightedLate
from memlab.support.errors import MemlabError
from tests.store.worker import DigestEmbedder, expected, some_texts
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


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "4bit", "2bit"])
def test_a_reloaded_memory_ranks_as_before_in_each_number_format(tmp_path: Path, precision: str) -> None:
    with filled(tmp_path, precision) as memory:
        before = memory.search("cat Tom", "2023-02-01")
    TokenWords.asked.clear()
    with Memory(tmp_path, pipeline(precision)) as memory:
        assert memory.search("cat Tom", "2023-02-01").equals(before)
    assert TokenWords.asked == ["cat Tom"]


def test_a_question_fails_if_the_vectors_were_cut(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        memory.search("cat Tom", "2023-02-01")
        path = next(tmp_path.glob("store/tokens/*/*.segment"))
        os.truncate(path, 7)
        with pytest.raises(MemlabError, match="was cut while the memory was open"):
            memory.search("cat Tom", "2023-02-01")
    with pytest.warns(UserWarning, match="is damaged"), Memory(tmp_path, pipeline()) as memory:
        assert memory.search("cat Tom", "2023-02-01")["text"][0].endswith("my cat Tom naps")


@pytest.mark.parametrize("used", [True, False])  # the model was used since loading, or was not
def test_what_is_forgotten_leaves_the_segments_of_every_model(database: Database, used: bool) -> None:
    texts, store = some_texts(5), LiveStore(database)
    for name in ("one", "two"):
        store.vectors(DigestEmbedder(name), texts, "document")
    store = store if used else LiveStore(database)
    store.keep(texts["text_id"][[0, 2, 3]])
    held = b"".join(path.read_bytes() for path in store.root.rglob("*.segment"))
    assert [held.count(row.tobytes()) for row in expected(texts)] == [2, 0, 2, 2, 0]
    for one in (store, LiveStore(database)):
        np.testing.assert_array_equal(one.vectors(DigestEmbedder("one"), texts, "document"), expected(texts))
    assert one.made["vectors"] == 0
    assert len(list(store.root.glob("vectors/*/identity.json"))) == 2


def test_a_memory_that_was_killed_after_forgetting_has_nothing_of_it_when_it_is_opened(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = filled(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(LiveStore, "keep", None)  # fails right behind the commit
        with pytest.raises(TypeError):
            memory.forget("2023-01-02")
    assert on_disk(tmp_path, SAID[1][1])
    with Memory(tmp_path, pipeline()) as again:
        assert len(again) == 2
        assert not on_disk(tmp_path, SAID[1][1])
        assert on_disk(tmp_path, SAID[0][1])
