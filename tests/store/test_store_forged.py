"""Files of other kinds in a store: what they held is computed again, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memlab.commands.store import main
from memlab.models.protocols import Message, Prompt
from memlab.pipeline.tables import texts_frame
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.chats import ScriptedChat
from tests.forged import KINDS, forge
from tests.fuzz.mutation import outcome
from tests.stages.search.world import WordEmbedder
from tests.token_words import TokenWords

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
TEXTS = texts_frame(["the cat sat", "a dog ran home", "tea"])
PROMPTS = [Prompt((Message("user", "hello"),))]


def vectors_of(root: Path) -> object:
    return Store(root).vectors(WordEmbedder(), TEXTS, "document").tolist()


def tokens_of(root: Path) -> object:
    found = Store(root).token_vectors(TokenWords(), TEXTS, "document")
    return [found.text(i)[1].tolist() for i in range(TEXTS.height)]


def replies_of(root: Path) -> object:
    return [reply.text for reply in Store(root).completions(ScriptedChat(lambda p: "Hi!", name="one"), PROMPTS)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("pattern", "results"), [
    ("vectors/*/*.segment", vectors_of), ("vectors/*/identity.json", vectors_of), ("tokens/*/*.segment", tokens_of),
    ("completions/*/*.jsonl", replies_of)])
def test_a_forged_file_is_no_answer(pattern: str, results: Callable[[Path], object], kind: str, tmp_path: Path,
                                    capsys: pytest.CaptureFixture[str]) -> None:
    right = results(tmp_path)
    (path,) = tmp_path.glob(pattern)
    forge(path, kind)
    for command in ("info", "verify"):
        assert outcome(lambda command=command: main([command, f"store={tmp_path}"])) in (0, 1, 2)
    seen = outcome(lambda: results(tmp_path))
    assert seen == right or (kind == "folder" and isinstance(seen, MemlabError))
    assert outcome(lambda: main(["prune", f"store={tmp_path}"])) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err
