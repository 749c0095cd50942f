"""Replies of a judge that say nothing: empty, nothing but thinking, cut off, withheld, declined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.commands.judge import main
from memlab.models.chat.openai import OpenAIChat
from memlab.pipeline.stage import Stage
from memlab.report.build import verdict_counts
from memlab.stages.judge import accuracy
from memlab.stages.judge.llm import LlmJudge
from memlab.stages.judge.official import OfficialJudge
from memlab.stages.systems.memorystack.stages import MemoryStackJudge
from memlab.store import Store
from tests.commands.test_judge import ANSWERS, data, lines, verdicts, words  # noqa: F401 - a fixture
from tests.models.chatserver import ChatServer, serving
from tests.stages.judge.script import put
from tests.stages.judge.worlds import one, says

STYLES = ("longmemeval_style", "strict", "lenient", "memorystack", "official")
JSON = '{"correct": true, "reason": "it is there"}'


@pytest.fixture(autouse=True)
def script(memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memlab_home, monkeypatch)


def judge(style: str, server: ChatServer) -> Stage:
    model: Any = OpenAIChat(model="tiny", url=server.url, window=4096)
    if style == "official":
        return OfficialJudge(chat=model)
    if style == "memorystack":
        return MemoryStackJudge(chat=model)
    return LlmJudge(chat=model, name=style, style=style)  # type: ignore[arg-type]


def row(style: str, message: dict[str, Any], finish: str, tmp_path: Path) -> dict[str, Any]:
    with serving() as server:
        server.message, server.finish = message, finish
        tables = judge(style, server).run(one("tea", "milk"), Store(tmp_path))
    (verdict,) = tables["verdicts"].iter_rows(named=True)
    told = {what for what, _, _ in tables["notes"].rows()}
    assert (verdict["fault"] is None) == (not any("judge" in what and "replies" in what for what in told))
    return verdict


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("message", "finish", "fault"), [
    ({"content": ""}, "length", "were cut off at max_tokens"),
    ({"content": None}, "length", "were cut off at max_tokens"),
    ({"content": None, "reasoning_content": "yes, it is"}, "stop", "are empty"),
    ({"content": " \n"}, "stop", "are empty"),
    ({"content": "<think>The reference says yes"}, "length", "were cut off at max_tokens"),
    ({"content": "<think>yes or no?</think>\n"}, "stop", "are empty"),
    ({"content": "<think>never ends, yes"}, "stop", "are empty"),
    ({"content": None, "refusal": "I cannot say yes to this."}, "stop", "were declined by the model"),
    ({"content": ""}, "content_filter", "were withheld by the server's content filter"),
    ({"content": ""}, "insufficient_system_resource", "ended early")])
def test_a_reply_that_says_nothing_is_no_verdict_and_named(style: str, message: dict[str, Any], finish: str, fault: str,
                                                           tmp_path: Path) -> None:
    verdict = row(style, message, finish, tmp_path)
    assert verdict["fault"] == fault
    assert verdict["correct"] is (False if style == "official" else None)  # the script finds no "yes" in it
    assert verdict["score"] == (0.0 if style == "official" else None)


@pytest.mark.parametrize("style", STYLES)
def test_a_cut_reply_counts_for_the_script_alone(style: str, tmp_path: Path) -> None:
    verdict = row(style, {"content": "Yes, because the reference"}, "length", tmp_path)
    assert verdict["correct"] is (True if style == "official" else None)
    assert verdict["fault"] == "were cut off at max_tokens"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("before", ["", "<think>Is it? no, yes, no.</think>\n\n", "a bare {thought}, no or yes</think>",
                                    "<thinking>no yes</thinking><think>yes no {}</think> ", "[THINK]yes no[/THINK]"])
@pytest.mark.parametrize("right", [True, False])
def test_a_finished_reply_is_judged_on_what_follows_the_thinking(style: str, before: str, right: bool,
                                                                 tmp_path: Path) -> None:
    word = json.dumps({"correct": right, "reason": "so"}) if style == "memorystack" else "yes" if right else "no"
    verdict = row(style, {"content": before + word}, "stop", tmp_path)
    assert (verdict["correct"], verdict["fault"]) == (right, None)


def test_the_command_counts_them_beside_the_accuracy(data: Path,  # noqa: F811
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    path = lines(data.parent / "h.jsonl", *ANSWERS)
    with serving(rule=lambda m: "yes" if "There were 3" in m[-1]["content"] else "") as server:
        for style, expected in (("strict", "4 of 5 answers without a verdict, left out of the accuracy and of paired "
                                           "tests: 4 replies are empty. Raise the judge's max_tokens"),
                                ("official", "4 replies are empty, and counted as the judge's script counts them: "
                                             "0 right, 4 wrong. The script's limit is fixed")):
            assert main([str(path), *words(data, "--judge", style), "--chat.model=tiny",
                         f"--chat.url={server.url}"]) == 0
            out = capsys.readouterr().out
            assert expected in out
            overall = next(line.split() for line in out.splitlines() if line.startswith("  overall"))
            without, n = (4, 1) if style == "strict" else (0, 5)
            assert (overall[1], overall[-1]) == (str(n), str(without))
            assert [row.get("fault") for row in verdicts(path)] == [None, *["are empty"] * 4]


def test_a_prompt_that_does_not_fit_is_named_with_its_remedy(tmp_path: Path) -> None:
    chat = says("yes", window=40)
    (remark,) = accuracy.remarks(LlmJudge(chat=chat).run(one("tea", "milk"), Store(tmp_path))["verdicts"])
    assert "1 reply was not asked for, since the prompt does not fit into the window. Raise judge_chat.window" in remark


def test_verdicts_without_faults_are_counted() -> None:
    table = pl.DataFrame({"judge": ["official"] * 2 + ["strict"] * 3, "correct": [True, False, True, None, None]})
    assert verdict_counts(table) == {"strict": {"answers": 3, "without": 2, "incomplete": 0}}
    (remark,) = accuracy.remarks(table.filter(judge="strict"))
    assert remark.startswith("2 of 3 answers without a verdict")
