from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from memlab import run as memlab_run
from memlab.commands.score import main

DATA = ["data.limit=40", "track=none", "search/dense=none", "search.lexical.depth=150"]  # a run file keeps 200 ranks
SELECTION = ["rank/select=budget", "rank.select.tokens=200"]


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of BM25 on forty questions of the embedded data."""
    out = tmp_path_factory.mktemp("runs")
    assert memlab_run.main([*DATA, *SELECTION, "name=bm25", f"out={out}"]) == 0
    (folder,) = out.glob("*/*/bm25-*")
    return folder


def run_of(folder: Path) -> str:
    """All topics of an exported run."""
    return (folder / "run.trec").read_text() + (folder / "run.unjudged.trec").read_text()


def figures(folder: Path) -> dict[str, float]:
    """All figures but those of certainty, which a list of ranks does not have."""
    found: dict[str, float] = json.loads((folder / "metrics.json").read_text())
    return {name: figure for name, figure in found.items() if "nothing/" not in name}


@pytest.mark.parametrize("kind", ["trec", "mteb", "lists"])
def test_a_run_file_of_an_arm_has_the_figures_of_the_arm(arm: Path, tmp_path: Path, kind: str) -> None:
    lines = [line.split() for line in run_of(arm).splitlines()]
    by_topic: dict[str, list[str]] = {}
    for topic, _, document, *_ in lines:
        by_topic.setdefault(topic, []).append(document)
    file = tmp_path / f"foreign-{kind}.txt"
    file.write_text({
        "trec": run_of(arm),
        "mteb": json.dumps({"default": {"test": {topic: {d: -i for i, d in enumerate(documents)}
                                                 for topic, documents in by_topic.items()}}}),
        "lists": "\n".join(json.dumps({"question_id": topic, "ranked": documents})
                           for topic, documents in by_topic.items())}[kind])
    assert main([str(file), *DATA[:1], *SELECTION, f"out={tmp_path}"]) == 0
    (folder,) = tmp_path.glob(f"score/*/foreign-{kind}-*")
    assert figures(folder) == figures(arm)
    one, two = (pl.read_parquet(path / "context.parquet") for path in (arm, folder))
    columns = ["question", "position", "text_id", "tokens"]
    assert one.select(columns).equals(two.select(columns))
    assert (tmp_path / "score" / "synthetic" / "report.html").is_file()


def test_runs_stand_beside_the_arms_of_an_experiment(arm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = arm.parents[2] / "theirs.jsonl"
    topics = list(dict.fromkeys(line.split()[0] for line in run_of(arm).splitlines()))
    file.write_text("\n".join(json.dumps({"question_id": topic, "ranked": ["s0"]}) for topic in topics[1:]))
    assert main([str(file), *DATA[:1], *SELECTION, f"out={arm.parents[2]}", "--experiment", "single"]) == 0
    out = capsys.readouterr().out
    assert "theirs: ranked lists, 39 rows of sessions, 39 questions" in out
    assert "! 1 of 40 questions have no ranking" in out
    comparison = json.loads((arm.parent / "comparison.json").read_text())
    assert {"bm25", "theirs"} <= set(comparison["arms"])
    assert comparison["verdict"]["ranking"][0]["arm"] == "bm25"


def test_lint_writes_nothing(arm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lint", str(arm / "run.trec"), *DATA[:1], f"out={tmp_path}"]) == 0
    assert "run: TREC run" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("words", "status", "message"), [
    (["nowhere.trec"], 1, "the run cannot be read"),
    (["nowhere.trec", "rank/select=budgt"], 2, "budget"),
    (["nowhere.trec", "plan=true"], 2, "plan=true: this command does not read plan"),
    (["nowhere.trec", "search/dense=none"], 2, "this command does not read search/dense"),
    (["nowhere.trec", "write/chunk=session"], 2, "this command does not read write/chunk"),
])
def test_faults_are_said_without_a_traceback(
        words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == status
    assert message in capsys.readouterr().err


def test_a_setting_with_dashes_is_answered_with_its_form(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["mine.trec", "--data", "locomo"])
    assert "--data: there is no such option; settings have no dashes: data=NAME" in capsys.readouterr().err


def test_the_first_file_is_what_others_are_compared_with(arm: Path, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.trec").write_text((arm / "run.trec").read_text())
    for first, second in (("b", "a"), ("c", "a")):
        assert main([str(tmp_path / f"{first}.trec"), str(tmp_path / f"{second}.trec"), *DATA[:1], *SELECTION,
                     f"out={tmp_path}"]) == 0
        comparison = json.loads((tmp_path / "score" / "synthetic" / "comparison.json").read_text())
        assert next(iter(comparison["arms"])) == first
    assert [name for name in comparison["arms"] if not name.endswith(".twin")] == ["c", "a", "b"]


def test_a_later_file_of_one_name_says_what_it_replaces(
        arm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (arm / "run.trec").read_text().splitlines(keepends=True)
    for folder, content in (("a", lines), ("b", lines[:-1])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.trec").write_text("".join(content))
        assert main([str(tmp_path / folder / "run.trec"), *DATA[:1], *SELECTION, f"out={tmp_path}"]) == 0
        assert ("it takes the place of an earlier run named 'run'" in capsys.readouterr().out) == (folder == "b")


CUSTOM = {
    "sessions": [{"corpus": "ann", "session": "s1", "said_on": "2024-01-05", "turns": [
                     {"role": "user", "text": "My dog is called Rex."}, {"role": "user", "text": "I live in Oslo."}]},
                 {"corpus": "ann", "session": "s2", "said_on": "2024-01-06", "turns": [
                     {"role": "user", "text": "I have three cats."}]},
                 {"corpus": "ann", "session": "late", "said_on": "2024-02-06", "turns": [
                     {"role": "user", "text": "I have four cats now."}]}],
    "questions": [{"question": f"q{n}", "corpus": "ann", "text": "What?", "asked_on": "2024-01-07", "answer": "x",
                   "evidence": [{"session": "s1", "turn": 0}]} for n in range(3)]}


@pytest.mark.parametrize("select", ["fixed_10", "budget"])
def test_unknown_documents_are_misses_that_cost_nothing(
        tmp_path: Path, select: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in CUSTOM.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ranked = [("q0", "fact-1"), ("q0", "late:0"), ("q0", "s1:0"), ("q1", "s1:0"), ("q1", "s1"), ("q2", "fact-1")]
    (tmp_path / "theirs.trec").write_text("".join(f"{q} Q0 {d} 0 {-n} x\n" for n, (q, d) in enumerate(ranked)))
    words = [str(tmp_path / "theirs.trec"), "data=custom", f"data.path={tmp_path}", f"rank/select={select}",
             f"out={tmp_path}"]
    assert main(["--lint", *words]) == 0
    said = ["Rows that name documents that the question's history does not have: 3, in 3 of 3 questions ('fact-1', "
            "'s1'). ",
            "Rows that name a session of a later day than the question: 1, in 1 of 3 questions ('late:0'). ",
            "1 of 3 questions rank such documents alone ('q2'). They count as not found."]
    lint = capsys.readouterr().out
    assert all(sentence in lint for sentence in said)
    assert main(words) == 0
    (folder,) = tmp_path.glob("score/*/theirs-*")
    values = figures(folder)
    assert values["turn/mrr"] == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert values["session/mrr"] == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert values["turn/recall_any@1"] == pytest.approx(1 / 3)
    assert values["turn/ndcg@3"] == pytest.approx((1 / 2 + 1 + 0) / 3)  # 1 / log2(3 + 1)
    assert values["selected/turn/recall_all"] == pytest.approx(2 / 3)
    assert values["selected/k_mean"] == 2  # 3, 2 and 1 rows
    context = pl.read_parquet(folder / "context.parquet")
    assert values["context/tokens_mean"] == pytest.approx(context["tokens"].sum() / 3)
    assert context["question"].to_list() == [0, 1]
    report = json.loads((folder.parent / "comparison.json").read_text())
    assert all(any(note.startswith(f"theirs: {sentence}") for note in report["notes"]) for sentence in said)
    assert pl.read_parquet(folder / "shown.parquet").filter(question=0)["text"].to_list()[:2] == [
        "no such document: fact-1", "no such document: late:0 (of a later day)"]


def test_a_file_takes_the_place_of_no_arm(arm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bm25.trec").write_text(run_of(arm))
    words = [*DATA[:1], *SELECTION, f"out={arm.parents[2]}", "--experiment"]
    assert main([str(tmp_path / "bm25.trec"), *words, "single"]) == 1
    assert "has the name 'bm25'. Fix: rename the file" in capsys.readouterr().err
    for name in ("../single", "", ".."):
        with pytest.raises(SystemExit):
            main([str(tmp_path / "bm25.trec"), *words, name])
