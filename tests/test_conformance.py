"""LongMemEval's own figures, to four decimals: the official BM25 on the official dev files, by both averages.

The figures were taken with the benchmark's public code (``src/retrieval``) on the same file.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from memlab.data.longmemeval import LongMemEval
from memlab.evaluate.retrieval import official_metrics
from memlab.evaluate.statistics import mean
from memlab.run import main
from memlab.search.bm25 import BM25Okapi
from memlab.store import Store
from memlab.tables import Tables
from memlab.write.chunk import SessionChunker, TurnChunker
from tests.small import lexical

pytestmark = pytest.mark.slow

METRICS = ("recall_any@1", "recall_any@5", "recall_all@5", "ndcg_any@5", "recall_any@10", "recall_all@10",
           "ndcg_any@10")
FIGURES = {
    "session/strict": (126, (.7302, .8810, .7540, .7874, .9206, .8254, .8112)),
    "session/noabs": (141, (.6525, .7872, .7801, .7037, .8227, .8440, .7249)),
    "turn/strict": (126, (.5159, .7460, .5635, .5792, .8016, .6587, .6059)),
    "turn/noabs": (141, (.4610, .6667, .6099, .5176, .7163, .6950, .5415)),
}
CHUNKS = {"session": SessionChunker(roles=("user",)), "turn": TurnChunker(roles=("user",))}


@pytest.fixture(scope="module")
def file(shared_data: Path) -> Path:
    path = shared_data / "longmemeval_s_cleaned.dev.json.xz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="module")
def haystacks(file: Path) -> Tables:
    return LongMemEval(variant="s", path=file).load()


@pytest.mark.parametrize("level", ["session", "turn"])
def test_the_pipeline_gives_the_official_figures(level: str, haystacks: Tables, tmp_path: Path) -> None:
    tables = lexical(chunk=CHUNKS[level], lexical=BM25Okapi()).run(haystacks, Store(tmp_path))
    questions = official_metrics(tables)
    for average in ("strict", "noabs"):
        number, figures = FIGURES[f"{level}/{average}"]
        columns = [questions[f"official/{level}/{average}/{metric}"].drop_nulls() for metric in METRICS]
        assert {len(c) for c in columns} == {number}
        assert [round(mean(c), 4) for c in columns] == list(figures)


def command(file: Path, level: str) -> list[str]:
    return ["data=longmemeval_s", f"data.path={file}", f"write/chunk={level}", "write.chunk.roles=[user]",
            "search/lexical=bm25_official", "search/dense=none"]


def check(root: Path, level: str) -> None:
    (folder,) = (root / "runs" / "single" / "longmemeval_s").glob("*/metrics.json")
    metrics = json.loads(folder.read_text())
    for average in ("strict", "noabs"):
        found = [round(metrics[f"official/{level}/{average}/{metric}"], 4) for metric in METRICS]
        assert found == list(FIGURES[f"{level}/{average}"][1])
    questions = pl.read_parquet(folder.parent / "questions.parquet")
    assert questions.height == 151


@pytest.mark.parametrize("level", ["session", "turn"])
def test_the_command_line_gives_them(level: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # by default runs lie where the command is given
    assert main([*command(file, level), "track=none"]) == 0
    check(tmp_path, level)
