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
from memlab.data.memora import Memora
from memlab.data.realmem import RealMem
from memlab.data.realtalk import RealTalk
from memlab.pipeline.tables import Tables
from tests.data import test_memora
from tests.data.documents.test_dataset import docx, pdf
from tests.data.official_records import conversation, record
from tests.data.test_beam import QUESTIONS, batches
from tests.data.test_realmem import NAME, stream
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


READERS: dict[str, tuple[Callable[[Path, Any], Dataset], dict[str, st.SearchStrategy[bytes]]]] = {
    "custom": (lambda folder, half: Custom(path=folder, split=half, grow=2), {
        "sessions.jsonl": as_lines(mutated(SESSIONS)), "questions.jsonl": as_lines(mutated(ASKED))}),
    "locomo": (lambda folder, half: LoCoMo(path=folder / "f.json", split=half), {
        "f.json": as_json(mutated([conversation()]))}),
    "audit": (lambda folder, half: LoCoMo(path=folder / "f.json", label_errors=folder / "audit.json", split=half), {
        "f.json": st.just(json_bytes([conversation()])), "audit.json": as_json(mutated([
            {"sample_id": "conv-1", "index": 0, "question": "q0", "error_type": "wrong", "notes": ""}]))}),
    "longmemeval": (lambda folder, half: LongMemEval(path=folder / "f.json", split=half), {
        "f.json": as_json(mutated([record(), record("q2_abs")]))}),
    "realtalk": (lambda folder, half: RealTalk(path=folder, split=half), {"Chat_1_A_B.json": as_json(mutated(chat()))}),
    "realmem": (lambda folder, half: RealMem(path=folder, split=half), {NAME: as_json(mutated(stream()))}),
    "memora": (lambda folder, half: Memora(path=folder, split=half, outdated="told"), {
        "ann/conversations/session_0001.json": as_json(mutated(test_memora.SESSIONS[0])),
        "ann/evaluation_questions_ann.json": as_json(mutated({"questions": test_memora.QUESTIONS}))}),
    "beam": (lambda folder, half: Beam(path=folder, split=half), {
        "chats/100K/1/chat.json": as_json(mutated(batches(), [{"plan-1": batches()}, {"plan-2": batches()}])),
        "chats/100K/1/probing_questions/probing_questions.json": as_json(mutated(QUESTIONS))}),
    "beir": (lambda folder, half: Beir(path=folder, split=half), {
        "corpus.jsonl": as_lines(mutated(CORPUS)), "queries.jsonl": as_lines(mutated(QUERIES)),
        "qrels/test.tsv": damaged(st.just(QRELS))}),
    "documents": (lambda folder, half: Documents(path=folder, split=half), {
        "plan.md": damaged(st.just(PLAN)), "deeper/notes.json": as_json(mutated(*NOTES)),
        "questions.jsonl": as_lines(mutated(BESIDE))}),
}


@pytest.mark.parametrize("name", READERS)
@fuzz
@given(st.data(), st.sampled_from((None, "a")))
def test_data_sets(tmp_path: Path, name: str, data: st.DataObject, half: Any) -> None:
    make, files = READERS[name]
    for file, content in files.items():
        write(tmp_path / file, data.draw(content))
    read(lambda: make(tmp_path, half))
    for place in (tmp_path, tmp_path / next(iter(files))):
        outcome(lambda place=place: inspect(place))  # type: ignore[misc]


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
