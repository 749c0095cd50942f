"""The guard lets through what stages need, and costs nothing where it is off. ``test_leaks`` has what it must catch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.harness import leak_guard
from memlab.harness.leak_guard import GuardedCache, watching
from memlab.learn.coverage import CoverageModel, LearnedK, LoadedCoverage, fit_tables
from memlab.learn.fits import save
from memlab.models.protocols import Floats, Ints
from memlab.rank.rerank import Rerank
from memlab.rank.select import Gap
from memlab.search.dense import Dense
from memlab.stage import LocalPath, stage
from memlab.store import Store
from memlab.tables import Tables
from tests.peeks import Look
from tests.search.world import WordEmbedder
from tests.small import lexical, lives

ROOT = Path(__file__).resolve().parents[2]


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
    assert "test_leak_guard.py, line" in str(caught.value)
    assert "named by a field of the stage" in str(caught.value)


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


def test_outside_a_stage_everything_may_be_read(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    memo = GuardedCache(a=1)
    assert pl.read_parquet(tmp_path / "a.parquet")["a"].to_list() == [memo["a"]] == list(memo.values())
    with pytest.raises(MemlabError, match="Look opens"), watching(Look(way="nothing")):
        pl.read_parquet(tmp_path / "a.parquet")


def test_a_stage_inside_a_stage_is_watched_as_itself() -> None:
    memo = GuardedCache(a=1)
    with pytest.raises(MemlabError, match="Look looks at what"):
        look_after_another(memo)
    assert memo["a"] == 1


def look_after_another(memo: GuardedCache) -> None:
    with watching(Look(way="nothing")):
        with watching(Gap()):
            pass
        memo["a"]


def test_the_guard_is_off_by_default_and_then_touches_nothing(tmp_path: Path) -> None:
    code = """if True:
        import polars as pl
        before = pl.read_parquet
        from tests.peeks import Look
        from tests.small import lexical, lives
        from memlab.store import Store
        from pathlib import Path
        import sys
        Look.folder = Path(sys.argv[1])
        lexical(select=Look(way="text", path="gold")).run(lives().load(), Store(Look.folder))
        assert pl.read_parquet is before and "memlab.harness.leak_guard" not in sys.modules
    """
    (tmp_path / "gold").write_text("evidence")
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, timeout=300)


def test_a_setting_turns_it_on(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from dataclasses import replace
        from pathlib import Path
        from memlab.harness.sweep import read
        from memlab.store import Store
        from tests.peeks import Look
        from tests.small import words
        Look.folder = Path(sys.argv[1])
        (off,) = read(words(Look.folder)).arms
        assert "memlab.harness.leak_guard" not in sys.modules
        (on,) = read(words(Look.folder, "leak_guard=true")).arms
        assert on.digest() == off.digest() and on.name == off.name
        peeking = replace(on, pipeline=on.pipeline.replace(select=Look(way="text", path="gold")))
        peeking.run(Store(Look.folder / "store"))
    """
    (tmp_path / "gold").write_text("evidence")
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False, timeout=300,
                           capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"the stage tests.peeks.Look opens {tmp_path}/gold, outside its tables" in ended.stderr


def test_it_is_on_in_the_tests() -> None:
    assert leak_guard.install.cache_info().currsize
