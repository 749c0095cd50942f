"""The pages of the cookbook: their files in an empty folder, and the commands that they print."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.memory.memory import Memory, Session
from tests.models.chatserver import ChatServer
from tests.small import LIVES, lexical
from tests.test_structure import ROOT

pytestmark = pytest.mark.slow
PAGES = ROOT / "docs" / "cookbook"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each code block."""
    return BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))


def files(page: str, folder: Path) -> None:
    """Write every file of a page: its first line names it."""
    for language, text in blocks(page):
        if language != "bash":
            first, _, content = text.partition("\n")
            file = folder / first.removeprefix("# ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")


def commands(page: str) -> list[str]:
    return [line for language, text in blocks(page) if language == "bash" for line in text.splitlines()]


def memlab(folder: Path, words: Sequence[str], path: Sequence[Path] = (), status: int = 0) -> str:
    """The output of a command in a folder, on Python's path nothing but memlab and ``path``."""
    return python(folder, ["-m", "memlab", *words], path, status)


def python(folder: Path, words: Sequence[str], path: Sequence[Path] = (), status: int = 0, typed: str = "") -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT])), "PYTHONSAFEPATH": "1",
           "MEMLAB_HOME": str(folder / "home"), "COLUMNS": "200"}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=env, text=True, capture_output=True, input=typed)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def run(folder: Path, line: str, *more: str) -> str:
    """The output of a printed command; a shell would expand ``*`` in names of files."""
    command, *words = shlex.split(line)
    assert command == "memlab"
    expanded = [str(one) for word in words for one in (folder.glob(word) if "*" in word else [word])]
    return memlab(folder, [*expanded, *more])


def folder_of(root: Path, name: str, data: str = "synthetic") -> Path:
    (folder,) = (root / "runs" / "single" / data).glob(f"{name}-*")
    return folder


def record(folder: Path, file: str = "manifest.json") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / file).read_text(encoding="utf-8"))
    return content


def test_every_page_is_tested() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {
        "retriever", "dataset", "reranker", "fusion", "experiment", "judge", "agent", "frameworks", "users"}


def test_an_experiment_has_its_question_its_arms_and_its_contrast(tmp_path: Path) -> None:
    files("experiment", tmp_path)
    for line in commands("experiment"):
        run(tmp_path, line.partition("  #")[0], *LIVES, "track=none")
    report = (tmp_path / "runs" / "my_windows" / "synthetic" / "report.md").read_text(encoding="utf-8")
    assert "Do windows of three turns find more than turns, at equal tokens?" in report
    assert "windows finds all evidence" in report


def test_a_retriever_runs_beside_bm25_and_has_the_same_figures_from_its_ranking_file(tmp_path: Path) -> None:
    files("retriever", tmp_path)
    sweep, single, score = commands("retriever")
    run(tmp_path, sweep, *LIVES, "track=none")
    trigram, bm25 = folder_of(tmp_path, "trigram"), folder_of(tmp_path, "bm25")
    assert record(trigram)["plugins"]["mylab"]["version"] is None
    assert record(bm25)["plugins"] == {}
    assert record(trigram, "metrics.json") != record(bm25, "metrics.json")
    assert "mild" in run(tmp_path, single, *LIVES, "track=none", "plan=true")
    run(tmp_path, score, *LIVES)
    (scored,) = tmp_path.glob("runs/score/synthetic/run-*")
    whole, ranks = ({name: figure for name, figure in record(folder, "metrics.json").items() if "nothing/" not in name}
                    for folder in (trigram, scored))
    assert ranks == whole
    assert (tmp_path / "runs" / "score" / "synthetic" / "report.html").is_file()


@pytest.mark.nightly
def test_an_installed_retriever_is_used_by_its_name_from_any_folder(tmp_path: Path) -> None:
    files("retriever", tmp_path / "source")
    for line in (["wheel", "-q", "--no-deps", "--no-build-isolation", "-w", ".", "."],
                 ["install", "-q", "--no-deps", "--no-index", "--no-compile", "--target", str(tmp_path / "site"),
                  "mylab-0.1-py3-none-any.whl"]):
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *line], check=True,
                       capture_output=True, cwd=tmp_path / "source")
    site, words = [tmp_path / "site"], [*LIVES, "search/dense=none", "search/lexical=trigram"]
    (tmp_path / "empty").mkdir()
    memlab(tmp_path / "empty", ["run", "plugins=[trigram]", *words, "track=none", "name=mine"], site)
    assert record(folder_of(tmp_path / "empty", "mine"))["plugins"]["mylab"]["version"] == "0.1"


def test_a_data_set_is_read(tmp_path: Path) -> None:
    files("dataset", tmp_path)
    (line,) = commands("dataset")
    run(tmp_path, line, "track=none", "name=diary")
    folder = folder_of(tmp_path, "diary", "diary")
    assert record(folder, "metrics.json")["session/recall_any@1"] == 1
    assert set(record(folder)["plugins"]) == {"diary"}
    missing = memlab(tmp_path, [*shlex.split(line.replace("=mine", "=nowhere"))[1:], "rank.select.kk=1"], status=2)
    assert "data.path: nowhere/entries.csv is not there" in missing
    assert "'kk'; did you mean 'k'?" in missing


def test_a_reranker_changes_the_order(tmp_path: Path) -> None:
    files("reranker", tmp_path)
    (line,) = commands("reranker")
    run(tmp_path, line, *LIVES, "track=none")
    plain, mine = (pl.read_parquet(folder_of(tmp_path, name) / "ranking.parquet") for name in ("none", "overlap"))
    assert mine["overlap"].drop_nulls().is_between(0, 1).all()
    assert plain.select("question", "rank", "unit").join(mine, on=["question", "rank", "unit"]).height < plain.height


def test_a_fusion_rule_ranks(tmp_path: Path) -> None:
    files("fusion", tmp_path)
    run(tmp_path, commands("fusion")[0], *LIVES, "track=none")
    lanes = pl.read_parquet(folder_of(tmp_path, "combmnz") / "ranking.parquet").filter(question=0)
    names = [name for name in lanes.columns if ":" in name]
    scaled = lanes.select((pl.col(names) - pl.col(names).min()) / (pl.col(names).max() - pl.col(names).min()))
    by_hand = scaled.sum_horizontal() * lanes.select(pl.sum_horizontal(pl.col(names).is_not_null()))[:, 0]
    assert lanes["score"].to_list() == pytest.approx(by_hand.to_list(), abs=1e-6)
    run(tmp_path, commands("fusion")[1].partition(" data=")[0], *LIVES, "track=none")


def test_a_judge_gives_its_verdicts(tmp_path: Path) -> None:
    files("judge", tmp_path)
    (line,) = commands("judge")
    server = ChatServer(lambda messages: "I think it was three.")
    server.start()
    try:
        run(tmp_path, line.replace("http://localhost:8000/v1", server.url), *LIVES, "track=none", "name=judged")
    finally:
        server.stop()
    folder = folder_of(tmp_path, "judged")
    verdicts = pl.read_ndjson(folder / "verdicts.jsonl")
    assert verdicts.height == 16
    assert verdicts["judge"].unique().to_list() == ["numbers"]
    assert set(verdicts.filter(pl.col("correct").is_null())["reply"]) == {"the gold answer has no number"}
    assert 0 < verdicts["score"].sum() < verdicts["score"].count() < 16
    assert set(record(folder)["plugins"]) == {"digits"}


def test_an_agent_searches_its_memory_and_remembers_what_was_said(tmp_path: Path) -> None:
    files("agent", tmp_path)
    (line,) = commands("agent")
    command, script, url, model, user, _, talk = shlex.split(line)
    assert command == "python"
    server = ChatServer(lambda messages: act(messages))

    def act(messages: list[dict[str, Any]]) -> str:
        """Call the tool, with arguments of a wrong form first; then answer."""
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if len(results) == 2:
            server.message = {}
            return f"Found: {results}"
        arguments = '{"question": "Which pet do I have?"}' if results else "{"
        server.message = {"content": None, "tool_calls": [{
            "id": f"call{len(results)}", "type": "function", "function": {"name": "search_memory",
                                                                          "arguments": arguments}}]}
        return ""

    with Memory(tmp_path / "memory", lexical()) as memory:
        for owner, pet in (("ann", "a cat named Tom"), ("bob", "a dog")):
            memory.add(Session("2023-05-20", [("user", f"I adopted {pet}. My pet is well.")], user=owner))
    server.start()
    try:
        said = python(tmp_path, [script, url.replace("http://localhost:8000/v1", server.url), model, user],
                      typed=(tmp_path / talk).read_text())
    finally:
        server.stop()
    assert "the search failed" in said
    assert "cat named Tom" in said
    assert "dog" not in said
    with Memory(tmp_path / "memory", lexical()) as memory:
        (number,) = memory.list(where={"user": user})["session"].to_list()[1:]
        texts = [(turn.role, turn.text) for turn in memory.get(number).turns]
    assert texts[0] == ("user", "Which pet do I have?")
    assert texts[-1][1].startswith("Found: ")
    assert not [text for _, text in texts[:-1] if "cat" in text]  # what was found is not said again


def test_users_of_one_memory_find_what_they_find_in_their_own(tmp_path: Path) -> None:
    files("users", tmp_path)
    (line,) = commands("users")
    said = python(tmp_path, shlex.split(line)[1:])  # it compares the results itself
    assert said == "100 sessions, 5 of user7\n95 sessions are left\n"


@pytest.mark.parametrize("package", ["langchain_core", "llama_index.core"])
def test_a_framework_retrieves_from_a_memory(tmp_path: Path, package: str) -> None:
    pytest.importorskip(package)  # .ci/nightly frameworks has an environment for each
    files("frameworks", tmp_path)
    (line,) = (line for line in commands("frameworks") if package.partition("_")[0] in line)
    assert python(tmp_path, shlex.split(line)[1:]) == "I adopted a cat named Tom. 0\n"
