from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memlab.evaluate.score.runs import Order, Run, read_run
from memlab.support.errors import MemlabError


def read(folder: Path, text: str) -> Run:
    (folder / "run").write_text(text, encoding="utf-8")
    return read_run(folder / "run")


def order(run: Run) -> list[tuple[str, str]]:
    return [(topic, document) for topic, document, *_ in run.rows.iter_rows()]


TREC = "q1 Q0 s1 1 9.5 x\nq1 Q0 s%202 2 9.5 x\nq1 Q0 s3 3 11 x\n\nq2 Q0 s1 1 -1e3 x\n"
LOG = [{"question_id": "q1", "retrieval_results": {"query": "?", "ranked_items": [
    {"corpus_id": "s3", "text": "..."}, {"corpus_id": "s1"}, {"corpus_id": "s 2"}]}}]


@pytest.mark.parametrize(("text", "found", "expected"), [
    ("q Q0 b 1 2 x\nq Q0 c 1 2 x\nq Q0 a 1 2 x\n", "TREC run", [("q", "b"), ("q", "c"), ("q", "a")]),
    (TREC, "TREC run", [("q1", "s3"), ("q1", "s1"), ("q1", "s 2"), ("q2", "s1")]),  # by score, ties by place
    (json.dumps({"q1": {"s1": 1, "s3": 2.5}, "q2": {"s1": 0}}), "MTEB predictions", [
        ("q1", "s3"), ("q1", "s1"), ("q2", "s1")]),
    (json.dumps({"mteb_model_meta": {"name": "m", "revision": "1"}, "default": {"test": {"q1": {"s1": 1, "s3": 2}}}}),
     "MTEB predictions", [("q1", "s3"), ("q1", "s1")]),
    ("\n".join(map(json.dumps, LOG)) + "\n", "LongMemEval retrieval log", [("q1", "s3"), ("q1", "s1"), ("q1", "s 2")]),
    ('{"question_id": 7, "ranked": ["b", "a", "b"]}', "ranked lists", [("7", "b"), ("7", "a"), ("7", "b")]),
    ('[{"question_id": "x", "ranked": ["b"]}, {"question_id": "y", "ranked": []}]', "ranked lists", [("x", "b")]),
])
def test_every_format_gives_the_documents_best_first(
        tmp_path: Path, text: str, found: str, expected: list[tuple[str, str]]) -> None:
    run = read(tmp_path, text)
    assert run.format == found
    assert order(run) == expected


def test_ties_are_counted(tmp_path: Path) -> None:
    assert read(tmp_path, TREC).tied == 2


DISTANCES = "q1 Q0 a 1 0.1 x\nq1 Q0 b 2 0.9 x\nq2 Q0 a 0 0.5 x\nq2 Q0 b 0 0.7 x\nq3 Q0 a 2 0.1 x\nq3 Q0 b 1 0.2 x\n"


def test_topics_whose_ranks_contradict_their_scores_are_counted(tmp_path: Path) -> None:
    (tmp_path / "run").write_text(DISTANCES)
    highest, lowest, by_rank = (read_run(tmp_path / "run", order=order) for order in ("score", "ascending", "rank"))
    assert [(run.contradicted, run.order) for run in (highest, lowest, by_rank)] == [
        (1, "score"), (1, "ascending"), (0, "rank")]  # q1 by score, q3 by distance; the ranks of q2 are equal
    assert [document for _, document in order(highest)] == ["b", "a", "b", "a", "b", "a"]
    assert [document for _, document in order(lowest)] == ["a", "b", "a", "b", "a", "b"]
    assert [document for _, document in order(by_rank)] == ["a", "b", "a", "b", "b", "a"]
    assert lowest.rows["score"].to_list() == [-.1, -.9, -.5, -.7, -.1, -.2]


@pytest.mark.parametrize(("text", "order", "message"), [
    ('{"q": {"a": 1}}', "rank", "have no ranks.*leave out --by-rank"),
    ('{"question_id": "q", "ranked": ["b"]}', "ascending", "has no scores.*leave out --ascending"),
])
def test_an_order_that_the_file_has_no_column_for_is_refused(
        tmp_path: Path, text: str, order: Order, message: str) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(MemlabError, match=message):
        read_run(tmp_path / "run", order=order)


def test_byte_order_marks_are_read_over(tmp_path: Path) -> None:
    for text in (TREC, json.dumps({"q1": {"s1": 1}}), "\n".join(map(json.dumps, LOG))):
        rows = order(read(tmp_path, text))
        assert order(read(tmp_path, "\ufeff" + text)) == rows
    joined = read(tmp_path, f"\ufeff{TREC}\ufeffq3 Q0 s1 1 1 x\n")
    assert order(joined)[-1] == ("q3", "s1")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "run").write_bytes(TREC.encode(encoding))
    with pytest.raises(MemlabError, match=r"no UTF-8 text, but UTF-16\. Fix: save it as UTF-8"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize(("score", "said"), [
    ("null", "null"), ("true", "true"), ("NaN", "nan"), ("-Infinity", "-inf"), ('"0.9"', "the text '0.9'"),
    ("[1]", r"\[1\]"), ("1" + 400 * "0", "inf")])
def test_a_score_that_is_no_number_is_named(tmp_path: Path, score: str, said: str) -> None:
    for text in ('{"q1": {"s1": %s, "s2": 0.4}, "q2": {"s1": 1}}',
                 '{"d": {"test": {"q1": {"s1": %s}, "q2": {"s": 1}}}}'):
        with pytest.raises(MemlabError, match=f"document 's1' of 'q1': the score is {said}"):
            read(tmp_path, text % score)


def test_entries_without_scores_are_named(tmp_path: Path) -> None:
    run = read(tmp_path, json.dumps({
        "mteb_model_meta": {"name": "m"}, "model": "bm25", "about": {"by": "us"}, "q0": None, "q1": {"s1": 1},
        "q2": ["s1"], "d": {"q3": {"s2": 1}, "seconds": 3}}))
    assert order(run) == [("q1", "s1"), ("q3", "s2")]
    assert run.left_out == ("model", "about", "q0", "q2", "seconds")


def test_memlabs_own_unjudged_topics_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q1 Q0 s1 1 1.0 x\nq2 Q0 (nothing) 1 1.0 x\n")
    (tmp_path / "run.unjudged.trec").write_text("q3 Q0 s2 1 1.0 x\n")
    assert order(read_run(tmp_path / "run.trec")) == [("q1", "s1"), ("q3", "s2")]


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
    ('{"question_id": "q", "ranked": ["a"]}\n{"question_id": "q", "ranked": ["b"]}',
     "record 2: question_id 'q' was there before, in record 1"),
    (f"q Q0 a {2**70} 2 x\n", "must be numbers"),
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


@pytest.mark.parametrize("text", [
    '{"question_id": "q\\ud800", "ranked": ["s\\udfff"]}', '{"q\\ud800": {"s\\udfff": 1}}'])
def test_half_a_surrogate_in_a_name_becomes_a_question_mark(tmp_path: Path, text: str) -> None:
    assert order(read(tmp_path, text)) == [("q?", "s?")]


@pytest.mark.parametrize(("text", "said"), [
    ('{"q": {"a": 1}, "q": {"b": 1}}', "'q' is there twice"),
    ('{"q": {"a": 1, "a": 2}}', "'a' is there twice"),
    ('{"question_id": "q", "ranked": ["a"], "ranked": ["b"]}', "'ranked' is there twice"),
    ('{"question_id": "p", "ranked": ["a"]}\n{"question_id": "q", "ranked": ["a"], "ranked": []}', "line 2"),
    ('{"en": {"q": {"a": 1}}, "de": {"q": {"b": 1}}}', "topic 'q' is in 'en' and in 'de'"),
])
def test_what_is_given_twice_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(MemlabError, match=said):
        read_run(tmp_path / "run")


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.trec")
    (tmp_path / "run.unjudged.trec").symlink_to("/dev/zero")
    for path in (tmp_path / "run.trec", tmp_path / "run.unjudged.trec", Path("/dev/zero")):
        with pytest.raises(MemlabError, match=r"the run cannot be read \(it is no plain file\)"):
            read_run(path)
