"""Paths that a data set cannot read, and the words that lead on."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.data.inspect import inspect
from memlab.experiment.config.compose import compose
from memlab.experiment.config.instantiate import make_dataset
from memlab.support.errors import MemlabError
from tests.chat_exports import SAMPLES, pack

(LISBON,) = SAMPLES["chatgpt"]["files"]["conversations.json"]
EXPORT = {"conversations.json": [LISBON]}


@pytest.mark.parametrize("name", [
    "custom", "documents", "locomo", "longmemeval_s", "realtalk", "realmem", "beam", "beir"])
@pytest.mark.parametrize("form", ["my export.zip", "folder"])
def test_each_data_set_names_the_line_that_imports_an_export(name: str, form: str, tmp_path: Path) -> None:
    place = tmp_path / form
    if form == "folder":
        place.mkdir()
        pack(place / "export.zip", EXPORT)
    else:
        pack(place, EXPORT)
    with pytest.raises(MemlabError) as error:
        make_dataset(name, path=place).load()
    quoted = f"'{place}'" if " " in str(place) else place
    assert str(error.value) == (f"{place}: this is a ChatGPT export, which is not read as it is. Fix: import it: "
                                f"memlab import {quoted}")


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


def test_a_path_without_data_says_which_data_are_chosen_and_how_to_choose(tmp_path: Path) -> None:
    def fault(place: object) -> str:
        _, faults = compose([f'data.path="{place}"'], False)
        (told,) = faults
        return told

    assert "data=synthetic is chosen, which reads no file; name the data set of this path: data=custom data.path=x" in (
        fault("x"))
    assert "data= beam, beir, documents, locomo" in fault("x")
    zipped = pack(tmp_path / "export.zip", EXPORT)
    assert f"this is a ChatGPT export: memlab import {zipped}" in fault(zipped)
    (tmp_path / "sessions.jsonl").write_text("")
    assert f"did you mean data=custom data.path={tmp_path}?" in fault(f"{tmp_path}x")
    assert fault(tmp_path).endswith(f"; write data=custom data.path={tmp_path}")
    with pytest.raises(MemlabError, match=r"this is a folder of sessions: .* Fix: data=custom data\.path="):
        make_dataset("locomo", path=tmp_path)


@pytest.mark.parametrize("words", [["questions"], ["data", "check"]])
def test_commands_that_take_a_folder_name_the_import(words: list[str], tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    place = pack(tmp_path / "export.zip", EXPORT)
    assert main([*words, str(place)]) == 1
    out, err = capsys.readouterr()
    assert f"import it: memlab import {place}" in out + err
