"""Run folders are read only if their manifest has its form and their files are those that the run wrote."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from memlab.experiment.harness.results import read_arm
from memlab.experiment.harness.run_files import FORMAT, plain_yaml
from memlab.store import store_at
from memlab.support.errors import MemlabError
from tests.sealing import seal
from tests.small import arm


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run")
    return arm(root).run(store_at(str(root / "store")))


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "runs" / "exp" / "data" / finished.name))


def manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return content


def test_the_manifest_lists_every_other_file(folder: Path) -> None:
    content = manifest(folder)
    assert content["format"] == FORMAT
    assert sorted([*content["files"], "manifest.json"]) == sorted(path.name for path in folder.iterdir())
    assert read_arm(folder).questions.height == 16


def test_a_changed_file_is_named(folder: Path) -> None:
    for name in manifest(folder)["files"]:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(bytes([whole[0] ^ 1]) + whole[1:] if whole else b"x")
        with pytest.raises(MemlabError, match=f"{name}: it has changed since the run.*Fix: delete the folder"):
            read_arm(folder)
        (folder / name).write_bytes(whole)
    read_arm(folder)


def test_a_missing_file_a_file_elsewhere_and_a_pipe_are_named(folder: Path) -> None:
    (folder / "run.trec").unlink()
    with pytest.raises(MemlabError, match=r"run\.trec: cannot be read"):
        read_arm(folder)
    seal(folder)
    content = manifest(folder)
    (folder / "manifest.json").write_text(json.dumps(content | {"files": {"../x": "0"}}))
    with pytest.raises(MemlabError, match=r"\.\./x: "):
        read_arm(folder)
    (folder / "manifest.json").write_text(json.dumps(content))
    (folder / "ranking.parquet").unlink()
    os.mkfifo(folder / "ranking.parquet")
    with pytest.raises(MemlabError, match=r"ranking\.parquet: cannot be read \(.*no plain file"):
        read_arm(folder)


@pytest.mark.parametrize(("changes", "words"), [
    ({"format": 1}, "the format of this run is 1, and this memlab reads format 2 alone"),
    ({"format": None}, "the format of this run is None"), ({"files": []}, "it is not as memlab writes it: files"),
    ({"constant_k": {"m": [{"k": "1", "tokens": 2.0, "value": 0.5}]}}, "memlab writes it: constant_k.m.0.k"),
    ({"importances": [{"feature": "a", "share": None}]}, "memlab writes it: importances.0.share"),
    ({"replies": {"answer": {"m": {"replies": 1}}}}, "writes it: replies.answer.m.prompt_tokens: Field required"),
    ({"total_seconds": float("inf")}, "it is not as memlab writes it: total_seconds"),
    ({"arm": ["one"]}, "it is not as memlab writes it: arm")])
def test_a_manifest_of_another_form_is_named_with_its_field(folder: Path, changes: dict[str, Any], words: str) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest(folder) | changes))
    with pytest.raises(MemlabError, match=words):
        read_arm(folder)


def test_a_table_that_cannot_be_read_under_a_digest_that_fits_is_named(folder: Path) -> None:
    (folder / "questions.parquet").write_bytes(b"not parquet")
    for name in ("answers", "verdicts"):
        (folder / f"{name}.jsonl").write_bytes(b'{"question": "x", "hypothesis": "a"}')
    seal(folder)
    for name, suffix in (("questions", "parquet"), ("answers", "jsonl"), ("verdicts", "jsonl")):
        with pytest.raises(MemlabError, match=rf"{name}\.{suffix}: cannot be read.*Fix: delete"):
            getattr(read_arm(folder), name)


@pytest.mark.parametrize("text", ["a: [", "!!python/object/apply:os.system [ls]", "a: &a [x]\nb: *a"])
def test_a_configuration_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(MemlabError, match=r"config\.yaml"):
        plain_yaml(text, Path("config.yaml"))
