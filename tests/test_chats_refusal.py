"""Paths that a data set cannot read, and the words that lead on."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.chats.refusal import export_at
from memlab.config.compose import compose
from memlab.config.instantiate import make_dataset
from memlab.data.inspect import inspect
from memlab.errors import MemlabError
from tests.chat_exports import write

CHAT = [{"title": "Job", "create_time": 1.7e9, "current_node": "b", "conversation_id": "c", "mapping": {
    "a": {"id": "a", "message": None, "parent": None, "children": ["b"]},
    "b": {"id": "b", "parent": "a", "children": [], "message": {
        "id": "b", "author": {"role": "user"}, "create_time": 1.7e9,
        "content": {"content_type": "text", "parts": ["I start at Acme on Monday."]}}}}}]


def export(place: Path) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("conversations.json", json.dumps(CHAT))
    return place


@pytest.mark.parametrize("name", ["custom", "documents", "locomo", "longmemeval_s", "realtalk", "beam", "beir"])
@pytest.mark.parametrize("form", ["my export.zip", "folder"])
def test_each_data_set_names_the_line_that_imports_an_export(name: str, form: str, tmp_path: Path) -> None:
    place = tmp_path / form
    if form == "folder":
        place.mkdir()
        export(place / "export.zip")
    else:
        export(place)
    with pytest.raises(MemlabError) as error:
        make_dataset(name, path=place).load()
    quoted = f"'{place}'" if " " in str(place) else place
    assert str(error.value) == (f"{place}: this is a ChatGPT export, which is not read as it is. Fix: import it: "
                                f"memlab import {quoted}")


@pytest.mark.parametrize("name", ["custom", "documents", "locomo"])
def test_one_channel_of_an_unpacked_slack_export_names_the_import_of_all(
        name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = {"type": "message", "ts": "1709286000.000000", "user": "U1", "text": "We ship in May."}
    write(tmp_path / "slack", {"users.json": [{"id": "U1", "name": "ann"}], "eng/2024-03-01.json": [message]})
    channel = tmp_path / "slack" / "eng"
    with pytest.raises(MemlabError) as error:
        make_dataset(name, path=channel).load()
    assert str(error.value) == (
        f"{channel}: this is one channel of a Slack export, which is not read as it is. Fix: import all channels, with "
        f"people's names: memlab import {tmp_path}/slack; or this one: memlab import {channel}")
    assert main(["import", str(channel), "--out", str(tmp_path / "one")]) == 0
    assert f"this is one channel; for all of them, with people's names: memlab import {tmp_path}/slack" in (
        capsys.readouterr().out)


@pytest.mark.parametrize("name", ["custom", "documents", "locomo", "beir"])
def test_a_missing_path_is_answered_with_its_neighbour_of_nearly_that_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "chats-slack").mkdir()
    with pytest.raises(MemlabError) as error:
        make_dataset(name, path=tmp_path / "chats-slak").load()
    assert f"Fix: did you mean data.path={tmp_path}/chats-slack? Else " in str(error.value)
    with pytest.raises(MemlabError) as error:
        make_dataset(name, path=tmp_path / "letters").load()
    assert "did you mean" not in str(error.value)
    with pytest.raises(MemlabError, match="did you mean .*chats-slack"):
        inspect(tmp_path / "chats-slak")


def test_a_file_of_chats_is_no_benchmark(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps(CHAT))
    with pytest.raises(MemlabError, match=r"this is a ChatGPT export, .* memlab import .*conversations\.json"):
        make_dataset("locomo", path=tmp_path / "conversations.json").load()
    assert export_at(tmp_path / "nowhere") is None


def test_a_path_without_data_says_which_data_are_chosen_and_how_to_choose(tmp_path: Path) -> None:
    def fault(place: object) -> str:
        _, faults = compose([f'data.path="{place}"'], False)
        (told,) = faults
        return told

    assert "data=synthetic is chosen, which reads no file; name the data set of this path: data=custom data.path=x" in (
        fault("x"))
    assert "data= beam, beir, documents, locomo" in fault("x")
    zipped = export(tmp_path / "export.zip")
    assert f"this is a ChatGPT export: memlab import {zipped}" in fault(zipped)
    (tmp_path / "sessions.jsonl").write_text("")
    assert f"did you mean data=custom data.path={tmp_path}?" in fault(f"{tmp_path}x")
    assert fault(tmp_path).endswith(f"; write data=custom data.path={tmp_path}")
    with pytest.raises(MemlabError, match=r"this is a folder of sessions: .* Fix: data=custom data\.path="):
        make_dataset("locomo", path=tmp_path)


def test_a_folder_without_sessions_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"there is no sessions\.jsonl in it.*memlab import EXPORT"):
        make_dataset("custom", path=tmp_path)


def test_text_that_is_no_utf_8_is_said_to_be_none_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "latin.json"
    file.write_bytes('[{"sample_id": "café"}]'.encode("latin-1"))
    with pytest.raises(MemlabError, match=r"latin\.json, record 0: this is not UTF-8 text\. Fix: save the file as"):
        make_dataset("locomo", path=file).load()
    sessions = tmp_path / "sessions.jsonl"
    sessions.write_bytes('{"corpus": "café"}'.encode("latin-1"))
    (problem,) = inspect(tmp_path).problems
    assert f"{sessions}" in problem
    assert "it is not UTF-8" in problem


def test_a_line_of_another_name_is_not_taken_for_sessions_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("")
    (problem,) = inspect(tmp_path / "mine.jsonl").problems
    assert problem.startswith(f"{tmp_path / 'mine.jsonl'}: neither sessions.jsonl nor questions.jsonl")


def test_check_names_every_fault_of_a_line_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sessions.jsonl").write_text(
        '{"corpus": "", "session": 3, "said_on": "20 May", "turns": [{"role": "bot", "text": 4}, {"role": "user"}]}\n'
        '{"corpus": "a"\n{"corpus": "a", "session": "s", "said_on": null, "turns": [], "more": 1}\n')
    (tmp_path / "questions.jsonl").write_text(
        '{"question": "q", "corpus": "a", "text": "", "asked_on": "never", '
        '"evidence": [{"session": "s", "turn": -1}]}\n')
    assert main(["data", "check", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    for place in ("sessions.jsonl, line 1, field corpus", "line 1, field session", "line 1, field said_on",
                  "line 1, field turns[0].role", "line 1, field turns[0].text", "line 1, field turns[1].text",
                  "sessions.jsonl, line 2: invalid JSON", "line 3, field more", "questions.jsonl, line 1, field text",
                  "line 1, field asked_on", "line 1, field evidence[0].turn"):
        assert place in told


@pytest.mark.parametrize("words", [["questions"], ["data", "check"]])
def test_commands_that_take_a_folder_name_the_import(words: list[str], tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    place = export(tmp_path / "export.zip")
    assert main([*words, str(place)]) == 1
    out, err = capsys.readouterr()
    assert f"import it: memlab import {place}" in out + err
