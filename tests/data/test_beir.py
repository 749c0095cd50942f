from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlab.data.beir import Beir
from memlab.data.dataset import Dataset
from memlab.support.errors import MemlabError


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    corpus = [{"_id": "d1", "title": "Cats", "text": "purr"}, {"_id": "d2", "text": "Dogs bark"},
              {"_id": "d3", "title": "", "text": "Fish"}]
    queries = [{"_id": "q1", "text": "who purrs", "metadata": {}}, {"_id": "q2", "text": "not judged"},
               {"_id": "q3", "text": "who barks"}, {"_id": "q4", "text": "who flies"}]
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (tmp_path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t1\nq1\td2\t0\nq3\td2\t1\nq4\tgone\t1\n")
    return tmp_path


def test_documents_are_sessions_of_one_turn(tiny):
    data = Beir(path=str(tiny))
    assert isinstance(data, Dataset)
    tables = data.load()
    texts = dict(tables["texts"].iter_rows())
    assert [texts[h] for h in tables["turns"]["text_id"]] == ["Cats purr", "Dogs bark", "Fish"]
    assert tables["sessions"]["said_on"].null_count() == 3
    assert [texts[h] for h in tables["questions"]["text_id"]] == ["who purrs", "who barks", "who flies"]
    assert tables["evidence"].rows() == [(0, 0, 0), (0, 2, 0), (2, 1, 0)]
    assert tables["gold"]["scored"].to_list() == [True, True, False]  # a document that is gone cannot be found
    assert Beir(path=tiny, limit=1).load()["questions"].height == 1
    assert data.grouping() == "question"


def test_identity_follows_the_judgements(tiny):
    before = Beir(path=tiny).identity()
    (tiny / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert Beir(path=tiny).identity() != before
    assert str(tiny) not in str(before)


def test_faults_name_their_place(tiny):
    with pytest.raises(MemlabError, match=r"dev\.tsv is not there"):
        Beir(path=tiny, qrels="dev")
    (tiny / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1 d1 1\n")
    with pytest.raises(MemlabError, match="line 2.*separated by tabs"):
        Beir(path=tiny).load()
    (tiny / "corpus.jsonl").write_text('{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}\n')
    with pytest.raises(MemlabError, match="line 2.*was there before"):
        Beir(path=tiny).load()
    (tiny / "corpus.jsonl").write_text('{"_id": "d1"}\n')
    with pytest.raises(MemlabError, match="line 1, field text: is missing"):
        Beir(path=tiny).load()


@pytest.mark.parametrize(("file", "content", "problem"), [
    ("qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\t1\xff\n", r"test\.tsv.*cannot be read"),
    ("qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq1\t" + b"d" * 200_000 + b"\t1\n", r"test\.tsv.*cannot be read"),
    ("queries.jsonl", b'["q1"]\n', r"queries\.jsonl, line 1: expected an object"),
    ("corpus.jsonl", b'["d1"]\n', r"corpus\.jsonl, line 1: expected an object"),
])
def test_a_file_that_is_no_text_or_no_table_is_named(tiny: Path, file: str, content: bytes, problem: str) -> None:
    (tiny / file).write_bytes(content)
    with pytest.raises(MemlabError, match=problem):
        Beir(path=tiny).load()


def test_half_a_surrogate_in_an_id_or_text_becomes_a_question_mark(tiny: Path) -> None:
    (tiny / "corpus.jsonl").write_text('{"_id": "d\\ud800", "title": "C\\udfff", "text": "purr \\ud83d"}\n')
    (tiny / "queries.jsonl").write_text('{"_id": "q1", "text": "who \\ud800"}\n{"_id": "q\\ud800", "text": "no"}\n')
    tables = Beir(path=tiny).load()
    assert sorted(tables["texts"]["text"]) == ["C? purr ?", "who ?"]
    assert "d?" in tables["ids"]["name"].to_list()


def test_what_no_metric_asks_for_is_counted(tiny: Path) -> None:
    with (tiny / "qrels" / "test.tsv").open("a") as file:
        file.write("q3\talso gone\t1\nq9\td1\t1\n")
    assert Beir(path=tiny).load()["notes"].rows() == [
        ("pieces of evidence are cited by the file and not in it, so no metric asks for them", 2, 5),
        ("queries have no judgement and are left out", 1, 4),
        ("queries are judged and have no text, so they are left out", 1, 4)]
