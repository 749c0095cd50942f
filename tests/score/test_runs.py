from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.score.runs import Run, read_run


def read(folder: Path, text: str) -> Run:
    (folder / "run").write_text(text, encoding="utf-8")
    return read_run(folder / "run")


def order(run: Run) -> list[tuple[str, str]]:
    return [(topic, document) for topic, document, *_ in run.rows.iter_rows()]


TREC = "q1 Q0 s1 1 9.5 x\nq1 Q0 s%202 2 9.5 x\nq1 Q0 s3 3 11 x\n\nq2 Q0 s1 1 -1e3 x\n"
LOG = [{"question_id": "q1", "retrieval_results": {"query": "?", "ranked_items": [
    {"corpus_id": "s3", "text": "..."}, {"corpus_id": "s1"}, {"corpus_id": "s 2"}]}}]


@pytest.mark.parametrize(("text", "found", "expected"), [
    (TREC, "TREC run", [("q1", "s3"), ("q1", "s1"), ("q1", "s 2"), ("q2", "s1")]),  # by score, ties by place
    (json.dumps({"q1": {"s1": 1, "s3": 2.5}, "q2": {"s1": 0}}), "MTEB predictions", [
        ("q1", "s3"), ("q1", "s1"), ("q2", "s1")]),
    (json.dumps({"mteb_model_meta": {"name": "m", "revision": "1"}, "default": {"test": {"q1": {"s1": 1, "s3": 2}}}}),
     "MTEB predictions", [("q1", "s3"), ("q1", "s1")]),
    ("\n".join(map(json.dumps, LOG)) + "\n", "LongMemEval retrieval log", [("q1", "s3"), ("q1", "s1"), ("q1", "s 2")]),
    ('{"question_id": 7, "ranked": ["b", "a", "b"]}', "ranked lists", [("7", "b"), ("7", "a")]),
    ('[{"question_id": "x", "ranked": ["b"]}, {"question_id": "y", "ranked": []}]', "ranked lists", [("x", "b")]),
])
def test_every_format_gives_the_documents_best_first(
        tmp_path: Path, text: str, found: str, expected: list[tuple[str, str]]) -> None:
    run = read(tmp_path, text)
    assert run.format == found
    assert order(run) == expected


def test_ties_and_repeated_documents_are_counted(tmp_path: Path) -> None:
    assert read(tmp_path, TREC).tied == 2
    assert read(tmp_path, TREC).repeated == 0
    assert read(tmp_path, "q Q0 a 1 3 x\nq Q0 b 2 2 x\nq Q0 a 3 1 x\n").repeated == 1


@pytest.mark.parametrize(("text", "message"), [
    ("", "the run has no rows"),
    ("q1 s1 0.3\n", "line 1: 3 columns, where a TREC run has six"),
    ("q Q0 a 1 2 x\nq Q0 a one 2 x\n", "line 2: rank 'one' and score '2' must be numbers"),
    ("q Q0 a 1 nan x\n", "line 1: rank '1' and score 'nan' must be numbers"),
    ('{"a": 1}', "the run has no rows"),
    ('{"question_id": "q"}', "record 1: no list of documents"),
    ('{"question_id": "q", "ranked": [1]}', "record 1: document 1 has no name"),
    ('{"question_id": "q", "ranked": []}\n{', "line 2: no JSON"),
    ("[1]", "record 1: question_id is missing"),
    ("[" * 100_000, "nested too deeply"),
    ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
])
def test_what_is_no_run_is_refused_with_the_place_and_what_is_expected(
        tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MemlabError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value)
    assert "Fix: " in str(raised.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="the run cannot be read"):
        read_run(tmp_path / "nothing")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MemlabError, match="no UTF-8 text"):
        read_run(tmp_path / "bytes")


VALUES = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                          st.sampled_from(["question_id", "ranked", "retrieval_results", "ranked_items", "corpus_id"])
                          | st.text(max_size=3), inner, max_size=3), max_leaves=12)


@given(st.one_of(VALUES.map(json.dumps), st.text(max_size=80), st.lists(VALUES.map(json.dumps)).map("\n".join)))
def test_any_text_is_a_run_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "run").write_text(text.encode("utf-8", "replace").decode(), encoding="utf-8")
    try:
        run = read_run(folder / "run")
    except MemlabError:
        return
    assert run.rows.height > 0
    assert run.rows["score"].is_finite().all()


@pytest.mark.parametrize("text", [
    '{"question_id": "q\\ud800", "ranked": ["s\\udfff"]}', '{"q\\ud800": {"s\\udfff": 1}}'])
def test_half_a_surrogate_in_a_name_becomes_a_question_mark(tmp_path: Path, text: str) -> None:
    assert order(read(tmp_path, text)) == [("q?", "s?")]


def test_a_score_beyond_all_numbers_is_named(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="document 's1' of 'q1'"):
        read(tmp_path, '{"q1": {"s1": 1' + "0" * 400 + "}}")
