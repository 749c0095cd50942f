"""What is recorded of a run: source, versions, hardware; and JSON that is whole or absent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memlab import manifest


def digest_of(root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(manifest, "PACKAGE", root)
    return manifest.source_digest.__wrapped__()


def test_the_source_counts_as_far_as_it_can_change_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rank/score.py", "report/html.py", "run.py", "plan.py", "pipeline.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    first = digest_of(tmp_path, monkeypatch)
    for name in ("report/html.py", "run.py", "plan.py"):
        (tmp_path / name).write_text("x = 2\n")
        assert digest_of(tmp_path, monkeypatch) == first
    (tmp_path / "rank/score.py").write_text("x = 2\n")
    second = digest_of(tmp_path, monkeypatch)
    (tmp_path / "rank/score.py").rename(tmp_path / "rank/scorer.py")
    assert len({first, second, digest_of(tmp_path, monkeypatch)}) == 3


def test_what_lies_beside_the_result_exists() -> None:
    assert all((manifest.PACKAGE / name).exists() for name in manifest.BESIDE_THE_RESULT)


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


def test_json_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    manifest.write_json(path, {"a": [1, 2.5, None], "p": Path("y")})
    assert manifest.read_json(path) == {"a": [1, 2.5, None], "p": "y"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        manifest.write_json(path, {"a": float("nan")})
    assert manifest.read_json(path)["a"] == [1, 2.5, None]
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
