"""BEAM: every quirk of the format on small made chats."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memlab.data.beam import Beam
from memlab.data.dataset import Dataset
from memlab.data.inspect import inspect
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError
from tests.data.official_records import write


def message(id_: int | str, role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "role": role, "content": content, "index": "1,1", "question_type": "main", **more}


def batch(*segments: list[dict[str, Any]], anchor: str | None = "March-15-2024", number: int = 1) -> dict[str, Any]:
    return {"batch_number": number, "time_anchor": anchor, "turns": list(segments)}


def batches() -> list[dict[str, Any]]:
    return [
        batch([message(0, "user", "I plan a trip ->-> 1,1", time_anchor="March-15-2024"),
               message(1, "assistant", "Where to? a ->-> b stays")],
              [message(2, "user", "To Rome ->-> 1, 2"), message(3, "assistant", "Fine")]),
        batch([], [message(4, "user", "Now a dog ->-> 2,1", time_anchor="April-02-2024"),
                   message(2, "assistant", "An id that was there before")], anchor=None, number=2),
    ]


QUESTIONS: dict[str, Any] = {
    "abstention": [{"question": "q0", "ideal_response": "not said", "source_chat_ids": None}],
    "information_extraction": [{"question": "q1", "answer": "Rome", "source_chat_ids": [0, 3]},
                               {"question": "q2", "answer": 7, "source_chat_ids": [2]}],
    "summarization": [{"question": "q3", "ideal_summary": "all", "source_chat_ids": {"a": [0], "b": [[4], 1]}}],
    "contradiction_resolution": [{"question": "q4", "ideal_answer": "both", "source_chat_ids": [99]}],
    "instruction_following": [{"question": "q5", "rubric": ["short", "polite"], "source_chat_ids": ["1"]}],
}


def add_chat(folder: Path, chat: Any, questions: Any = None, name: str = "chat.json") -> Path:
    (folder / "probing_questions").mkdir(parents=True, exist_ok=True)
    write(folder / name, chat)
    write(folder / "probing_questions" / "probing_questions.json", QUESTIONS if questions is None else questions)
    return folder


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    add_chat(tmp_path / "chats" / "100K" / "1", batches())
    return Beam(path=tmp_path).load()


def texts(tables: Tables) -> list[str]:
    return tables["turns"].join(tables["texts"], on="text_id", maintain_order="left")["text"].to_list()


def test_segments_are_sessions_with_the_day_of_their_first_anchor(tables: Tables) -> None:
    assert tables["sessions"].rows() == [(0, 0, datetime(2024, 3, 15)), (0, 1, datetime(2024, 3, 15)),
                                         (0, 2, datetime(2024, 4, 2))]
    assert tables["turns"]["role"].to_list() == ["user", "assistant"] * 2 + ["user", "assistant"]


def test_plan_indices_are_cut_off_and_other_arrows_stay(tables: Tables) -> None:
    assert texts(tables)[:4] == ["I plan a trip", "Where to? a ->-> b stays", "To Rome", "Fine"]


def test_questions_are_asked_on_the_day_after_the_last(tables: Tables) -> None:
    assert tables["questions"]["asked_on"].unique().to_list() == [datetime(2024, 4, 3)]


def test_answers_stand_under_different_keys(tables: Tables) -> None:
    assert tables["gold"]["answer"].to_list() == ["not said", "Rome", "7", "all", "both", "short; polite"]
    assert tables["gold"]["abstain"].to_list() == [True] + [False] * 5


def test_evidence_and_what_cannot_be_told_apart(tables: Tables) -> None:
    assert tables["evidence"].rows() == [(1, 0, 0), (1, 1, 1), (3, 0, 0), (3, 0, 1), (3, 2, 0), (5, 0, 1)]
    # q0 has none, q2 cites an id of two messages, q4 one that is not there
    assert tables["gold"]["scored"].to_list() == [False, True, False, True, False, True]


def test_the_cut_chat_is_the_one_that_was_used(tmp_path: Path) -> None:
    folder = add_chat(tmp_path / "100K" / "1", batches())
    add_chat(folder, batches()[:1], name="chat_trunecated.json")
    assert Beam(path=tmp_path).load()["sessions"].height == 2


def test_a_chat_of_10m_has_plans(tmp_path: Path) -> None:
    plans = [{"plan-1": batches()[:1]}, {"plan-2": [batch([message(10, "user", "Later")], anchor="May-01-2024")]}]
    add_chat(tmp_path / "10M" / "1", plans)
    tables = Beam(path=tmp_path, size="10M").load()
    assert tables["sessions"]["said_on"].to_list()[-1] == datetime(2024, 5, 1)
    assert texts(tables)[-1] == "Later"
    add_chat(tmp_path / "10M" / "2", [batches()[:1], batches()[1:]])  # or lists of batches
    assert Beam(path=tmp_path, size="10M").load()["sessions"].filter(corpus=1).height == 3


def test_folders_go_by_number_and_may_be_named_directly(tmp_path: Path) -> None:
    for name in ("10", "9", "notes"):
        add_chat(tmp_path / "chats" / "500K" / name, batches())
    data = Beam(path=tmp_path / "chats" / "500K", size="500K")
    assert isinstance(data, Dataset)
    assert (data.name, data.grouping()) == ("beam_500k", "corpus")
    names = data.load()["ids"].filter(kind="corpus")["name"].to_list()
    assert names == ["500K/9", "500K/10"]
    assert data.identity() == Beam(path=tmp_path, size="500K").identity()
    assert sorted(data.identity()["files"]) == [f"{n}/{file}" for n in ("10", "9") for file in (
        "chat.json", "probing_questions/probing_questions.json")]
    with pytest.raises(MemlabError, match="there are no chats of 1M"):
        Beam(path=tmp_path, size="1M")
    with pytest.raises(MemlabError, match="there are no chats of 100K"):
        Beam(path=tmp_path / "chats" / "500K")


def test_check_counts_what_it_read(tmp_path: Path) -> None:
    add_chat(tmp_path / "chats" / "100K" / "1", batches())
    for path in (tmp_path, tmp_path / "chats", tmp_path / "chats" / "100K"):
        finding = inspect(path)
        assert (finding.benchmark, finding.problems) == ("beam_100k", [])
        assert finding.facts[0].startswith("6 questions over 1 corpus, 3 sessions, 6 turns")
        assert "100K/1:information_extraction:1" in finding.facts[-1]  # it cites an id of several messages


@pytest.mark.parametrize(("chat", "questions", "fault"), [
    ([batch([message(0, "system", "x")])], None, "expected user or assistant, got 'system'"),
    ([batch([message(0, "user", "x")], anchor="2024-03-15")], None, "'2024-03-15' is not a date"),
    ([], None, "there is no message"),
    ([3], None, "expected a batch"),
    ([batch({})], None, "expected a list of messages"),  # type: ignore[arg-type]
    (None, {"abstentoin": []}, "'abstentoin' is no ability of BEAM"),
    (None, {"abstention": [{"question": "q"}]}, "there is no answer"),
    (None, {"abstention": [{"answer": "q"}]}, "field question: is missing"),
])
def test_faults_name_file_and_field(tmp_path: Path, chat: Any, questions: Any, fault: str) -> None:
    add_chat(tmp_path / "100K" / "1", batches() if chat is None else chat, questions)
    with pytest.raises(MemlabError) as raised:
        Beam(path=tmp_path).load()
    assert str(tmp_path) in str(raised.value)
    assert fault in str(raised.value)


def test_an_id_of_no_message_is_counted(tables: Tables) -> None:
    assert [(number, of) for _, number, of in tables["notes"].rows()] == [(1, 7)]  # 99
