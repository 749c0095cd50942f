"""LongMemEval's own figures, to four decimals: the official BM25 on the official dev files, by both averages.

The figures were taken with the benchmark's public code (``src/retrieval``) on the same file.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from memlab.run import main

pytestmark = pytest.mark.slow

METRICS = ("recall_any@1", "recall_any@5", "recall_all@5", "ndcg_any@5", "recall_any@10", "recall_all@10",
           "ndcg_any@10")
FIGURES = {
    "session/strict": (126, (.7302, .8810, .7540, .7874, .9206, .8254, .8112)),
    "session/noabs": (141, (.6525, .7872, .7801, .7037, .8227, .8440, .7249)),
    "turn/strict": (126, (.5159, .7460, .5635, .5792, .8016, .6587, .6059)),
    "turn/noabs": (141, (.4610, .6667, .6099, .5176, .7163, .6950, .5415)),
}


@pytest.mark.parametrize("level", ["session", "turn"])
def test_the_command_line_gives_the_official_figures(level: str, shared_data: Path, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    path = shared_data / "longmemeval_s_cleaned.dev.json.xz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    monkeypatch.chdir(tmp_path)  # by default runs lie where the command is given
    assert main(["data=longmemeval_s", f"data.path={path}", f"write/chunk={level}", "write.chunk.roles=[user]",
                 "search/lexical=bm25_official", "search/dense=none", "track=none"]) == 0
    (file,) = (tmp_path / "runs" / "single" / "longmemeval_s").glob("*/metrics.json")
    metrics, questions = json.loads(file.read_text()), pl.read_parquet(file.with_name("questions.parquet"))
    assert questions.height == 151
    for average in ("strict", "noabs"):
        number, figures = FIGURES[f"{level}/{average}"]
        names = [f"official/{level}/{average}/{metric}" for metric in METRICS]
        assert [round(metrics[name], 4) for name in names] == list(figures)
        assert {questions[name].drop_nulls().len() for name in names} == {number}
