"""Readers of foreign runs on input that is almost right: rows, or a MemlabError."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.custom import Custom
from memlab.evaluate.score.arm import match
from memlab.evaluate.score.runs import read_run
from memlab.pipeline.tables import Tables
from tests.fuzz.mutation import TEXTS, as_json, as_lines, damaged, fuzz, mutated, outcome
from tests.fuzz.test_data import ASKED, SESSIONS

pytestmark = pytest.mark.slow

LOG = [{"question_id": "q1", "retrieval_results": {"query": "?", "ranked_items": [
    {"corpus_id": "s1", "text": "..."}, {"corpus_id": "s2"}]}}]
RANKED = [{"question_id": "q1", "ranked": ["s1", "s2"]}, {"question_id": "q2", "ranked": ["s1:0"]}]
MTEB = {"mteb_model_meta": {"name": "m"}, "default": {"test": {"q1": {"s1": 1, "s2": 2.5}, "q2": {"s1": -1}}}}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("data")
    for name, rows in (("sessions.jsonl", SESSIONS), ("questions.jsonl", ASKED)):
        (folder / name).write_text("\n".join(map(json.dumps, rows)))
    return Custom(path=folder).load()


WORDS = st.one_of(st.sampled_from(("q1", "q2", "Q0", "s1", "s2", "1", "2", "9.5", "-1e3", "nan", "inf", "%zz%00")),
                  st.sampled_from(TEXTS), st.text(max_size=3))
ROWS = st.lists(st.lists(WORDS, min_size=5, max_size=7) | st.just(["q1", "Q0", "s1", "1", "9.5", "x"]), max_size=6).map(
    lambda rows: "\n".join(" ".join(row) for row in rows).encode("utf-8", "surrogatepass"))


@fuzz
@given(damaged(ROWS) | as_json(mutated(MTEB, RANKED, LOG)) | as_lines(mutated(LOG, RANKED)) | st.binary(max_size=200))
def test_runs(tmp_path: Path, tables: Tables, content: bytes) -> None:
    (tmp_path / "run").write_bytes(content)
    outcome(lambda: match(read_run(tmp_path / "run"), tables).ranking.height)
