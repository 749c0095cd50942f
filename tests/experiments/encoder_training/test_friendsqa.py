"""FriendsQA: its format on small made files, and the counts of the official ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from encoder_training.friendsqa import CATEGORIES, FriendsQA, join_tokens, speaker_of

from memlab.data.dataset import groups
from memlab.pipeline.tables import Tables, with_text
from memlab.support.errors import MemlabError
from tests.data.official_records import write

pytestmark = pytest.mark.nightly


def said(number: int, text: str, *speakers: str) -> dict[str, Any]:
    return {"uid": number, "speakers": list(speakers), "utterance": text}


def question(name: str, text: str, *cited: int, answer: str = "a cat .") -> dict[str, Any]:
    return {"id": name, "question": text, "answers": [
        {"answer_text": answer, "utterance_id": number, "inner_start": 0, "inner_end": 1, "is_speaker": False}
        for number in cited]}


def scene(**changes: Any) -> dict[str, Any]:
    return {"utterances:": [said(0, "[ Scene : A flat . ]", "#NOTE#"), said(1, "I do n't mind .", "Ann Lee"),
                            said(2, "", "Bo"), said(3, "Hi !", "Ann Lee", "Dr. Roe", "#NOTE#"), said(5, "Oh", "#ALL#")],
            "qas": [question("s01_e02_c01_What", "What is n't there ?", 3, 1, 3),
                    question("s01_e02_c01_Who_Paraphrased", "Who ?", 5, 4, 4, 9)],
            **changes}


def episodes(*scenes: dict[str, Any], title: str = "s01_e02_c01") -> dict[str, Any]:
    return {"data": [{"title": title, "paragraphs": list(scenes or (scene(),))}], "version": "1.0"}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Scenes 3 and 1 (of two parts) of one episode in two files, and one scene of an earlier episode."""
    write(tmp_path / "friendsqa_dev.json", {"data": [
        *episodes(scene(qas=[question("s01_e02_c03_When", "When ?")]), title="s01_e02_c03")["data"],
        *episodes(scene(qas=[question("x_how", "How ?", 0)]), title="s01_e01_c07")["data"]]})
    write(tmp_path / "friendsqa_tst.json", episodes(scene(), scene(qas=[question("x_Why", "Why ?", 1)])))
    write(tmp_path / "other.json", [])
    return FriendsQA(path=tmp_path).load()


def test_an_episode_is_a_corpus_and_its_scenes_are_sessions_in_order(tables: Tables) -> None:
    ids = tables["ids"]
    assert ids.filter(kind="corpus")["name"].to_list() == ["s01_e01", "s01_e02"]
    assert ids.filter(kind="session").select("corpus", "session", "name").rows() == [
        (0, 0, "s01_e01_c07"), (1, 0, "s01_e02_c01"), (1, 1, "s01_e02_c01"), (1, 2, "s01_e02_c03")]
    assert tables["questions"].select("question", "corpus").rows() == [(0, 0), (1, 1), (2, 1), (3, 1), (4, 1)]
    assert tables["sessions"]["said_on"].null_count() == 4
    assert tables["questions"]["asked_on"].null_count() == 5


def test_speakers_and_texts(tables: Tables) -> None:
    turns = with_text(tables["turns"].filter(corpus=0), tables["texts"]).sort("turn")
    assert turns.select("speaker", "text").rows() == [
        (None, "[Scene: A flat.]"), ("Ann", "I don't mind."), ("Bo", ""), ("Ann and Dr. Roe", "Hi!"), ("All", "Oh")]
    assert turns["role"].unique().to_list() == ["user"]


@pytest.mark.parametrize(("listed", "speaker"), [
    (["Ross Geller"], "Ross"), (["Frank Buffay Jr."], "Frank"), (["Carl (Rachel's date)"], "Carl"),
    (["Mrs. Buffay"], "Mrs. Buffay"), (["The  Doctor "], "The Doctor"),
    (["Pete's Mom", "Girl 1"], "Pete's Mom and Girl 1"),
    (["Casting Director No. 2"], "Casting Director No. 2"), (["Best Man"], "Best Man"), (["Man"], "Man"),
    (["#NOTE#", "Ross Geller"], "Ross"), (["", " "], None), ([], None),
])
def test_a_speaker_has_a_first_name_where_there_is_one(listed: list[str], speaker: str | None) -> None:
    assert speaker_of(listed) == speaker


@pytest.mark.parametrize(("tokens", "text"), [
    ("You 're gon na kill me !", "You're gonna kill me!"),
    ("No - no - no . I do n't have a son , my son 's name is Jamie .",
     "No - no - no. I don't have a son, my son's name is Jamie."),
    ("[ Scene : Central Perk ( later ) . ]", "[Scene: Central Perk (later).]"),
    ("It cost $ 3.50 ; I 'd got ta go , and I can not .", "It cost $3.50; I'd gotta go, and I cannot."),
    ("Gim me that 'cause I 'M mad", "Gimme that 'cause I'M mad"),
    ("a can nothing got table", "a can nothing got table"), (" two\n lines \t", "two lines"), ("", ""), (" . ", "."),
])
def test_join_tokens(tokens: str, text: str) -> None:
    assert join_tokens(tokens) == text


def test_evidence_is_every_utterance_that_an_answer_cites(tables: Tables) -> None:
    assert tables["evidence"].rows() == [(0, 0, 0), (1, 0, 1), (1, 0, 3), (2, 0, 4), (3, 1, 1)]
    assert tables["gold"].select("category", "answer", "scored", "abstain").rows() == [
        ("how", "a cat.", True, False), ("what", "a cat.", True, False), ("who", "a cat.", True, False),
        ("why", "a cat.", True, False), ("when", None, False, False)]


@pytest.mark.parametrize(("content", "fault"), [
    ([1], "expected an object, got a list"), ({"version": "1.0"}, ", field data: is missing"),
    (episodes(scene(), {"utterances:": []}), "data[0].paragraphs[1], field qas: is missing"),
    (episodes(scene(**{"utterances:": [{"uid": 0, "utterance": "Hi"}]})), ", utterance 0, field speakers: is missing"),
    (episodes(scene(**{"utterances:": [said(0, "", 7)]})),  # type: ignore[arg-type]
     ", utterance 0, field speakers[0]: expected text"),
    (episodes(scene(**{"utterances:": [said(4, "a"), said(4, "b")]})),
     ", utterance 1, field uid: utterance 0 has the number 4 too"),
    (episodes(scene(qas=[question("s01_e02_c01_Whose", "Whose ?", 1)])), "qas[0], field id: expected an id that ends"),
    (episodes(scene(qas=[{"id": "x_Who", "question": "Who ?", "answers": [{"answer_text": "Bo"}]}])),
     "qas[0].answers[0], field utterance_id: is missing"),
])
def test_faults_name_file_and_field(tmp_path: Path, content: Any, fault: str) -> None:
    file = write(tmp_path / "friendsqa_dev.json", content)
    with pytest.raises(MemlabError) as raised:
        FriendsQA(path=file).load()
    assert str(file) in str(raised.value)
    assert fault in str(raised.value)


def test_the_official_files(shared_data: Path) -> None:
    folder = shared_data / "friendsqa"
    if not folder.is_dir():
        pytest.skip(f"FriendsQA is not at {folder}")
    data = FriendsQA(path=folder)
    tables = data.load()
    assert {name: tables[name].height for name in ("sessions", "questions", "evidence", "turns")} == {
        "sessions": 249, "questions": 2_383, "evidence": 2_760, "turns": 5_183}
    assert "notes" not in tables  # every answer is in an utterance
    assert tables["gold"]["scored"].all()
    assert set(tables["gold"]["category"]) == set(CATEGORIES)
    assert tables["turns"]["speaker"].null_count() == 543
    found = groups(tables["questions"], tables["evidence"], tables["turns"], data.grouping())
    assert found["group"].n_unique() == tables["sessions"]["corpus"].n_unique() == 17
