"""RealMem: every quirk of the format on a small made stream, and questions that see nothing of their own day."""

from __future__ import annotations

import json
import lzma
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memlab.data.inspect import inspect
from memlab.data.realmem import RealMem
from memlab.pipeline.tables import Tables
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.data.official_records import write
from tests.small import lexical

NAME = "Ann_Lee_dialogues_256k.json"


def said(speaker: str, content: str, **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "is_query": False, "content": content, "query_id": None, **more}


def asked(content: str, name: str, kind: str = "Dynamic Updating") -> dict[str, Any]:
    return said("User", content, is_query=True, query_id=name, category_name=kind)


def replied(content: str, **used: list[Any]) -> dict[str, Any]:
    """The assistant's message that used these memories: session -> contents."""
    return said("Assistant", content, memory_session_uuids=list(used),
                memory_used=[{"session_uuid": uuid, "content": one} for uuid, held in used.items() for one in held])


def memory(content: Any, snapshot: str, turn: int) -> dict[str, Any]:
    return {"content": content, "source_content_snapshot": snapshot, "source_turn": turn}


def session(uuid: str, day: str, *turns: dict[str, Any], memories: Any = ()) -> dict[str, Any]:
    return {"session_uuid": uuid, "current_time": day, "dialogue_turns": list(turns), "extracted_memory": memories}


def stream() -> dict[str, Any]:
    return {"_metadata": {"person_name": "Ann Lee"}, "dialogues": [
        session("a", "2025-12-20 (Saturday)", said("User", "A boat of oak"), said("Assistant", "Oak it is"), memories=[
            memory("wood", "A boat of oak", 1), memory("agreed", "Oak it is", 1), memory("unknown", "Never said", 0)]),
        session("b", "2025-12-21 (Sunday)", said("User", "The boat is blue"), said("Assistant", "Blue boat"),
                memories={"colour": memory({"is": "blue"}, "The boat is blue", 0)}),
        session("c", "2025-12-21 (Sunday)", said("User", "Good morning"), said("Assistant", "Morning"),
                asked("Which boat?", "Q-1"), replied("Oak", a=["agreed"], b=[{"is": "blue"}], zz=["lost"]),
                asked("Which boat again?", "Q-2", "Implicit Preference"), replied("Blue", b=["other"])),
        session("d", "2025-12-22 (Monday)", asked("What colour is the boat?", "Q-3"),
                replied("Blue", a=["unknown"], b=[{"is": "blue"}])),
        session("e", "2025-12-19 (Friday)", said("User", "Boat?"), asked("First boat?", "Q-0"))]}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    write(tmp_path / NAME, stream())
    return RealMem(path=tmp_path).load()


def test_sessions_go_by_day_and_a_question_is_dated_the_day_before_its_session(tables: Tables) -> None:
    assert tables["sessions"]["said_on"].dt.day().to_list() == [19, 20, 21, 21, 22]
    assert tables["questions"]["asked_on"].to_list() == [datetime(2025, 12, day) for day in (18, 20, 20, 21)]
    assert tables["ids"].filter(kind="question")["name"].to_list() == [f"Ann_Lee:Q-{n}" for n in range(4)]


def test_a_question_finds_sessions_of_earlier_days_alone_and_never_itself(tables: Tables) -> None:
    ranked = lexical().run(tables, Store(None))
    found = ranked["ranking"].join(ranked["units"], on="unit")
    seen = {number: sorted(rows["session"].unique()) for (number,), rows in found.group_by("question")}
    # all that can be seen is ranked; the first question has no earlier day, the next two share theirs with session b
    assert seen == {1: [0, 1], 2: [0, 1], 3: [0, 1, 2, 3]}


def test_evidence_is_the_copied_turn_of_a_session_that_can_be_seen(tables: Tables) -> None:
    assert tables["evidence"].rows() == [
        (1, 1, 1),                 # a, by its copy; b is of the same day, zz is not there
        (3, 1, None), (3, 2, 0)]   # the copy of a's memory is no turn of it; b's memories are an object
    assert tables["gold"]["scored"].to_list() == [False, True, False, True]
    assert [(number, of) for _, number, of in tables["notes"].rows()] == [(1, 4)]  # zz


def test_gold_is_the_reply_and_types_are_written_as_words(tables: Tables) -> None:
    assert tables["gold"]["answer"].to_list() == ["", "Oak", "Blue", "Blue"]
    assert tables["gold"]["category"].unique().sort().to_list() == ["dynamic-updating", "implicit-preference"]


def test_a_folder_has_a_file_for_each_person_packed_or_not(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"no \*_dialogues_256k.json is there.*memlab data fetch realmem"):
        RealMem(path=tmp_path)
    write(tmp_path / NAME, stream())
    (tmp_path / f"{NAME}.sha256").write_text("digest")
    packed = tmp_path / "Zoe_dialogues_256k.json.xz"
    for path in (packed, tmp_path / f"{NAME}.xz"):
        path.write_bytes(lzma.compress(json.dumps(stream()).encode()))
    assert sorted((data := RealMem(path=tmp_path)).identity()["files"]) == [NAME, packed.name]
    assert data.load()["ids"].filter(kind="corpus")["name"].to_list() == ["Ann_Lee", "Zoe"]
    assert [inspect(path).benchmark for path in (tmp_path, packed)] == ["realmem", "realmem"]


@pytest.mark.parametrize(("dialogues", "fault"), [
    ([session("a", "20 May", said("User", "x"))], "'20' is not a date"),
    ([session("a", "2025-12-20", said("Bob", "x"))], "expected User or Assistant, got 'Bob'"),
    ([session("a", "2025-12-20", said("User", "x"))], "there is no question"),
    ([session("a", "2025-12-20", asked("x", "Q-1"), said("Assistant", "y", memory_session_uuids="a"))],
     "dialogue_turns[1], field memory_session_uuids: expected a list"),
])
def test_faults_name_file_and_field(tmp_path: Path, dialogues: list[Any], fault: str) -> None:
    file = write(tmp_path / NAME, {"dialogues": dialogues})
    with pytest.raises(MemlabError, match=f"{re.escape(str(file))}.*{re.escape(fault)}"):
        RealMem(path=file).load()


def test_the_four_people_at_hand(shared_data: Path) -> None:
    tables = RealMem(path=shared_data / "realmem").load()
    evidence, sizes = tables["evidence"], tables["questions"].group_by("corpus").len().sort("corpus")["len"].to_list()
    found = evidence.select("question", "session").n_unique(), evidence["turn"].count()
    assert (sizes, found) == ([124, 162, 153, 168], (1045, 1096))
