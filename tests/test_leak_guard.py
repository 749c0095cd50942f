"""The guard lets through what stages need. ``test_leaks`` has what it must catch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from memlab.learn.coverage import CoverageModel, LearnedK, LoadedCoverage, fit_tables
from memlab.learn.fits import save
from memlab.models.protocols import Floats, Ints
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.stages.judge.accuracy import read_judges
from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.select import Gap
from memlab.stages.search.dense import Dense
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.leak_guard import watching
from tests.peeks import Look
from tests.small import lexical, lives
from tests.stages.search.world import WordEmbedder


@stage
class Listed:
    """Selects everything, after it has read the file that its field names."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    words: LocalPath
    other: LocalPath | None = None

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        assert self.words.read_text()
        for file in sorted(self.words.parent.glob("*.more")):
            assert file.read_text()
        return Tables(ranking=tables["ranking"].with_columns(selected=True))


@dataclass(frozen=True)
class FileScorer:
    """A model of the user's own that reads its weights when it is first asked."""

    weights: Path

    def identity(self) -> dict[str, Any]:
        return {"is": "FileScorer"}

    def score(self, queries: Sequence[str], passages: Sequence[str],  # noqa: ARG002 (a protocol's signature)
              pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        yield np.arange(len(pairs)), np.full(len(pairs), float(self.weights.read_text()), np.float32)


def run(root: Path, **stages: Any) -> Tables:
    return lexical(**stages).run(lives().load(), Store(root / "store"))


def test_a_file_that_a_field_names_may_be_read(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a list")
    assert run(tmp_path, select=Listed(words=tmp_path / "words.txt"))["ranking"]["selected"].all()


def test_a_file_beside_it_may_not(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a list")
    (tmp_path / "gold.more").write_text("evidence")
    with pytest.raises(MemlabError, match=r"test_leak_guard.Listed opens .*gold.more") as caught:
        run(tmp_path, select=Listed(words=tmp_path / "words.txt"))
    assert all(part in str(caught.value) for part in ("test_leak_guard.py, line", "named by a field of the stage"))


def test_a_model_of_the_users_own_reads_its_weights(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("0.5")
    made = run(tmp_path, rerank=Rerank(scorer=FileScorer(tmp_path / "weights"), pool=5))
    assert set(made["ranking"]["rerank"].drop_nulls()) == {0.5}


def test_the_store_and_a_learned_fit_pass(tmp_path: Path) -> None:
    fit: CoverageModel = fit_tables(run(tmp_path, dense=Dense(embedder=WordEmbedder())))
    save(fit, tmp_path / "fit.json")
    run(tmp_path, dense=Dense(embedder=WordEmbedder()),  # vectors are read from the store
        select=LearnedK(coverage=LoadedCoverage(path=tmp_path / "fit.json")))


@pytest.mark.parametrize("way", ["own_file", "library", "nothing"])
def test_a_stages_own_file_and_imports_pass(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Look, "folder", tmp_path)
    assert run(tmp_path, select=Look(way=way, path="scratch"))["ranking"]["selected"].all()


def test_a_stage_inside_a_stage_is_watched_as_itself_and_outside_everything_may_be_read(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")

    def read_after_another() -> None:
        with watching(Look(way="nothing")):
            with watching(Gap()):
                pass
            pl.read_parquet(tmp_path / "a.parquet")

    with pytest.raises(MemlabError, match="Look opens"):
        read_after_another()
    assert pl.read_parquet(tmp_path / "a.parquet")["a"].to_list() == [1]


def test_a_stage_of_another_thread_answers_for_its_own_files_alone(tmp_path: Path) -> None:
    (tmp_path / "judges.json").write_text('{"judges": {}}')
    running = watching(Look(way="nothing"))
    with ThreadPoolExecutor(1) as other:
        other.submit(running.__enter__).result()
        assert read_judges(tmp_path / "judges.json") == {}
        other.submit(running.__exit__, None, None, None).result()
