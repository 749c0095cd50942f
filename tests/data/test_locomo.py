"""LoCoMo: every quirk of the format on a small made file, and the counts of the dev file."""

from __future__ import annotations

import gzip
import json
import lzma
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.data.locomo import LoCoMo
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError
from tests.data.official_records import conversation, write


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return LoCoMo(path=write(tmp_path / "l.json", [conversation()])).load()


def said(tables: Tables) -> list[str]:
    turns = tables["turns"].join(tables["texts"], on="text_id", maintain_order="left")
    return turns["text"].to_list()


def test_sessions_are_numbered_by_date_and_a_date_without_session_is_passed_over(tables: Tables) -> None:
    assert tables["sessions"].rows() == [(0, 0, datetime(2023, 5, 8, 13, 56)), (0, 1, datetime(2023, 5, 9, 0, 5)),
                                         (0, 2, datetime(2023, 6, 1, 10, 0))]
    names = tables["ids"].filter(pl.col("kind") == "session")["name"].to_list()
    assert names == ["session_1", "session_10", "session_3"]


def test_captions_belong_to_the_text_and_image_queries_never_appear(tables: Tables) -> None:
    assert said(tables) == ["Hello Bob", "Hi [image: a red bike]", "", "[image: a lake]", "Bye"]
    assert "catalogue" not in " ".join(tables["texts"]["text"])


def test_both_people_are_users_with_a_name(tables: Tables) -> None:
    assert tables["turns"]["role"].unique().to_list() == ["user"]
    assert tables["turns"]["speaker"].to_list() == ["Ann", "Bob", "Ann", "Bob", "Ann"]


def test_evidence_is_read_from_malformed_ids_once_a_turn(tables: Tables) -> None:
    assert tables["evidence"].rows() == [(0, 0, 1), (1, 0, 0), (1, 1, 1), (2, 2, 0), (4, 2, 0), (6, 0, 0)]


def test_gold(tables: Tables) -> None:
    gold = tables["gold"]
    assert gold["answer"].to_list() == ["2022", "Yes", "a; b", "x", None, None, "again"]
    assert gold["category"].to_list() == ["temporal", "open-domain", "multi-hop", "single-hop", "adversarial",
                                          "adversarial", "single-hop"]
    assert gold["abstain"].to_list() == [False, False, False, False, True, True, False]
    assert gold["scored"].to_list() == [True, True, True, False, True, False, True]
    assert gold["label_error"].null_count() == 7


def test_repeated_questions_stay_apart_and_are_asked_on_the_last_day(tables: Tables) -> None:
    names = tables["ids"].filter(pl.col("kind") == "question").select("question", "name").rows()
    assert names[0] == (0, "conv-1:0")
    assert names[6] == (6, "conv-1:6")
    assert tables["questions"]["text_id"][0] == tables["questions"]["text_id"][6]
    assert tables["questions"]["asked_on"].unique().to_list() == [datetime(2023, 6, 1, 10, 0)]


def test_label_errors_mark_questions_and_must_fit_the_release(tmp_path: Path) -> None:
    file = write(tmp_path / "l.json", [conversation()])
    finding = {"sample_id": "conv-1", "index": 1, "error_type": "HALLUCINATION", "question": "q1"}
    other = {**finding, "sample_id": "conv-99"}
    data = LoCoMo(path=file, label_errors=write(tmp_path / "e.json", [finding, other]))
    assert data.load()["gold"]["label_error"].to_list() == [None, "HALLUCINATION"] + [None] * 5
    assert data.identity() != LoCoMo(path=file).identity()
    wrong = LoCoMo(path=file, label_errors=write(tmp_path / "w.json", [{**finding, "question": "another"}]))
    with pytest.raises(MemlabError, match=r"record 0 \(conv-1\), field qa\[1\]: the label audit names another"):
        wrong.load()


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_packed_files_read_the_same(tmp_path: Path, tables: Tables, suffix: str, opener: Any) -> None:
    packed = tmp_path / f"l.json{suffix}"
    with opener(packed, "wt") as stream:
        json.dump([conversation()], stream)
    assert LoCoMo(path=packed).load().digest(tables) == tables.digest(tables)


def broken(change: Any) -> list[dict[str, Any]]:
    record = conversation()
    change(record)
    return [conversation(), record]


@pytest.mark.parametrize(("change", "message"), [
    (lambda r: r.pop("qa"), r"record 1 \(conv-1\), field qa: is missing, expected a list"),
    (lambda r: r["qa"][2].pop("evidence"), r"\(conv-1\), field qa\[2\], field evidence: is missing, expected a list"),
    (lambda r: r["qa"][0].update(category=6), r"qa\[0\], field category: expected a number from 1 to 5, got 6"),
    (lambda r: r["qa"][0].update(category=True), r"field category: expected a whole number, got true or false"),
    (lambda r: r["qa"][0].update(answer=None), r"field answer: expected text or .*, got null"),
    (lambda r: r["qa"][0].update(evidence=[3]), r"field evidence: expected text, got a whole number"),
    (lambda r: r["conversation"]["session_3"][0].pop("text"), r"conversation\.session_3\[0\], field text: is missing"),
    (lambda r: r["conversation"]["session_3"][0].update(blip_caption=[]), r"blip_caption: expected text, got a list"),
    (lambda r: r["conversation"].update(session_3_date_time="2023-05-08"), r"'2023-05-08' is not a date. Fix: write"),
    (lambda r: r["conversation"].pop("session_3_date_time"), r"field session_3_date_time: is missing"),
    (lambda r: r.update(conversation={"speaker_a": "x"}), r"there is no session, expected a list under session_1"),
])
def test_faults_name_file_record_field_and_what_was_expected(tmp_path: Path, change: Any, message: str) -> None:
    path = write(tmp_path / "bad.json", broken(change))
    with pytest.raises(MemlabError, match=message) as caught:
        LoCoMo(path=path).load()
    assert "bad.json, record 1" in str(caught.value)


@pytest.mark.parametrize(("content", "message"), [
    (json.dumps([conversation(), conversation()])[:-300], "record 1: the JSON ends too early"),
    ("", "the JSON ends too early"),
    ("not json at all", "record 0"),
    ("{}", "there is no record; expected a JSON list"),
    ("[]", "there is no record"),
    ("[1]", "record 0: expected an object, got a whole number"),
    (gzip.compress(json.dumps([conversation()] * 50).encode())[:-30], "cannot be read"),
    (lzma.compress(json.dumps([conversation()] * 50).encode())[:-30], "cannot be read"),
])
def test_damaged_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    ending = {b"\x1f": ".gz", b"\xfd": ".xz"}.get(content[:1], "") if isinstance(content, bytes) else ""
    path = tmp_path / f"bad.json{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(MemlabError, match=message) as caught:
        LoCoMo(path=path).load()
    assert "bad.json" in str(caught.value)


def test_a_missing_file_tells_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"memlab data fetch locomo.*put locomo10.json from https"):
        LoCoMo()
    with pytest.raises(MemlabError, match="a folder, expected a file"):
        LoCoMo(path=tmp_path)
    with pytest.raises(MemlabError, match=r"data\.label_errors"):
        LoCoMo(path=write(tmp_path / "l.json", [conversation()]), label_errors=tmp_path / "none.json")


def test_identity_is_the_content_and_never_a_path(tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, [conversation()]) for name in ("one.json", "two.json"))
    assert LoCoMo(path=one).identity() == LoCoMo(path=two).identity()
    assert str(tmp_path) not in json.dumps(LoCoMo(path=one).identity())
    seen = {json.dumps(LoCoMo(path=one, **o).identity())
            for o in ({}, {"limit": 3}, {"types": ["temporal"]}, {"split": "a"}, {"pool": True})}
    assert len(seen) == 5
    write(one, [{**conversation(), "sample_id": "x"}])
    assert LoCoMo(path=one).identity() != LoCoMo(path=two).identity()


def test_dev_file_counts(shared_data: Path) -> None:
    data = LoCoMo(path=shared_data / "locomo10.dev.json", label_errors=shared_data / "locomo_label_errors.dev.json")
    tables = data.load()
    gold = tables["gold"]
    assert {k: tables[k].height for k in ("sessions", "turns", "questions")} == {"sessions": 152, "turns": 3264,
                                                                                 "questions": 1111}
    kinds = dict(gold.group_by("category").len().iter_rows())
    assert kinds == {"multi-hop": 178, "temporal": 187, "open-domain": 52, "single-hop": 446, "adversarial": 248}
    assert gold["abstain"].sum() == 248
    assert (~gold["scored"]).sum() == 2
    assert gold["label_error"].drop_nulls().len() == 94
    assert tables["sessions"].filter(pl.col("corpus") == 0).height == 19  # conv-26 has 16 date keys more
    captions = tables["turns"].join(tables["texts"].filter(pl.col("text").str.contains("[image: ", literal=True)),
                                    on="text_id")
    assert captions.height == 369 + 182 + 125 + 5 + 5


def test_evidence_that_the_file_cites_and_does_not_hold_is_counted(tmp_path: Path, tables: Tables) -> None:
    what = "pieces of evidence are cited by the file and not in it, so no metric asks for them"
    assert tables["notes"].rows() == [(what, 3, 9)]  # D9:9 and D of q3, D7:1 of the last; six pieces are there
    first = LoCoMo(path=tmp_path / "l.json", limit=3).load()
    assert "notes" not in first  # of the questions that stay
