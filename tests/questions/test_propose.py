"""Questions by rules, pools of several systems, and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memlab.data.jsonl import SessionLine
from memlab.data.jsonl import read as read_folder
from memlab.pipeline import Pipeline
from memlab.questions import __main__ as command
from memlab.questions.pool import Candidate, page, pool
from memlab.questions.propose import ProposedQuestion, propose, questions_of
from memlab.store import Store
from tests.chat_exports import json_lines, write
from tests.small import lexical

LINES = [
    {"corpus": "ann", "session": "s1", "said_on": "2024-03-01", "turns": [
        {"role": "user", "text": "My cat is called Tom </script><b>&"},
        {"role": "assistant", "text": "I live in a cat."}]},
    {"corpus": "ann", "session": "s2", "said_on": "2024-03-02", "turns": [
        {"role": "user", "text": "My cat is called Tom, as I said."}, {"role": "user", "text": "I prefer\u2028tea."},
        {"role": "user", "text": "It rains.", "speaker": "Bob"}]},
]
SESSIONS = [SessionLine.model_validate_json(json.dumps(line)) for line in LINES]
CAT = ProposedQuestion("ann", "What is my cat called?", "s1", 0, "Tom", "name")
TEA = ProposedQuestion("ann", "What do I prefer?", "s2", 1, "tea", "preference")


def test_each_question_is_proposed_once_from_what_users_say() -> None:
    assert propose(SESSIONS) == [CAT, TEA]
    assert propose(SESSIONS, limit=1) == [CAT]


def test_a_pool_holds_the_first_turns_of_each_system_and_the_source_in_the_order_of_the_log() -> None:
    pools = pool(SESSIONS, [CAT, TEA], {"a": lexical(), "b": lexical()}, Store(), depth=1)
    assert len(pools[0]) in (1, 2)
    assert Candidate("s1", 0, ("a", "b")) in pools[0] or Candidate("s2", 0, ("a", "b")) in pools[0]
    assert CAT.session in {c.session for c in pools[0]}
    assert pools[1] == [Candidate("s2", 1, ("a", "b"))]
    whole = pool(SESSIONS, [CAT], {"a": lexical()}, Store(), depth=10)[0]
    assert [(c.session, c.turn) for c in whole] == [("s1", 0), ("s1", 1), ("s2", 0), ("s2", 1), ("s2", 2)]


def test_the_page_holds_texts_as_data_alone() -> None:
    html = page(SESSIONS, [CAT], [[Candidate("s1", 0, ("a",))]], 7)
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    assert html.count("</script>") == 2
    loaded = json.loads(data)
    assert (loaded["depth"], loaded["questions"][0]["text"]) == (7, "What is my cat called?")
    assert loaded["questions"][0]["candidates"] == [
        {"session": "s1", "turn": 0, "text": "My cat is called Tom </script><b>&", "speaker": "user"}]
    assert "http://" not in html
    assert "https://" not in html


def test_the_command_writes_the_page_and_tells_depth_and_unjudged_share(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def words() -> dict[str, Pipeline]:
        return {"words": lexical()}

    monkeypatch.setattr(command, "systems", words)
    write(tmp_path, {"sessions.jsonl": json_lines(*LINES)})
    assert command.main([str(tmp_path), "--depth", "1"]) == 0
    printed = capsys.readouterr().out
    assert "2 questions; pools of words to depth 1: " in printed
    turns = {(c["session"], c["turn"]) for q in json.loads(re.findall(
        r'id="data">(.*?)</script>', (tmp_path / "questions.html").read_text("utf-8"))[0])["questions"]
        for c in q["candidates"]}
    assert f"{20 * (5 - len(turns))} % of the turns are in no pool" in printed
    assert (tmp_path / "questions.html").exists()
    assert read_folder(tmp_path).faults == []


def test_faults_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path)]) == 1
    write(tmp_path, {"sessions.jsonl": json_lines({**LINES[0], "turns": []})})
    assert command.main([str(tmp_path)]) == 1
    assert command.main([str(tmp_path), "--depth", "0"]) == 1
    errors = capsys.readouterr().err
    assert "sessions.jsonl: cannot be read" in errors
    assert "the rules find no question" in errors
    assert "--depth" in errors


def test_the_first_questions_are_of_many_kinds_and_sessions() -> None:
    texts = [f"I bought a new {thing} in {month}." for thing in ("bike", "lamp", "phone", "sofa") for month in
             ("January", "February", "March")]
    sessions = [session("a", *texts), session("b", "My rent is $900."), session("c", "My sister Emma got married."),
                session("d", "I switched from coffee to tea.")]
    first = propose(sessions, limit=6)
    assert {question.session for question in first} == {"a", "b", "c", "d"}
    assert len({question.kind for question in first}) >= 4
    everything = propose(sessions, limit=None)
    assert everything[:6] == first
    assert len({question.text for question in everything}) == len(everything) > 9
    assert everything == propose(sessions, limit=None)


def test_a_question_names_its_corpus_turn_and_answer_and_is_asked_once_in_each_corpus() -> None:
    sessions = [session("a", "Hello.", "My rent is $900."), session("b", "My rent is $950."),
                session("c", "My rent is $100.", corpus="bob")]
    assert propose(sessions) == [ProposedQuestion("ann", "How much is my rent?", "a", 1, "$900", "amount"),
                                 ProposedQuestion("bob", "How much is my rent?", "c", 0, "$100", "amount")]


def test_an_assistant_is_read_only_where_it_restates_what_the_user_said() -> None:
    said = {"role": "assistant", "text": "I bought a boat in May. You mentioned that you bought a lamp at IKEA."}
    line = SessionLine.model_validate({"corpus": "ann", "session": "s", "said_on": None, "turns": [said]})
    assert [(one.text, one.answer) for one in propose([line])] == [
        ("Where did I buy a lamp?", "at IKEA"), ("What did I buy at IKEA?", "a lamp")]


def session(name: str, *texts: str, corpus: str = "ann") -> SessionLine:
    turns = [{"role": "user", "text": text} for text in texts]
    return SessionLine.model_validate({"corpus": corpus, "session": name, "said_on": None, "turns": turns})


def test_questions_are_those_of_the_facts() -> None:
    assert questions_of("I bought a bike in May.", "Ann") == ["When did Ann buy a bike?", "What did Ann buy in May?"]


def test_questions_of_ones_own_come_first_with_a_pool_and_no_source(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "systems", lambda: {"words": lexical()})
    write(tmp_path, {"sessions.jsonl": json_lines(*LINES), "questions.jsonl": json_lines(
        {"question": "q", "corpus": "ann", "text": "Q?", "evidence": [{"session": "s1", "turn": 0}]})})
    assert command.main([str(tmp_path), "--ask", "Does it  rain?", "--ask", "Who drinks tea?", "--limit", "3"]) == 0
    printed = capsys.readouterr().out
    assert "3 questions; pools of words" in printed
    assert "is there already" in printed
    (data,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "questions.html").read_text("utf-8"))
    questions = json.loads(data)["questions"]
    assert [q["text"] for q in questions] == ["Does it rain?", "Who drinks tea?", "What is my cat called?"]
    assert "It rains." in [c["text"] for c in questions[0]["candidates"]]


def test_a_question_of_ones_own_needs_one_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {**LINES[0], "corpus": "bob"}
    write(tmp_path, {"sessions.jsonl": json_lines(*LINES, other)})
    for words, fault in ((["--ask", "Q?"], "of 2 corpora"), (["--ask", "Q?", "--corpus", "bbo"], "did you mean 'bob'"),
                         (["--ask", " ", "--corpus", "bob"], "blank")):
        assert command.main([str(tmp_path), *words]) == 1
        assert fault in capsys.readouterr().err


def test_faults_of_the_chat_model_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"sessions.jsonl": json_lines(*LINES)})
    assert command.main([str(tmp_path), "--chat", "qwen"]) == 1
    assert command.main([str(tmp_path), "chat.urll=http://127.0.0.1:1/v1"]) == 1
    assert "did you mean" in capsys.readouterr().err
