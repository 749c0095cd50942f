"""Run folders are believed only if their files are those that the run wrote."""

from __future__ import annotations

import datetime
import json
import os
import random
import shutil
import time
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.harness.arm import Arm
from memlab.harness.results import finished_arms, read_arm
from memlab.harness.run_files import FORMAT, plain_yaml, with_seal
from memlab.report.build import build
from memlab.runtime.files import write_json
from memlab.runtime.foreign import read_json
from memlab.store import store_at
from tests.small import arm


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Arm:
    root = tmp_path_factory.mktemp("run")
    one = arm(root)
    one.run(store_at(str(root / "store")))
    return one


@pytest.fixture
def folder(finished: Arm, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.folder(), tmp_path / "runs" / "exp" / "data" / finished.folder().name))


def test_the_manifest_lists_every_other_file(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == FORMAT
    assert sorted([*manifest["files"], "manifest.json"]) == sorted(path.name for path in folder.iterdir())
    assert read_arm(folder).questions.height == 16


def test_every_flipped_bit_is_named_with_its_file(folder: Path) -> None:
    draw = random.Random(0)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        if path.name == "manifest.json" or not whole:
            continue
        for _ in range(25):
            at = draw.randrange(8 * len(whole))
            flipped = bytearray(whole)
            flipped[at // 8] ^= 1 << at % 8
            path.write_bytes(flipped)
            with pytest.raises(MemlabError, match=path.name):
                read_arm(folder)
        path.write_bytes(whole)
    read_arm(folder)


def test_every_flipped_bit_of_the_manifest_is_named_or_changes_nothing(folder: Path) -> None:
    draw, path = random.Random(1), folder / "manifest.json"
    whole, before = path.read_bytes(), read_arm(folder).manifest
    for _ in range(100):
        at = draw.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            assert read_arm(folder).manifest == before
        except MemlabError as error:
            assert folder.name in str(error)  # noqa: PT017  (either outcome is right)


def test_settings_that_are_dates_are_sealed_as_they_are_written(tmp_path: Path) -> None:
    written = with_seal({"pipeline": {"fallback": datetime.date(2026, 1, 1)}})
    write_json(tmp_path / "manifest.json", written)
    read = read_json(tmp_path / "manifest.json")
    assert with_seal(read) == read
    assert read["pipeline"] == {"fallback": "2026-01-01"}


def test_a_missing_file_and_a_file_elsewhere_are_named(folder: Path) -> None:
    (folder / "run.trec").rename(folder / "other.trec")
    with pytest.raises(MemlabError, match=r"run\.trec"):
        read_arm(folder)
    (folder / "other.trec").rename(folder / "run.trec")
    manifest = json.loads((folder / "manifest.json").read_text())
    for files in ({"../x": "0"}, [], {}, "no"):
        (folder / "manifest.json").write_text(json.dumps(with_seal(manifest | {"files": files})))
        with pytest.raises(MemlabError):
            read_arm(folder)


@pytest.mark.parametrize(("changes", "number"), [({"format": 1}, "1"), ({"format": 3}, "3"), ({}, "unknown")])
def test_a_run_of_another_format_is_named_and_left_as_it_is(folder: Path, changes: dict[str, int], number: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["format"]
    (folder / "manifest.json").write_text(text := json.dumps(manifest | changes))
    with pytest.raises(MemlabError, match=f"the format of this run is {number}, and this memlab reads format 2 alone"):
        read_arm(folder)
    assert (folder / "manifest.json").read_text() == text


def test_one_damaged_arm_is_left_out_and_named_and_the_others_are_reported(folder: Path) -> None:
    other = Path(shutil.copytree(folder, folder.parent / "two-0123456789"))
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps(with_seal(manifest | {"arm": "two"})))
    (other / "questions.parquet").write_bytes(b"junk")
    found = finished_arms(folder.parent)
    assert [one.name for one in found.arms] == ["one"]
    assert "two-0123456789/questions.parquet" in found.broken[0]
    report = build(folder.parent)
    assert [*report.comparison["arms"]] == ["one"]
    assert "two-0123456789" in report.html.read_text()
    assert "two-0123456789" in report.markdown.read_text()


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))


@pytest.mark.parametrize("text", [LAUGHS, "a: [", "!!python/object/apply:os.system [ls]", "[" * 5000, "x" * (2**20 + 1),
                                  "a: \x00"], ids=["laughs", "open", "tag", "deep", "large", "control"])
def test_a_configuration_that_is_none_is_refused_at_once(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(MemlabError, match=r"config\.yaml"):
        plain_yaml(text, Path("config.yaml"))
    assert time.perf_counter() - start < 10


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(folder: Path) -> None:
    (folder / "ranking.parquet").unlink()
    os.mkfifo(folder / "ranking.parquet")
    with pytest.raises(MemlabError, match=r"ranking\.parquet: cannot be read \(it is no plain file\)"):
        read_arm(folder)
