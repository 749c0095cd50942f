"""Faults of a disk, as the system and the libraries that write by themselves name them."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from memlab.support.errors import DiskFault, Faults, MemlabError, disk_fault, error_message
from memlab.support.files import atomic_dir, atomic_write, disk_faults
from tests.faults.limits import largest_file, small_disk

NUMBERS = np.random.default_rng(0).random(20_000)


def numpy(file: Path) -> None:
    np.save(file, NUMBERS)


def parquet(file: Path) -> None:
    pl.DataFrame({"a": NUMBERS}).write_parquet(file)


def safetensors(file: Path) -> None:
    save_file({"a": NUMBERS}, file)


def sqlite(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (?)", (bytes(100_000),))


def copied_folder(file: Path) -> None:
    with tempfile.TemporaryDirectory() as source:
        with largest_file(1 << 20):
            Path(source, "a").write_bytes(NUMBERS.tobytes())
        shutil.copytree(source, file)


def torch(file: Path) -> None:
    import torch

    torch.save({"a": torch.tensor(NUMBERS)}, file)


def torch_to_an_open_file(file: Path) -> None:
    import torch

    with file.open("wb") as out:
        torch.save({"a": torch.tensor(NUMBERS)}, out)


def tokenizers(file: Path) -> None:
    from tokenizers import Tokenizer, models

    Tokenizer(models.WordLevel({f"w{i}": i for i in range(20_000)}, unk_token="w0")).save(str(file))


def faiss(file: Path) -> None:
    import faiss

    index = faiss.IndexFlatL2(16)
    index.add(NUMBERS.reshape(-1, 16).astype(np.float32))
    faiss.write_index(index, str(file))


WRITERS = [numpy, parquet, safetensors, sqlite, copied_folder,
           *(pytest.param(one, marks=pytest.mark.slow) for one in (torch, torch_to_an_open_file, tokenizers, faiss))]


@pytest.mark.parametrize("write", WRITERS)
def test_what_libraries_raise_on_a_full_disk_is_one_sentence(tmp_path: Path, write: Callable[[Path], Any]) -> None:
    file = tmp_path / "disk" / "file"
    with small_disk(file.parent, "64k"), pytest.raises(DiskFault) as raised, disk_faults(file, other="give out=DIR"):
        write(file)
    assert str(raised.value) == (f"{file}: cannot be written: the disk is full. Fix: free some space there, "
                                 "or give out=DIR, and try again; finished work is kept")


def test_what_stands_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(DiskFault, match=f"^{tmp_path / 'file'}: a file is there, where a folder is needed. Fix: move"):
        atomic_write(tmp_path / "file" / "deep" / "a.json", "x")
    with pytest.raises(DiskFault, match="a file is there, where a folder is needed"), atomic_dir(tmp_path / "file"):
        pass
    with pytest.raises(DiskFault, match=f"^{tmp_path / 'folder'}: cannot be written: a folder is there"):
        atomic_write(tmp_path / "folder", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_that_is_removed_meanwhile_is_told(tmp_path: Path) -> None:
    def lose() -> None:
        with atomic_dir(tmp_path / "runs" / "arm") as temporary:
            shutil.rmtree(tmp_path / "runs")
            (temporary / "a").write_text("x")

    with pytest.raises(DiskFault, match=f"^{tmp_path / 'runs' / 'arm'}: cannot be written: its folder is not there"):
        lose()


@pytest.mark.parametrize("write", [lambda place: atomic_write(place, "x"), lambda place: atomic_dir(place).__enter__()])
@pytest.mark.parametrize("root", ["/proc/x", "/dev/null/x", "/sys/x"])
def test_a_folder_that_cannot_be_made_is_a_fault_of_the_disk(root: str, write: Callable[[Path], object]) -> None:
    with pytest.raises(DiskFault, match=f"^({root}|/dev/null)") as told:
        write(Path(root) / "runs" / "arm")
    assert "choose another place" in str(told.value)


def test_other_files_and_other_errors_keep_their_names(tmp_path: Path) -> None:
    for error in (FileNotFoundError(errno.ENOENT, "x", "code.py"), ConnectionRefusedError(errno.ECONNREFUSED, "x"),
                  ValueError("a full disk"), MemlabError("No space left on device"),
                  ValueError("No such file or directory (os error 2)")):
        assert disk_fault(error) is None
        with pytest.raises(type(error)) as raised, disk_faults(tmp_path):
            raise error
        assert raised.value is error
    source = disk_fault(PermissionError(errno.EACCES, "x", "/models/base"), tmp_path)
    assert str(source).startswith("/models/base: permission denied. Fix: allow reading")
    assert str(disk_fault(OSError(errno.EBADF, "x", 3), tmp_path)) == "None"  # the number of an open file


def test_an_error_that_a_full_disk_lies_behind_is_one() -> None:
    error = RuntimeError("unexpected pos 64 vs 0")
    error.__context__ = OSError(errno.EDQUOT, "x")
    assert "the disk quota is used up" in error_message(error)
    error.__context__ = PermissionError(errno.EACCES, "x")  # perhaps that of a cache that does without
    assert "the disk is full" in error_message(error)
    assert error_message(KeyError("x")) == "KeyError: 'x'"


def test_a_message_does_not_steer_a_terminal() -> None:
    name = "a\x1b[31m\x9b\x07\u202eb"
    for error in (MemlabError(f"there is no '{name}'", where=name, fix=name), Faults([f"no {name}"])):
        assert str(error).isprintable() or str(error).replace("\n", "").isprintable()
        assert "\\x1b[31m\\x9b\\x07\\u202eb" in str(error)
