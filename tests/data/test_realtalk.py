"""REALTALK: every quirk of the format on a small made chat."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memlab.data.realtalk import RealTalk, cited_positions
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError
from tests.data.official_records import write


def message(dia: str, speaker: str, text: str | None, date: str, **more: Any) -> dict[str, Any]:
    return {"dia_id": dia, "speaker": speaker, "clean_text": text, "date_time": date, "img_file": [], **more}


def question(text: str, evidence: list[str], category: int = 1, answer: Any = "x") -> dict[str, Any]:
    return {"question": text, "answer": answer, "evidence": evidence, "category": category}


def chat(**changes: Any) -> dict[str, Any]:
    return {
        "name": {"speaker_1": "Elise", "speaker_2": "Emi"},
        "session_2_date_time": "01.01.2024, 23:50:00",
        "session_2": [message("D2:1", "elise", "Happy new year", "01.01.2024, 23:50:00"),
                      message("D2:2", "EMI", "You too", "02.01.2024, 00:10:07")],  # over midnight
        "session_1_date_time": "29.12.2023, 22:42:04",
        "session_1": [message("D1:1", "Elise", "Hello", "29.12.2023, 22:42:04"),
                      message("D1:2", "Emi", None, "29.12.2023, 22:43:00", blip_caption="a red bike "),
                      message("D1:3", "Emi", "", "29.12.2023, 22:44:00", img_file=["a.jpg"])],
        "events_session_1": {"Elise": ["Elise hides a secret annotation"]},
        "session_9_date_time": "05.01.2024, 10:00:00",  # a date without a session
        "qa": [question("q0", ["D1:2-D2:1"]), question("q1", ["D1;3", "D2:1."], 2, 2024),
               question("q2", ["D1:1:D2:2"], 3), question("q3", ["", "D7:7"]), question("q0", ["D1:2-3;D2:2", "D1:2"])],
        **changes,
    }


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    write(tmp_path / "Chat_10_A_B.json", chat())
    write(tmp_path / "Chat_2_A_B.json", chat(qa=[question("second file", ["D1:1"])]))
    (tmp_path / "README.json").write_text("[]")
    return RealTalk(path=tmp_path).load()


def test_files_go_by_their_number(tables: Tables) -> None:
    names = tables["ids"].filter(tables["ids"]["kind"] == "corpus")["name"].to_list()
    assert names == ["Chat_2_A_B", "Chat_10_A_B"]
    assert tables["questions"]["question"].to_list() == list(range(6))
    assert tables["questions"]["corpus"].to_list() == [0, 1, 1, 1, 1, 1]


def test_sessions_go_by_date_and_annotations_are_never_read(tables: Tables) -> None:
    sessions = tables["sessions"].filter(tables["sessions"]["corpus"] == 0)
    assert sessions["said_on"].to_list() == [datetime(2023, 12, 29, 22, 42, 4), datetime(2024, 1, 1, 23, 50)]
    assert "annotation" not in " ".join(tables["texts"]["text"])


def test_speakers_are_written_alike_and_captions_belong_to_the_text(tables: Tables) -> None:
    turns = tables["turns"].filter(tables["turns"]["corpus"] == 0).join(
        tables["texts"], on="text_id", maintain_order="left")
    assert turns["speaker"].to_list() == ["Elise", "Emi", "Emi", "Elise", "Emi"]
    assert turns["text"].to_list() == ["Hello", "[image: a red bike]", "", "Happy new year", "You too"]


def test_references_are_read_whatever_their_form(tables: Tables) -> None:
    assert tables["evidence"].filter(tables["evidence"]["question"] > 0).rows() == [
        (1, 0, 1), (1, 0, 2), (1, 1, 0),   # D1:2-D2:1: every message between
        (2, 0, 2), (2, 1, 0), (3, 0, 0), (3, 1, 1),
        (5, 0, 1), (5, 0, 2), (5, 1, 1)]
    assert tables["gold"]["scored"].to_list() == [True, True, True, True, False, True]


@pytest.mark.parametrize(("cited", "expected"), [
    (["D17;39"], [(17, 39)]), (["D5:3."], [(5, 3)]), (["D5:12;D5:16"], [(5, 12), (5, 16)]),
    (["D13:45:D20:19"], [(13, 45), (20, 19)]), (["D12:3-D12:5"], [(12, 3), (12, 4), (12, 5)]),
    (["D14:8-D14:9;D15:16-D15:17"], [(14, 8), (14, 9), (15, 16), (15, 17)]),
    (["D12:5-D12:3"], [(12, 3), (12, 4), (12, 5)]), (["D5", "3"], []), ([""], []),
])
def test_malformed_references(cited: list[str], expected: list[tuple[int, int]]) -> None:
    numbers = {(d, n): (d, n) for d in range(1, 21) for n in range(1, 50)}
    assert cited_positions(cited, numbers) == expected


def test_gold_and_the_day_of_the_question(tables: Tables) -> None:
    gold = tables["gold"]
    assert gold["category"].to_list() == ["multi-hop", "multi-hop", "temporal", "commonsense", "multi-hop", "multi-hop"]
    assert gold["answer"][2] == "2024"
    assert tables["questions"]["asked_on"].unique().to_list() == [datetime(2024, 1, 2, 0, 10, 7)]


@pytest.mark.parametrize(("changes", "fault"), [
    ({"qa": [question("q", [], 4)]}, "expected 1, 2 or 3, got 4"),
    ({"session_1_date_time": "2023-12-29"}, "'2023-12-29' is not a date"),
    ({"session_1": [{"dia_id": "D1:1", "speaker": "E"}]}, "session_1[0], field clean_text: is missing"),
    ({"name": 3}, "field name: expected an object"),
    ({"qa": [question("q", [7])]}, "field qa[0], field evidence: expected text"),  # type: ignore[list-item]
])
def test_faults_name_file_and_field(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    file = write(tmp_path / "Chat_1_A_B.json", chat(**changes))
    with pytest.raises(MemlabError) as raised:
        RealTalk(path=file).load()
    assert str(file) in str(raised.value)
    assert fault in str(raised.value)


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"no Chat_\*.json is there"):
        RealTalk(path=tmp_path)
    file = tmp_path / "Chat_1_A_B.json"
    early = "ends too early or is damaged"
    for text, fault in (("[1]", "expected an object, got a list"), (json.dumps(chat())[:90], early), ("", early)):
        file.write_text(text)
        with pytest.raises(MemlabError, match=fault):
            RealTalk(path=file).load()


def test_references_to_no_message_are_counted(tables: Tables) -> None:
    assert [(number, of) for _, number, of in tables["notes"].rows()] == [(1, tables["evidence"].height + 1)]  # D7:7
