from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlab.commands.peers import main
from tests.evaluate.peers.test_measure import FAKES
from tests.learn.small_models import tiny_encoder

DATA = ("data.lives=1", "data.sessions=6", "data.questions=4")


@pytest.mark.slow
def test_peers_that_work_and_that_fail_are_rows_of_one_report(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder = tiny_encoder(tmp_path / "tiny")
    words = [*DATA, f"out={tmp_path}", f"store={tmp_path}/store", f"embedder.path={encoder}", "embedder.name=tiny"]
    names = [str(FAKES / name) for name in ("vectors", "dies", "hybrid", "invents")]
    assert main(["run", *names, *words, "--k", "20"]) == 0
    out = capsys.readouterr().out
    assert "dies failed: the process ended in add (status 7): out of luck" in out
    folder, = tmp_path.glob("peers/*")
    report = (folder / "report.md").read_text()
    assert "hybrid has the first 10 of vectors in 4 of 4 questions." in report
    assert "hybrid warned: WARNING root: full text search failed" in report
    assert "dies failed: the process ended in add" in report
    assert "invents failed: none of its 12 results is a turn of the history." in report
    comparison = json.loads((folder / "comparison.json").read_text())
    assert comparison["missing"] == ["dies", "invents"]
    assert comparison["arms"]["vectors"]["metrics"] == comparison["arms"]["hybrid"]["metrics"]
    assert json.loads((folder / "rankings" / "hybrid.json").read_text())["figures"]["unmapped"] == 0
    kept = (folder / "rankings" / "vectors.trec").read_text()
    assert main(["run", names[0], *words, "--k", "20"]) == 0
    assert "1 memory" not in capsys.readouterr().out  # the result was kept
    assert (folder / "rankings" / "vectors.trec").read_text() == kept


def test_the_list_names_package_licence_and_what_it_sends_home(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "  bm25s 0.3.16, not installed, licence MIT; sends home: nothing" in out


@pytest.mark.parametrize(("words", "status", "why"), [
    (["run", "bm25z", "data=synthetic"], 1, "there is no peer 'bm25z'; did you mean 'bm25s'?"),
    (["run", "data=synthetic"], 1, "no peer is named"),
    (["run", "bm25s", "data=nowhere"], 2, "nowhere"),
    (["run", "bm25s", "search/lexical=none"], 2, "this command does not read search/lexical")])
def test_mistakes_are_said_without_a_traceback(
        words: list[str], status: int, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == status
    assert why in capsys.readouterr().err
