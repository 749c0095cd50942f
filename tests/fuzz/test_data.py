"""Readers of data sets on input that is almost right: tables, or a MemlabError."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.beam import Beam
from memlab.data.beir import Beir
from memlab.data.custom import Custom
from memlab.data.dataset import Dataset, groups
from memlab.data.documents import blocks, office
from memlab.data.documents.dataset import Documents
from memlab.data.inspect import inspect
from memlab.data.locomo import LoCoMo
from memlab.data.longmemeval import LongMemEval
from memlab.data.realtalk import RealTalk
from memlab.tables import Tables
from tests.data.documents.test_dataset import docx, pdf
from tests.data.official_records import conversation, record
from tests.data.test_beam import QUESTIONS, batches
from tests.data.test_realtalk import chat
from tests.fuzz.mutation import as_json, as_lines, damaged, fuzz, json_bytes, mutated, outcome

pytestmark = pytest.mark.slow

SESSIONS = [
    {"corpus": "ann", "session": "s1", "said_on": "2023-05-20", "turns": [
        {"role": "user", "text": "I adopted a cat.", "speaker": "Ann"}, {"role": "assistant", "text": "Lovely!"}]},
    {"corpus": "ann", "session": "s2", "said_on": None, "turns": []},
    {"corpus": "bob", "session": "s1", "said_on": "2023-05-21T10:00", "turns": [{"role": "user", "text": "Hi"}]}]
ASKED = [{"question": "q1", "corpus": "ann", "text": "Which pet?", "asked_on": "2023-06-01T18:30", "answer": "a cat",
          "category": "pets", "evidence": [{"session": "s1", "turn": 0}], "abstain": False},
         {"question": "q2", "corpus": "bob", "text": "Who?", "evidence": [{"session": "s1"}]}]
CORPUS = [{"_id": "d1", "title": "Cats", "text": "purr"}, {"_id": "d2", "text": "Dogs bark"}]
QUERIES = [{"_id": "q1", "text": "who purrs", "metadata": {}}, {"_id": "q3", "text": "who barks"}]
QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq3\td2\t1\n"

BESIDE = [{"question": "q1", "text": "When?", "answer": "in May", "evidence": [{"session": "plan.md", "turn": 0}]}]
PLAN = b"---\ntitle: Plan\ndate: 2023-05-20\n---\n# Shipping\n\nWe ship in May.\n\n```\ncode\n\n```\n"
NOTES = [{"date": "2023-05-20", "who": "Ann", "pets": ["cat", {"name": "Tom"}]}, [{"a": 1}, "A note."]]


def read(data: Callable[[], Dataset]) -> object:
    """Do with a data set what a run does with it before any stage."""
    def all_of_it() -> Tables:
        dataset = data()
        tables = dataset.load()
        dataset.identity(), dataset.notes(), dataset.name
        groups(tables["questions"], tables["evidence"], tables["turns"], dataset.grouping())
        return tables

    return outcome(all_of_it)


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@fuzz
@given(as_lines(mutated(SESSIONS)), as_lines(mutated(ASKED)), st.booleans())
def test_custom(tmp_path: Path, sessions: bytes, questions: bytes, pool: bool) -> None:
    write(tmp_path / "sessions.jsonl", sessions)
    write(tmp_path / "questions.jsonl", questions)
    read(lambda: Custom(path=tmp_path, pool=pool, grow=None if pool else 2))
    outcome(lambda: inspect(tmp_path))


@fuzz
@given(as_json(mutated([conversation()])), st.sampled_from((None, "a")))
def test_locomo(tmp_path: Path, content: bytes, split: Any) -> None:
    path = write(tmp_path / "f.json", content)
    read(lambda: LoCoMo(path=path, split=split))
    outcome(lambda: inspect(path))


@fuzz
@given(as_json(mutated([{"sample_id": "conv-1", "index": 0, "question": "q0", "error_type": "wrong", "notes": ""}])))
def test_label_errors_of_locomo(tmp_path: Path, audit: bytes) -> None:
    path = write(tmp_path / "f.json", json_bytes([conversation()]))
    errors = write(tmp_path / "audit.json", audit)
    read(lambda: LoCoMo(path=path, label_errors=errors))


@fuzz
@given(as_json(mutated([record(), record("q2_abs")])), st.sampled_from((None, "a")))
def test_longmemeval(tmp_path: Path, content: bytes, split: Any) -> None:
    path = write(tmp_path / "f.json", content)
    read(lambda: LongMemEval(path=path, split=split))
    outcome(lambda: inspect(path))


@fuzz
@given(as_json(mutated(chat())))
def test_realtalk(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "Chat_1_A_B.json", content)
    read(lambda: RealTalk(path=path))
    outcome(lambda: inspect(path))


@fuzz
@given(as_json(mutated(batches(), [{"plan-1": batches()}, {"plan-2": batches()}])), as_json(mutated(QUESTIONS)))
def test_beam(tmp_path: Path, content: bytes, questions: bytes) -> None:
    folder = tmp_path / "chats" / "100K" / "1"
    write(folder / "chat.json", content)
    write(folder / "probing_questions" / "probing_questions.json", questions)
    read(lambda: Beam(path=tmp_path))
    outcome(lambda: inspect(tmp_path))


@fuzz
@given(as_lines(mutated(CORPUS)), as_lines(mutated(QUERIES)), damaged(st.just(QRELS)))
def test_beir(tmp_path: Path, corpus: bytes, queries: bytes, qrels: bytes) -> None:
    write(tmp_path / "corpus.jsonl", corpus)
    write(tmp_path / "queries.jsonl", queries)
    write(tmp_path / "qrels" / "test.tsv", qrels)
    read(lambda: Beir(path=tmp_path))


@fuzz
@given(damaged(st.just(PLAN)), as_json(mutated(*NOTES)), as_lines(mutated(BESIDE)))
def test_documents(tmp_path: Path, plan: bytes, notes: bytes, questions: bytes) -> None:
    write(tmp_path / "plan.md", plan)
    write(tmp_path / "deeper" / "notes.json", notes)
    write(tmp_path / "questions.jsonl", questions)
    read(lambda: Documents(path=tmp_path))
    outcome(lambda: inspect(tmp_path))


@fuzz
@given(damaged(st.just(pdf("First page", "Second page"))))
def test_pdf(content: bytes) -> None:
    outcome(lambda: office.pdf(content))


@fuzz
@given(damaged(st.just(docx(lambda document: document.add_paragraph("A paragraph")))))
def test_docx(content: bytes) -> None:
    outcome(lambda: office.docx(content))


@fuzz
@given(st.binary(max_size=300) | st.text(alphabet="`~#-: \n\tdate", max_size=60).map(str.encode))
def test_texts(content: bytes) -> None:
    outcome(lambda: blocks.text(content))
    outcome(lambda: blocks.markdown(content))
