"""Training records of another form are refused: they decide which questions a model may score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.learn.cross_fit_rerank import FILE, FORMAT, read

RECORD = {"format": FORMAT, "fold": "1/3", "held_out": ["ab", "cd"], "learnt": ["ef"]}


@pytest.mark.parametrize("changes", [
    {"held_out": "abcd"}, {"held_out": None}, {"held_out": [0]}, {"learnt": "ef"}, {"learnt": [["ef"]]},
    {"learnt": {"ef": 1}}, {"format": ["x"]}])
def test_lists_of_texts_are_wanted(tmp_path: Path, changes: dict[str, object]) -> None:
    (tmp_path / FILE).write_text(json.dumps(RECORD | changes))
    with pytest.raises(MemlabError, match="is not a reranker's record"):
        read(tmp_path)


@pytest.mark.parametrize("content", ["[]", "3", "null", "[" * 100_000, "\ud83d"])
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(MemlabError, match="is not a reranker's record"):
        read(tmp_path)
