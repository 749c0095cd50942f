"""memlab store: what it shows, what it mends, and that it loses nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memlab.commands.store import info, main, prune, verify
from memlab.models.protocols import Floats
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.store.worker import DigestEmbedder, some_texts

TEXTS = some_texts(10)


def fill(root: Path, name: str = "tiny") -> Floats:
    """Ten segments of one vector each."""
    return Store(root, flush_seconds=0).vectors(DigestEmbedder(name, batch=1), TEXTS, "document")


def segments(root: Path) -> list[Path]:
    return sorted(root.glob("vectors/*/*.segment"))


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 255
    path.write_bytes(data)


def test_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path)
    row = info(tmp_path).row(0, named=True)
    assert (row["model"], row["role"], row["rows"], row["segments"]) == ("tiny", "document", 10, 10)
    assert row["bytes"] == sum(p.stat().st_size for p in segments(tmp_path))
    assert main(["info", f"store={tmp_path}"]) == 0
    assert "1 fingerprint, 10 rows" in capsys.readouterr().out


def test_info_survives_damage(tmp_path: Path) -> None:
    fill(tmp_path)
    segments(tmp_path)[0].write_bytes(b"")
    next(tmp_path.glob("vectors/*/identity.json")).write_text("{")
    row = info(tmp_path).row(0, named=True)
    assert (row["model"], row["rows"]) == ("(identity.json is unreadable)", 9)


def test_verify_names_the_damaged_and_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path)
    assert main(["verify", "--store", str(tmp_path)]) == 0
    victim = segments(tmp_path)[3]
    damage(victim)
    assert verify(tmp_path) == [victim]
    assert main(["verify", "--store", str(tmp_path)]) == 1
    assert f"damaged: {victim}" in capsys.readouterr().out
    assert len(segments(tmp_path)) == 10


def test_prune_removes_stale_files_and_damage_only(tmp_path: Path) -> None:
    fill(tmp_path)
    folder = segments(tmp_path)[0].parent
    old, young, aside = folder / ".1-a.tmp", folder / ".1-b.tmp", folder / "x.segment.damaged"
    for path in (old, young, aside):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 7200,) * 2)
    victim = segments(tmp_path)[0]
    damage(victim)
    assert set(prune(tmp_path)) == {old, aside, victim}
    assert young.exists()
    assert len(segments(tmp_path)) == 9


def test_prune_by_model_and_age(tmp_path: Path) -> None:
    fill(tmp_path, "old-model")
    fill(tmp_path, "new-model")
    with pytest.raises(MemlabError, match="did you mean 'new-model'"):
        prune(tmp_path, model="nwe-model")
    for empty in ("", " "):
        with pytest.raises(MemlabError, match="would match every model"):
            prune(tmp_path, model=empty)
    assert prune(tmp_path, model="old", older=1.0) == []
    for path in tmp_path.glob("vectors/*/*.segment"):
        os.utime(path, (time.time() - 2 * 86400,) * 2)
    assert len(prune(tmp_path, model="old", older=1.0)) == 1
    assert info(tmp_path)["model"].to_list() == ["new-model"]
    assert len(prune(tmp_path, older=1.0)) == 1
    assert info(tmp_path).is_empty()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path)
    assert main(["verify", f"store={tmp_path}"]) == 0
    assert capsys.readouterr().out == "every segment is whole\n"
    absent = tmp_path / "absent"
    assert main(["info", "--store", str(absent)]) == 2
    assert main(["info"]) == 0
