"""What is recorded of a run: source, versions, hardware; and JSON that is whole or absent."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memlab.harness import manifest
from memlab.harness.staleness import SourceTree
from memlab.runtime.files import write_json
from memlab.runtime.foreign import read_json
from memlab.runtime.paths import PACKAGE
from memlab.store import Store
from tests.small import arm


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(PACKAGE, tmp_path_factory.mktemp("source") / "memlab",
                           ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def digest(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """The digest of an arm as a process gives it that starts now with the source of the copy."""
    def of_arm() -> str:
        source = SourceTree(copy)
        monkeypatch.setattr(manifest, "own_source", lambda: source)
        return arm(tmp_path).digest()

    return of_arm


def matches(root: Path, *patterns: str) -> list[Path]:
    """Files below a folder, as patterns name them; a pattern that names none is a mistake of the test."""
    named = {pattern: sorted(root.glob(pattern)) for pattern in patterns}
    assert all(named.values()), named
    return [file for files in named.values() for file in files]


def test_a_comment_or_a_docstring_makes_no_run_stale(copy: Path, digest: Callable[[], str]) -> None:
    before = digest()
    for file in matches(copy, "**/*.py"):
        file.write_text(file.read_text() + '\n# a comment\n"""A remark."""\n')
    assert digest() == before


UNUSED = (
    "ask.py", "doctor/*.py", "errors.py", "memory.py", "run.py", "serve.py", "status.py", "submit.py", "cluster/*.py",
    "config/*.py", "live/*.py", "report/*.py", "runtime/files.py", "serving/**/*.py", "track/*.py",
    "harness/manifest.py", "harness/staleness.py",
    "harness/plan.py", "harness/results.py", "harness/sweep.py",
    "data/fetch.py", "data/inspect.py", "data/__main__.py", "judge/*.py",
    "learn/**/*.py", "oracle/*.py", "store/__main__.py", "search/late_index.py", "data/locomo.py")
USED = (
    "pipeline.py", "stage.py", "tables.py", "text/token_counter.py", "question_types.py", "data/synthetic/dataset.py",
    "data/synthetic/lexicon.py", "data/synthetic/lexicon.yaml", "store/store.py", "text/tokenize.py", "write/chunk.py",
    "query/classify.py", "search/bm25.py", "rank/score.py", "read/prompt.py", "evaluate/summary.py",
    "evaluate/retrieval.py", "harness/arm.py", "harness/run_tables.py", "runtime/clock.py")


def test_what_an_arm_does_not_use_makes_it_not_stale(copy: Path, digest: Callable[[], str]) -> None:
    before = digest()
    for file in matches(copy, *UNUSED):
        file.write_text(file.read_text() + "\nRULE = 1\n")
    assert digest() == before


def test_each_file_that_an_arm_uses_makes_it_stale(copy: Path, digest: Callable[[], str]) -> None:
    before = digest()
    for file in USED:
        (copy / file).write_text((copy / file).read_text() + f"\nRULE_OF = {file!r}\n")
        now = digest()
        assert now != before, file
        before = now


def test_another_word_in_a_list_makes_an_arm_stale(copy: Path, digest: Callable[[], str]) -> None:
    before, file = digest(), copy / "text" / "tokenize.py"
    file.write_text(file.read_text().replace('"and"', '"ampersand"'))
    assert digest() != before


def test_a_file_that_moves_makes_no_run_stale(copy: Path, digest: Callable[[], str]) -> None:
    before = digest()
    (copy / "text" / "tokenize.py").rename(copy / "search" / "forms.py")
    for file in matches(copy, "**/*.py"):
        file.write_text(file.read_text().replace("memlab.text.tokenize", "memlab.search.forms"))
    assert digest() == before


def test_the_source_decides_whether_a_run_is_finished(copy: Path, digest: Callable[[], str], tmp_path: Path) -> None:
    assert digest()
    arm(tmp_path).run(Store(tmp_path / "store"))
    for name, finished in (("ask.py", True), ("servers.py", True), ("rank/score.py", False)):
        (copy / name).write_text((copy / name).read_text() + "\nOTHER = 1\n")
        assert digest()
        assert arm(tmp_path).is_finished() is finished, name


def test_versions_are_those_installed() -> None:
    import polars

    assert manifest.versions()["polars"] == polars.__version__
    assert manifest.versions()["python"] == sys.version.split()[0]


def test_hardware_and_memory() -> None:
    found = manifest.hardware()
    assert found["cores"] >= 1
    assert found["memory_gb"] > 0
    assert found["processor"]
    assert 0.01 < manifest.peak_memory_gb() < found["memory_gb"]


def test_the_commit_is_named_or_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "PACKAGE", tmp_path / "memlab")
    assert manifest.commit.__wrapped__() == {"commit": None, "dirty": None}


def test_the_commit_of_somebody_elses_checkout_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtualenv inside a user's own repository holds memlab; that repository's commit says nothing of memlab."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", tmp_path, *identity, "commit", "-q", "--allow-empty", "-m", "mine"], check=True)
    monkeypatch.setattr(manifest, "PACKAGE", tmp_path / "memlab")
    assert manifest.commit.__wrapped__()["commit"]
    monkeypatch.setattr(manifest, "PACKAGE", tmp_path / ".venv/lib/site-packages/memlab")
    (tmp_path / ".venv/lib/site-packages/memlab").mkdir(parents=True)
    assert manifest.commit.__wrapped__() == {"commit": None, "dirty": None}


def test_json_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": [1, 2.5, None], "p": Path("y")})
    assert read_json(path) == {"a": [1, 2.5, None], "p": "y"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"a": float("nan")})
    assert read_json(path)["a"] == [1, 2.5, None]
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
