"""What is recorded of a run: source, versions, hardware; and JSON that is whole or absent."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.harness import manifest
from memlab.runtime.files import read_json, write_json
from memlab.store import Store
from tests.small import arm
from tests.test_structure import imports, modules


def digest_of(root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(manifest, "PACKAGE", root)
    return manifest.source_digest.__wrapped__()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(manifest.PACKAGE, tmp_path_factory.mktemp("source") / "memlab",
                           ignore=shutil.ignore_patterns("__pycache__"))


def matches(root: Path, *patterns: str) -> list[Path]:
    """Files below a folder, as patterns name them; a pattern that names none is a mistake of the test."""
    named = {pattern: sorted(root.glob(pattern)) for pattern in patterns}
    assert all(named.values()), named
    return [file for files in named.values() for file in files]


@pytest.mark.parametrize("pattern", [
    "ask.py", "doctor.py", "errors.py", "memory.py", "run.py", "serve.py", "status.py", "submit.py", "cluster/*.py",
    "config/*.py", "live/*.py", "report/*.py", "runtime/*.py", "serving/**/*.py", "track/*.py", "harness/manifest.py",
    "harness/plan.py", "harness/results.py", "harness/runner.py", "harness/sweep.py", "data/fetch.py", "data/show.py",
    "data/mteb.py", "data/__main__.py", "judge/__main__.py", "judge/calibration/*.py", "learn/reranker/train.py",
    "learn/*/__main__.py", "store/__main__.py", "scenarios/report.py"])
def test_a_comment_beside_the_result_makes_no_run_stale(pattern: str, copy: Path, monkeypatch: pytest.MonkeyPatch
                                                        ) -> None:
    before = digest_of(copy, monkeypatch)
    for file in matches(copy, pattern):
        file.write_text(file.read_text() + "# a comment\n")
        assert digest_of(copy, monkeypatch) == before, file


@pytest.mark.parametrize("pattern", [
    "pipeline.py", "stage.py", "tables.py", "token_counter.py", "question_types.py", "data/locomo.py", "models/**/*.py",
    "store/store.py", "text/**/*.py", "write/**/*.py", "query/**/*.py", "search/*.py", "rank/score.py",
    "rank/signals/*.py", "read/**/*.py", "learn/coverage/model.py", "learn/reranker/stage.py", "oracle/*.py",
    "judge/f1.py", "evaluate/*.py", "scenarios/cases.py", "harness/arm.py"])
def test_a_comment_where_results_are_made_makes_every_run_stale(pattern: str, copy: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {digest_of(copy, monkeypatch)}
    for file in matches(copy, pattern):
        file.write_text(file.read_text() + "# a comment\n")
        digest = digest_of(copy, monkeypatch)
        assert digest not in seen, file
        seen.add(digest)


def test_a_new_name_of_a_file_counts(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of(copy, monkeypatch)
    (copy / "rank/score.py").rename(copy / "rank/scores.py")
    try:
        assert digest_of(copy, monkeypatch) != before
    finally:
        (copy / "rank/scores.py").rename(copy / "rank/score.py")


def test_what_can_change_a_result_imports_nothing_that_the_digest_leaves_out() -> None:
    """But process and files, the text of errors, where a model server is, and the manifest itself."""
    neutral = ("memlab.errors", "memlab.runtime", "memlab.serving.records", "memlab.harness.manifest")
    files = {module: file.relative_to(manifest.PACKAGE).as_posix() for module, file in modules().items()}
    inside = {module for module, file in files.items() if manifest._within(file, manifest.RESULT)
              and not manifest._within(file, manifest.COMMANDS)}
    left_out = files.keys() - inside - {module for module in files if module.startswith(neutral)}
    assert {(module, *imports(module) & left_out) for module in inside if imports(module) & left_out} == set()


def test_every_place_of_the_digest_exists() -> None:
    assert all((manifest.PACKAGE / name).exists() for name in (*manifest.RESULT, *manifest.COMMANDS))


def test_the_digest_decides_whether_a_run_is_finished(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                      ) -> None:
    digest = manifest.source_digest.__wrapped__
    monkeypatch.setattr(manifest, "PACKAGE", copy)
    monkeypatch.setattr(manifest, "source_digest", digest)  # it is kept for the process otherwise
    arm(tmp_path).run(Store(tmp_path / "store"))
    for name, finished in (("ask.py", True), ("serving/node.py", True), ("rank/score.py", False)):
        (copy / name).write_text((copy / name).read_text() + "# another comment\n")
        assert arm(tmp_path).finished() is finished, name


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
