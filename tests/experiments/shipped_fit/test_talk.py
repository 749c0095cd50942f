from __future__ import annotations

import json
from pathlib import Path

import pytest
from shipped_fit.talk import friendsqa, molweni, write

from memlab.data.custom import Custom
from memlab.pipeline.tables import with_text

pytestmark = pytest.mark.nightly


def test_a_place_in_the_context_is_the_turn_that_it_lies_in(tmp_path: Path) -> None:
    """The context is "ann: it broke bob: reboot it ann: thanks"; "reboot" begins at 19."""
    piece = {"edus": [{"speaker": "Ann", "text": "it broke"}, {"speaker": "bob", "text": "reboot it"},
                      {"speaker": "Ann", "text": "thanks"}],
             "qas": [{"question": "What to do?", "is_impossible": False, "answers": [{"answer_start": 19}]},
                     {"question": "Who?", "is_impossible": True, "answers": []}]}
    (tmp_path / "test.json").write_text(json.dumps({"data": {"dialogues": [piece] * 3}}))
    write(molweni(tmp_path / "test.json"), 2, 1, tmp_path / "made")
    tables = Custom(path=tmp_path / "made").load()
    assert tables["questions"].height == 3
    assert tables["evidence"]["turn"].to_list() == [1, 1, 1]
    assert tables["sessions"].group_by("corpus").len().sort("corpus")["len"].to_list() == [2, 1]
    assert with_text(tables["turns"], tables["texts"])["speaker"].unique().sort().to_list() == ["Ann", "bob"]


def test_scenes_come_by_title_with_first_names_and_joined_tokens(tmp_path: Path) -> None:
    def scene(title: str) -> dict[str, object]:
        said = [{"uid": 4, "speakers": ["Ross Geller"], "utterance": "I ca n't !"}]
        asked = [{"question": "Who ca n't ?", "answers": [{"utterance_id": 4}, {"utterance_id": 9}]}]
        return {"title": title, "paragraphs": [{"utterances:": said, "qas": asked}]}

    (tmp_path / "friendsqa_dev.json").write_text(json.dumps({"data": [scene("b"), scene("a")]}))
    assert list(friendsqa(tmp_path)) == [
        (title, [{"role": "user", "speaker": "Ross", "text": "I can't!"}], [("Who can't?", [0])]) for title in "ab"]
