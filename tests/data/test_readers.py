"""Files that would take all memory: each is refused in a sentence, in a process of its own that is measured."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from tests.memory_growth import outcome

LOCOMO = "from memlab.data.locomo import LoCoMo"
LONGMEMEVAL = "from memlab.data.longmemeval import LongMemEval"
WHOLE = "from memlab.data import readers"
READ = {LOCOMO: "LoCoMo(path=path).load()", LONGMEMEVAL: "LongMemEval(path=path).load()",
        WHOLE: "readers.whole(path, dict)"}


@pytest.mark.slow
@pytest.mark.parametrize(("imports", "opening"), [
    (LOCOMO, b'[{"sample_id": "x", "conversation": [{"b": [[['), (LONGMEMEVAL, b"["), (WHOLE, b'{"a":')])
def test_deep_json_is_refused_before_it_is_parsed(tmp_path: Path, imports: str, opening: bytes) -> None:
    path = tmp_path / "deep.json"
    path.write_bytes(opening * 40_000)
    told = outcome(imports, READ[imports], path)
    assert told.startswith(f"{path}: lists and objects are nested more than 100 levels deep")


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "pack", "start", "part", "problem"), [
    (".gz", gzip.compress, b'[{"sample_id": "', b"a" * 1_000_000, "one text has more than 10 MB"),
    (".xz", lzma.compress, b"[", b" " * 1_000_000, r"MB unpack to more than 50 MB")])
def test_packed_bombs_are_refused_while_they_are_unpacked(tmp_path: Path, ending: str, pack, start: bytes, part: bytes,
                                                          problem: str) -> None:
    path = tmp_path / f"bomb.json{ending}"
    path.write_bytes(pack(start + part * 300))
    assert path.stat().st_size < 10_000_000
    told = outcome(LOCOMO, READ[LOCOMO], path)
    assert problem in told
    assert told.startswith(f"{path}: ")


@pytest.mark.slow
@pytest.mark.parametrize(("imports", "small"), [
    (LOCOMO, b"[],"), (LONGMEMEVAL, b'{"":0},'), (WHOLE, b'"",'), (LOCOMO, b"1.5,")])
def test_packed_files_of_small_values_are_refused_while_they_are_unpacked(tmp_path: Path, imports: str,
                                                                         small: bytes) -> None:
    path = tmp_path / "small.json.gz"
    path.write_bytes(gzip.compress(b'[{"a":[' + small * (48_000_000 // len(small))))
    assert path.stat().st_size < 400_000
    assert outcome(imports, READ[imports], path).startswith(f"{path}: it holds more than 2,000,000 values")
