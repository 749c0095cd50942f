"""LongMemEval's judge word for word: prompts read from a script that is parsed and never executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.models.protocols import Message
from memlab.pipeline.stage import spec_digest
from memlab.stages.judge.official import OfficialJudge
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.data.test_fetch import Server, server  # noqa: F401 - a fixture
from tests.stages.judge.script import SCRIPT, put
from tests.stages.judge.worlds import judged, one, says

KINDS = [
    ("multi-session", False, "Plain.\n\nQ: What was it?\n\nA: {tea}\n\nR: {0} milk\n\nFine?"),
    ("single-hop", False, "Plain.\n\nQ: What was it?\n\nA: {tea}\n\nR: {0} milk\n\nFine?"),
    ("temporal-reasoning", False, "Dates. What was it? | {tea} | {0} milk"),
    ("temporal", False, "Dates. What was it? | {tea} | {0} milk"),
    ("knowledge-update", False, "Newest value. What was it? | {tea} | {0} milk"),
    ("single-session-preference", False, "Taste. What was it? | rubric {tea} | {0} milk {sic}"),
    ("knowledge-update", True, "Unknown. What was it? | why {tea} | {0} milk"),
]


@pytest.fixture
def script(memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return put(memlab_home, monkeypatch)


@pytest.mark.parametrize(("category", "abstain", "expected"), KINDS)
def test_the_scripts_prompt_is_sent_word_for_word(category: str, abstain: bool, expected: str, script: Path,
                                                  tmp_path: Path) -> None:
    chat = says("That was YESterday")
    verdicts = judged(OfficialJudge(chat=chat), one("{tea}", "{0} milk", category, abstain), Store(tmp_path))
    assert verdicts == [(1.0, True, "That was YESterday")]
    (prompt,) = chat.asked
    assert prompt.messages == (Message("user", expected),)
    assert (prompt.temperature, prompt.max_tokens, prompt.schema, prompt.sample) == (0.0, 10, None, 0)


def test_without_the_script_it_says_where_to_get_it(memlab_home: Path) -> None:
    with pytest.raises(MemlabError, match=r"evaluate_qa.py.*memlab data fetch longmemeval_judge.*"
                                          r"xiaowu0162/LongMemEval.*judge.script"):
        OfficialJudge(chat=says("yes"))


def test_another_version_needs_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "copy.py"
    path.write_text(SCRIPT)
    with pytest.raises(MemlabError, match="checksum.*any_version=true"):
        OfficialJudge(chat=says("yes"), script=path)
    assert OfficialJudge(chat=says("yes"), script=path, any_version=True)


def test_the_scripts_content_names_the_judge_not_its_path(tmp_path: Path) -> None:
    paths = [tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"]
    for path, text in zip(paths, (SCRIPT, SCRIPT, SCRIPT.replace("Plain", "Simple"))):
        path.write_text(text)
    chat = says("yes")
    one_, same, other = (spec_digest(OfficialJudge(chat=chat, script=p, any_version=True)) for p in paths)
    assert one_ == same != other


@pytest.mark.parametrize(("old", "new"), [
    ("def get_anscheck_prompt", "def another"), ("task, question", "question, task"), ("import os", "import ("),
    ("return prompt", "return open('/etc/passwd').read()"), ("return prompt", "os.system('true')"),
    ("return prompt", "return 3"), ("return prompt", "prompt"), ("Dates. {} |", "Dates. {0.__class__} |"),
    ("Dates. {} |", "Dates. {!r} |"), ("Dates. {} |", "Dates. {} {} |"), ("Dates. {} |", "Dates. {name} |"),
    ("template.format(question, answer, response)", "eval(template)"), ("'temporal-reasoning'", "'other'"),
])
def test_any_other_code_is_refused_and_never_run(old: str, new: str, memlab_home: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    assert old in SCRIPT
    put(memlab_home, monkeypatch, SCRIPT.replace(old, new))
    with pytest.raises(MemlabError, match=r"evaluate_qa.py.*fetch longmemeval_judge"):
        OfficialJudge(chat=says("yes"))
