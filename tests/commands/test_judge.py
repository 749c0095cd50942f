"""`memlab judge FILE`: a user's own answers, as the official scripts score them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.commands.judge import main
from memlab.commands.judge_files import make_judge
from memlab.pipeline.tables import Tables
from memlab.stages.judge import cases
from memlab.stages.judge.official import OfficialJudge
from memlab.support.errors import Faults, MemlabError
from tests.data.official_records import record, turn, write
from tests.models.chatserver import serving
from tests.stages.judge.script import put

RECORDS = [("a1", "multi-session", "3"), ("a2", "multi-session", "tea"), ("a3_abs", "multi-session", "not said"),
           ("b1", "temporal-reasoning", "7 days"), ("c1", "knowledge-update", "Oslo")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    only = {"haystack_dates": ["2023/05/20 (Sat) 02:21"], "haystack_session_ids": ["answer_1"],
            "answer_session_ids": ["answer_1"], "haystack_sessions": [[turn("user", "hello", has_answer=True)]]}
    return write(tmp_path / "oracle.json", [
        record(name, question_type=kind, answer=answer, question=f"Question {name}?", **only)
        for name, kind, answer in RECORDS])


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def said(name: str, text: str) -> dict[str, str]:
    return {"question_id": name, "hypothesis": text}


ANSWERS = [said("a1", "There were 3"), said("a2", "milk"), said("a3_abs", "You did not mention it"),
           said("b1", "8 days"), said("c1", "Rome \x1b[31m<b>")]


def words(data: Path, *more: str) -> list[str]:
    return ["--data", "longmemeval_oracle", "--path", str(data), "--store", str(data.parent / "store"), *more]


def verdicts(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(f"{path}.verdicts.jsonl").read_text().splitlines()]


def test_a_judge_is_flagged_unless_it_is_known_to_be_good(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, known = lines(data.parent / "h.jsonl", *ANSWERS), data.parent / "calibration.json"
    for figures, flag in (({}, "FLAGGED: nobody has measured how many wrong answers the judge contains lets through"),
                          ({"contains": {"specificity": {"value": .5}}}, "FLAGGED: the judge contains calls 0.500"),
                          ({"contains": {"specificity": {"value": .95}}}, None)):
        known.write_text(json.dumps({"judges": figures}))
        assert main([str(path), *words(data, "--judge", "contains", "--calibration", str(known))]) == 0
        out = capsys.readouterr().out
        assert flag in out if flag else "FLAGGED" not in out


def test_a_rule_needs_no_server(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lines(data.parent / "h.jsonl", *ANSWERS)
    assert main([str(path), *words(data, "--judge", "contains")]) == 0
    out = capsys.readouterr().out
    assert [v["correct"] for v in verdicts(path)] == [True, False, True, False, False]
    assert verdicts(path)[4] == {"question_id": "c1", "hypothesis": "Rome \x1b[31m<b>", "judge": "contains",
                                 "correct": False, "reply": ""}
    table = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("  ")}
    assert table["multi-session"][1:4] == ["3", "2", ".6667"]  # the abstention question counts in its type
    assert table["overall"][1:7] == ["5", "2", ".4000", ".1176", "to", ".7693"]  # Wilson
    assert table["abstention"][1:4] == ["1", "1", "1.0000"]
    assert "mean of the types: .2222" in out  # (2/3 + 0 + 0) / 3


def rule(messages: list[dict[str, str]]) -> str:
    text = messages[-1]["content"]
    return "Yes" if "There were 3" in text else "No, that was yesterday." if "milk" in text else "no"


@pytest.fixture
def script(memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memlab_home, monkeypatch)


@pytest.mark.usefixtures("script")
def test_the_official_rule_from_a_server_is_resumed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lines(data.parent / "h.jsonl", *ANSWERS)
    with serving(rule) as server:
        chat = ["--chat.model", "tiny", f"--chat.url={server.url}"]
        assert main([*chat, str(path), *words(data)]) == 0
        first = capsys.readouterr()
        assert [v["correct"] for v in verdicts(path)] == [True, True, False, False, False]
        assert "1 contain 'yes' though they say no" in first.out
        assert len(server.requests) == 5
        assert all(r["temperature"] == 0 and r["max_tokens"] == 10 for r in server.requests)
        assert main([str(path), *words(data, *chat)]) == 0
        assert capsys.readouterr().out == first.out
        assert len(server.requests) == 5
        assert main([str(path), *words(data, *chat, "--judge", "strict")]) == 0
        assert [v["correct"] for v in verdicts(path)] == [True, False, False, False, False]


def test_what_is_missing_or_unknown_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lines(data.parent / "h.jsonl", ANSWERS[0], said("a3_asb", "x"))
    assert main([str(path), *words(data, "--judge", "f1")]) == 0
    told = capsys.readouterr()
    assert "h.jsonl, line 2: no question has the id 'a3_asb'; did you mean 'a3_abs'?" in told.err
    assert "without a hypothesis, not counted (4): a2, a3_abs, b1, c1" in told.err
    assert "of all 5 questions, those without a verdict taken as wrong: .2000" in told.out
    assert "mean of the types: 1.0000" in told.out


def test_every_broken_line_is_told_and_nothing_scored(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lines(data.parent / "h.jsonl", ANSWERS[0], "{broken", [1], {"question_id": "a2"}, said("a1", "again"), "",
                 {"question_id": 7, "hypothesis": None})
    assert main([str(path), *words(data, "--judge", "f1")]) == 1
    err = capsys.readouterr().err
    for fault in ("line 2: is not JSON", "line 3: expected an object", "line 4, field hypothesis: is missing",
                  "line 5: question_id 'a1' was there before, on line 1", "line 7, field question_id: expected a text",
                  "line 7, field hypothesis: expected a text"):
        assert fault in err
    assert not Path(f"{path}.verdicts.jsonl").exists()


@pytest.mark.parametrize(("text", "fault"), [
    ("", "there is no line"), ('{"question_id": "zz", "hypothesis": "x"}', "no line names a question"),
    ("[1", "is not a JSON list"), ("\ufeff", "there is no line")])
def test_files_that_cannot_be_scored(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(text)
    with pytest.raises(MemlabError, match=fault):
        cases.read(path, {"a1": 0})
    with pytest.raises(MemlabError, match="cannot be read"):
        cases.read(tmp_path / "absent", {"a1": 0})


def test_a_json_list_is_read_and_further_fields_are_allowed(tmp_path: Path) -> None:
    path = write(tmp_path / "h.json", [{**said("a1", "x"), "model": "y"}])
    assert cases.read(path, {"a1": 4}).hypotheses == {4: "x"}


def test_ids_that_name_two_questions_are_refused() -> None:
    ids = pl.DataFrame({"kind": ["question"] * 2, "corpus": [0, 1], "session": [None] * 2, "turn": [None] * 2,
                        "question": [0, 1], "name": ["q", "q"]},
                       schema_overrides=dict.fromkeys(("corpus", "session", "turn", "question"), pl.Int32))
    with pytest.raises(MemlabError, match="one id"):
        cases.question_ids(Tables(ids=ids))


@pytest.mark.usefixtures("script")
def test_judges_are_made_from_their_files() -> None:
    judge = make_judge("official", "qwen25_7b", {"url": "http://127.0.0.1:1/v1", "max_tokens": "99"})
    assert isinstance(judge, OfficialJudge)
    assert judge.chat.max_tokens == 99
    with pytest.raises(MemlabError, match="none is named"):
        make_judge("official", None, {})
    with pytest.raises(MemlabError, match="asks no chat model"):
        make_judge("f1", "server", {})
    with pytest.raises(MemlabError, match="did you mean 'official'"):
        make_judge("offical", None, {})
    with pytest.raises(MemlabError, match="did you mean 'server'"):
        make_judge("official", "sever", {})
    with pytest.raises(Faults, match="--chat.modle: OpenAIChat has no such setting; did you mean 'model'"):
        make_judge("strict", "server", {"modle": "x"})
