"""Notes of what went another way than asked: in the manifest of each arm that they concern, whole or in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.experiment.harness.arm import note_counts
from memlab.models.protocols import Prompt
from memlab.pipeline.tables import Notes
from memlab.stages.query.decompose import LLMDecompose
from memlab.stages.rank.select import Fixed
from memlab.stages.read.prompt import PromptTemplate
from memlab.stages.read.reader import Reader
from memlab.store import Store
from memlab.support.foreign import read_json
from tests.chats import ScriptedChat
from tests.small import arm, lexical

LACKS = "replies lack the mark before the answer"
UNREAD = "decompositions could not be read"


def marked(prompt: Prompt) -> str:
    """Mark the answer to every second question, by its wording."""
    return "Answer: 7" if len(prompt.messages[-1].content) % 2 else "it is 7"


@pytest.mark.filterwarnings("ignore:16 of 16 decompositions")
def test_manifests_count_what_went_wrong_also_where_a_result_is_shared(tmp_path: Path) -> None:
    store, chat = Store(tmp_path / "store"), ScriptedChat(marked, window=20_000)
    stages = {"decompose": LLMDecompose(chat=ScriptedChat(lambda p: "no idea", name="mute")),
              "answer": Reader(chat=chat, prompt=PromptTemplate(instructions="{date} {history} {question}",
                                                                answer_mark="Answer:"))}
    for k in (3, 5):
        folder = arm(tmp_path, lexical(select=Fixed(k=k), **stages), name=f"k{k}").run(store)
        counts = read_json(folder / "manifest.json")["told"]
        assert counts[UNREAD] == {"number": 16, "of": 16}
        lacking = sum(marked(p) == "it is 7" for p in chat.asked)
        assert counts[LACKS] == {"number": lacking, "of": 16}
        assert 0 < lacking < 16
        chat.asked.clear()


def test_counts_of_equal_notes_are_added() -> None:
    notes = Notes()
    for number in (1, 2):
        notes.add(number, 4, "replies were lost; a consequence")
    notes.add(5, 9, "prompts were refused")
    assert list(note_counts(notes.table()).items()) == [
        ("prompts were refused", {"number": 5, "of": 9}), ("replies were lost", {"number": 3, "of": 8})]
