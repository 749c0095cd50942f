"""Memora: evidence and outdated turns of small made weeks, by the file's own word and by what was told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.data.inspect import inspect
from memlab.data.memora import Memora
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError
from tests.data.official_records import write


def said(number: int, *turns: tuple[str, bool], item: Any = None, **details: Any) -> dict[str, Any]:
    return {"session_id": number, "date": f"2025-06-0{number}", "operation_details": {"item": item, **details},
            "conversation": [{"turn": n, "speaker": ("user_agent", "ai_agent")[n % 2], "message": text,
                              "share_memory": shared} for n, (text, shared) in enumerate(turns)]}


BOAT = {"description": "Paint the boat"}
SESSIONS = [
    said(1, ("Hello", False), ("Hi", False), ("I must paint the boat", True), item=BOAT),
    said(2, ("I like jazz", True), item="jazz"),
    said(3, ("The boat is painted", True), item=BOAT),
    said(4, ("Jazz bores me, I like opera now", True), item="opera", old_item="jazz"),
    said(5, ("Buy bread", False), item={"description": "Buy bread"})]


def asked(name: str, needed: Any, past: Any = None) -> dict[str, Any]:
    return {"question_id": name, "question": f"What of {name}?", "question_date": "2025-06-07",
            "memory_evidence": needed, **({"forgetting_evidence": past} if past else {})}


QUESTIONS = {
    "remembering": [asked("todos", {"tasks": [{"value": "Buy bread", "session_id": 5}]},
                          {"forgotten_items": [{"value": "Paint the boat", "session_id": 3}], "total": 1})],
    "recommending": [asked("music", {"items": {"genres": {"likes": [{"item": "opera", "session_id": 4}]}}},
                           {"forgotten_items": [{"value": "jazz", "session_id": 4}]}),
                     asked("letter", {"content_data": {}, "session_history": [1, 3, 99]})]}


def week(folder: Path, sessions: list[Any] = SESSIONS) -> Path:
    (folder / "ann" / "conversations").mkdir(parents=True)
    for number, session in enumerate(sessions, 1):
        write(folder / "ann" / "conversations" / f"session_{number:04}.json", session)
    write(folder / "ann" / "evaluation_questions_ann.json", {"questions": QUESTIONS})
    return folder


def labels(tables: Tables, name: str) -> list[tuple[int, int, int | None]]:
    return tables[name].sort("question", "session").rows()


def test_evidence_are_the_marked_turns_of_the_sessions_that_a_question_names(tmp_path: Path) -> None:
    tables = Memora(path=week(tmp_path)).load()
    assert tables["gold"].select("category", "scored").rows() == [
        ("remembering", True), ("recommending", True), ("recommending", True)]
    assert labels(tables, "evidence") == [(0, 4, None), (1, 3, 0), (2, 0, 2), (2, 2, 0)]  # none in session 5
    assert tables["notes"].select("number", "of").row(0) == (1, 5)  # session 99 is not there


@pytest.mark.parametrize(("outdated", "found"), [("named", [(0, 2, 0)]), ("told", [(0, 0, 2), (1, 1, 0)])])
def test_outdated_is_what_the_file_names_or_what_was_told_before_and_never_what_a_question_needs(
        tmp_path: Path, outdated: Any, found: list[tuple[int, int, int]]) -> None:
    week(tmp_path)
    assert inspect(tmp_path).benchmark == "memora"
    for options, rows in (({}, found), ({"limit": 1}, found[:1]), ({"pool": True}, found)):
        assert labels(Memora(path=tmp_path, outdated=outdated, **options).load(), "outdated") == rows


def test_faults_name_file_and_field(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"session_0001.json, field conversation\[0\], field speaker: expected user_"):
        Memora(path=week(tmp_path, [{**SESSIONS[0], "conversation": [{"speaker": "Ann", "message": "x"}]}])).load()
