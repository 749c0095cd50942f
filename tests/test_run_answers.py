"""Answers by the command: a reader and judges against a loopback server that counts, dies and says strange things."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab import pipeline
from memlab.run import main
from tests.models.chatserver import ChatServer
from tests.small import words

pytestmark = pytest.mark.slow

STRANGE = "<script>alert(1)</script> \x1b[31mred\x1b[0m \u202eesrever\u202c 7 \x00 end"


def reply(messages: list[dict[str, str]]) -> str:
    """Judge "yes" to all that has a 7 in it; answer with a 7 every second question, by its wording."""
    words = messages[-1]["content"]
    if "Answer:" in words:
        return STRANGE if len(words) % 2 else "I cannot tell."
    return "Yes" if "alert(1)" in words else "No"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    made = ChatServer(reply)
    made.start()
    yield made
    made.stop()


def line(root: Path, server: ChatServer, *more: str) -> list[str]:
    ask = ("read/answer=reader", "chat.model=tiny", f"chat.url={server.url}", "chat.patience=20", "chat.window=20000",
           *(("judge_chat.model=tiny-judge", f"judge_chat.url={server.url}") if "judge=both" in more else ()))
    return words(root, *ask, *more)


def run_folder(root: Path, name: str) -> Path:
    (folder,) = (root / "runs" / "single" / "synthetic").glob(f"{name}-*")
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def test_a_second_judge_and_a_second_run_ask_the_reader_nothing(tmp_path: Path, server: ChatServer) -> None:
    assert main(line(tmp_path, server, "judge=f1", "name=first")) == 0
    asked = len(server.requests)
    assert asked == 16
    assert main(line(tmp_path, server, "judge=f1", "name=again")) == 0  # another name, the same answers
    assert main(line(tmp_path, server, "judge=exact", "name=exact")) == 0
    assert len(server.requests) == asked
    assert main(line(tmp_path, server, "judge=both", "name=both")) == 0
    assert {r["model"] for r in server.requests[asked:]} == {"tiny-judge"}
    one, other = (rows(run_folder(tmp_path, name) / "answers.jsonl") for name in ("first", "both"))
    assert [r["hypothesis"] for r in one] == [r["hypothesis"] for r in other]


def test_figures_files_and_report_hold_what_was_said(tmp_path: Path, server: ChatServer,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line(tmp_path, server, "judge=both", "name=both", "attribute=sample", "attribute.wrong=3",
                     "attribute.right=2")) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told.replace("\x1b[0m", "")
    folder = run_folder(tmp_path, "both")
    metrics = json.loads((folder / "metrics.json").read_text())
    verdicts = rows(folder / "verdicts.jsonl")
    official = [v["score"] for v in verdicts if v["judge"] == "longmemeval_style"]
    assert metrics["answer/longmemeval_style"] == pytest.approx(sum(official) / len(official))
    assert 0 < metrics["answer/longmemeval_style"] < 1
    assert any(r["hypothesis"] == STRANGE.strip() or r["hypothesis"] == STRANGE for r in
               rows(folder / "answers.jsonl"))
    answers = [r for r in rows(folder / "answers.jsonl") if r["prompt_tokens"] is not None]  # replies, not choices
    given = json.loads((folder / "manifest.json").read_text())["replies"]
    assert given["answer"]["tiny"]["replies"] == len(answers)
    assert given["answer"]["tiny"]["prompt_tokens"] == sum(r["prompt_tokens"] for r in answers) > 0
    assert given["answer"]["tiny"]["p50"] == pytest.approx(pl.Series(r["seconds"] for r in answers).median())
    assert {*given} == {"answer", "judge", "attribute"}
    assert "No price is known for tiny" in (folder.parent / "report.md").read_text(encoding="utf-8")
    page = (folder.parent / "report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "Why answers are wrong" in page
    why = pl.read_parquet(folder / "attribution.parquet")
    drawn = why.filter(pl.col("sampled") & (pl.col("view") == "all"))
    assert drawn.group_by("right").len().sort("right")["len"].to_list() == [3, 2]
    assert drawn["cause"].null_count() == 0
    assert "## Why answers are wrong" in (folder.parent / "report.md").read_text(encoding="utf-8")


def test_a_server_that_dies_and_comes_back_costs_nothing_that_was_answered(tmp_path: Path, server: ChatServer) -> None:
    undisturbed = ChatServer(reply)
    undisturbed.start()
    assert main(line(tmp_path / "calm", undisturbed, "judge=both", "name=x")) == 0
    pipeline._MEMO.clear()  # one process remembers what its stages made
    server.die_after = 7
    back = threading.Timer(2.0, server.start)
    watch = threading.Thread(target=lambda: (server._thread.join(60), back.start()))
    watch.start()
    assert main(line(tmp_path / "storm", server, "judge=both", "name=x")) == 0
    watch.join(60)
    back.join(60)
    assert len(server.requests) >= 16
    calm, storm = (rows(run_folder(tmp_path / name, "x") / "verdicts.jsonl") for name in ("calm", "storm"))
    assert calm == storm
    undisturbed.stop()
