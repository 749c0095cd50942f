"""LongMemEval: every quirk of the format on a small made file, and the counts of the dev files."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.data.longmemeval import LongMemEval
from memlab.pipeline.tables import Tables, text_hash
from memlab.support.errors import MemlabError
from tests.data.official_records import record, turn, write


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    records = [record(), record("q2_abs", answer="Not said.", question_type="temporal-reasoning"),
               record("q3", answer_session_ids=["answer_9"])]
    return LongMemEval(path=write(tmp_path / "s.json", records)).load()


def test_sessions_are_sorted_stably_by_the_minute(tables: Tables) -> None:
    first = tables["sessions"].filter(pl.col("corpus") == 0)
    day = datetime(2023, 5, 20)
    assert first["said_on"].to_list() == [day.replace(hour=2, minute=21)] * 2 + [
        day.replace(hour=23, minute=10), datetime(2023, 5, 30, 22)]
    names = tables["ids"].filter(pl.col("kind") == "session", pl.col("corpus") == 0)
    assert names.select("session", "name").rows() == [(0, "answer_1"), (1, "answer_2"), (2, "f1"), (3, "f1")]


def test_texts_are_stored_once_and_blank_turns_kept(tables: Tables) -> None:
    assert tables["texts"]["text_id"].is_unique().all()
    turns = tables["turns"].filter(pl.col("corpus") == 0)
    assert turns.height == 9
    assert turns["text_id"].to_list().count(text_hash("  ")) == 2
    assert turns["speaker"].null_count() == 9
    assert turns["role"].to_list()[:3] == ["user", "assistant", "user"]


def test_evidence_is_turns_where_marked_and_the_session_where_not(tables: Tables) -> None:
    assert tables["evidence"].rows() == [(0, 0, 1), (0, 0, 2), (0, 1, None), (1, 0, 1), (1, 0, 2), (1, 1, None)]


def test_updated_evidence_is_outdated_before_its_latest_session_unless_the_past_is_asked_for(tmp_path: Path) -> None:
    update = {"question_type": "knowledge-update"}
    records = [record(**update), record("q2", **update, question="How many did I own before?"),
               record("q3_abs", **update), record("q4")]
    tables = LongMemEval(path=write(tmp_path / "s.json", records)).load()
    assert tables["outdated"].rows() == [(0, 0, 1), (0, 0, 2)]


def test_gold(tables: Tables) -> None:
    gold = tables["gold"]
    assert gold["answer"].to_list() == ["3", "Not said.", "3"]
    assert gold["abstain"].to_list() == [False, True, False]
    assert gold["scored"].to_list() == [True, False, False]  # the third has no evidence in its haystack
    assert gold["category"].to_list() == ["multi-session", "temporal-reasoning", "multi-session"]


def test_ids_leave_no_trace_outside_their_table(tables: Tables) -> None:
    for name in ("texts", "sessions", "turns", "questions"):
        assert "answer_" not in str(tables[name].rows())
        assert "_abs" not in str(tables[name].rows())
    named = tables["ids"].filter(pl.col("kind") == "turn", pl.col("corpus") == 0)["name"].to_list()
    assert named[:3] == ["answer_1_1", "answer_1_2", "answer_1_3"]


def test_reading_stops_at_the_limit_and_gives_what_cutting_would(tmp_path: Path) -> None:
    records: list[Any] = [record(f"q{i}", question=f"{i}?", question_type=kind)
                          for i, kind in enumerate(["multi-session", "temporal-reasoning"] * 3)]
    path = write(tmp_path / "s.json", records)
    tables = LongMemEval(path=path, limit=2, types=["temporal-reasoning"]).load()
    assert tables["questions"].select("question", "corpus").rows() == [(1, 1), (3, 3)]
    broken_end = write(tmp_path / "t.json", [*records, {"question_id": 3}])
    assert LongMemEval(path=broken_end, limit=6).load()["questions"].height == 6
    with pytest.raises(MemlabError, match="no question is of the types knowledge-update"):
        LongMemEval(path=path, types=["knowledge-update"]).load()


def test_the_whole_file_is_never_parsed_at_once(tmp_path: Path) -> None:
    import tracemalloc

    path = write(tmp_path / "s.json", [record(f"q{i}", haystack_sessions=[
        [turn("user", "filler " * 3000)], [turn("user", "a")], [turn("user", "b")], [turn("user", "filler " * 3000)]])
        for i in range(300)])  # 12 MB of text, all the same
    tracemalloc.start()
    LongMemEval(path=path).load()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6


def broken(**changes: Any) -> list[dict[str, Any]]:
    return [record(), {k: v for k, v in record("q2", **changes).items() if v is not ...}]


@pytest.mark.parametrize(("changes", "message"), [
    ({"answer": ...}, r"record 1 \(q2\), field answer: is missing, expected text or"),
    ({"answer": [1]}, r"field answer: expected text or .*, got a list"),
    ({"question_type": "else"}, r"field question_type: expected one of single-session-user.*, got 'else'"),
    ({"question_date": "yesterday"}, r"field question_date: 'yesterday' is not a date. Fix: write it as 2023/05/20"),
    ({"question_date": "2023/13/20 (Sat) 02:21"}, r"field question_date: '2023/13/20"),
    ({"haystack_dates": ["2023/05/20 (Sat) 02:21"]}, r"expected as many dates and ids as sessions, got 1, 4, 4"),
    ({"haystack_sessions": [[], [], [], "text"]}, r"field haystack_sessions\[3\]: expected a list of turns"),
    ({"haystack_sessions": [[], [], [], [turn("system", "x")]]}, r"sessions\[3\]\[0\], field role: expected user or"),
    ({"haystack_sessions": [[], [], [], [{"role": "user"}]]}, r"sessions\[3\]\[0\], field content: is missing"),
    ({"haystack_sessions": [[], [], [], [turn("user", "x", has_answer="no")]]}, r"has_answer: expected true or false"),
    ({"haystack_sessions": [[], [], [], ["x"]]}, r"sessions\[3\]\[0\]: expected an object, got text"),
    ({"haystack_session_ids": [1, "a", "b", "c"]}, r"haystack_session_ids\[0\]: expected text, got a whole number"),
])
def test_faults_name_file_record_field_and_what_was_expected(tmp_path: Path, changes: Any, message: str) -> None:
    path = write(tmp_path / "bad.json", broken(**changes))
    with pytest.raises(MemlabError, match=message) as caught:
        LongMemEval(path=path).load()
    assert "bad.json, record 1" in str(caught.value)


def test_other_files_are_recognised(tmp_path: Path) -> None:
    locomo = write(tmp_path / "l.json", [{"sample_id": "c", "conversation": {}, "qa": []}])
    with pytest.raises(MemlabError, match=r"this is a LoCoMo record, expected LongMemEval.*data=locomo"):
        LongMemEval(path=locomo).load()
    only = record(answer_session_ids=["f1", "answer_1", "answer_2"])
    oracle = write(tmp_path / "o.json", [only])
    with pytest.raises(MemlabError, match="not the file of longmemeval_s.*data=longmemeval_oracle"):
        LongMemEval(path=oracle).load()
    assert LongMemEval(variant="oracle", path=oracle).load()["questions"].height == 1
    full = write(tmp_path / "s.json", [record()])
    with pytest.raises(MemlabError, match="not the file of longmemeval_oracle"):
        LongMemEval(variant="oracle", path=full).load()


def test_truncated_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([record(), record("q2")])[:-500])
    with pytest.raises(MemlabError, match=r"bad.json, record 1: the JSON ends too early"):
        LongMemEval(path=path).load()
    for variant in ("oracle", "s", "m"):
        with pytest.raises(MemlabError, match=f"memlab data fetch longmemeval_{variant}"):
            LongMemEval(variant=variant)  # type: ignore[arg-type]


def test_dev_file_counts(shared_data: Path) -> None:
    tables = LongMemEval(path=shared_data / "longmemeval_s_cleaned.dev.json.xz").load()
    assert tables["sessions"].height == 7215
    sessions = tables["ids"].filter(pl.col("kind") == "session")
    assert sessions["name"].n_unique() == 6740
    repeated = sessions.group_by("corpus", "name").len().filter(pl.col("len") > 1)
    assert repeated["corpus"].n_unique() == 3
    assert tables["questions"].height == 151
    assert tables["gold"]["abstain"].sum() == 10
    assert tables["gold"]["scored"].sum() == 141
    # every evidence session is there, and only it: by the prefix that must never reach a stage
    named = sessions.join(tables["evidence"].rename({"question": "corpus"}), on=["corpus", "session"], how="semi")
    assert named.height == sessions["name"].str.starts_with("answer_").sum() == 284
    assert named["name"].str.starts_with("answer_").all()
    # the as-of rule works by day: no session lies on a day after its question
    late = tables["sessions"].join(tables["questions"], on="corpus").filter(
        pl.col("said_on").dt.date() > pl.col("asked_on").dt.date())
    assert late.height == 0
    ordered = tables["sessions"].sort("corpus", "session")
    assert ordered.equals(ordered.sort("corpus", "said_on", maintain_order=True))


def test_an_evidence_session_that_the_haystack_lacks_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", [record(answer_session_ids=["answer_1", "answer_2", "answer_3"])])
    (what, number, of), = LongMemEval(path=path).load()["notes"].rows()
    assert (what.partition(",")[0], number, of) == ("pieces of evidence are cited by the file and not in it", 1, 4)
