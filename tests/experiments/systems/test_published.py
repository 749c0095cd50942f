"""Published figures beside those of a run: the docs hold the file, and rows by type make the overall figures or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from systems.__main__ import main
from systems.published import PAGE, TYPES, answers, costs, figures, from_types, latencies, page, retrieval

pytestmark = pytest.mark.nightly


def comparison(data: str = "longmemeval_s", arms: dict[str, dict[str, float]] | None = None) -> Any:
    """A comparison of nothing but its data and the figures of its arms."""
    given = arms or {"rag_v1_local": {"session/mrr": .931}, "oltramem": {"session/recall_any@10": 1.0}}
    return {"data": data, "arms": {name: {"metrics": {metric: {"value": value} for metric, value in of.items()},
                                          "tokens_mean": 1_000.0} for name, of in given.items()}}


def test_the_docs_hold_the_file() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text
    assert "| Mastra Observational Memory | rag_v1, LongMemEval | 94.87 |" in text


def test_rows_by_type_are_weighed_by_the_sizes_of_the_types() -> None:
    """Of 500: v1 414; MemoryStack 463, not the 464 of its text; the rows of full context make 331, not 301."""
    by_name = {row["system"]: row for group in figures()["answers"] for row in group["rows"] if "user" in row}
    right = {name: round(5 * from_types(row)) for name, row in by_name.items()}  # type: ignore[operator]
    assert right == {"RAG Memory Provider v1.2": 414, "MemoryStack": 463, "Zep (GPT-4o)": 352,
                     "full context (GPT-4o)": 331}
    assert from_types({"overall": 58.3}) is None


def test_an_arm_stands_beside_the_figure_that_its_author_prints() -> None:
    rows = {row[0]: row[1:] for row in retrieval(comparison()).rows}
    assert rows["rag_v1, MRR"] == ("no: what counts as relevant is not said", "0.906",
                                                   "0.931 (rag_v1_local)")
    assert rows["OltraMem, hit@10"][1:] == ("98.0 %", "100.0 % (oltramem)")
    assert rows["rag_v1, hit@10"][-1] == "–"
    assert {row[1] for row in retrieval(comparison(data="locomo")).rows} == {"no: other data"}


def test_accuracies_of_a_judge_stand_beside_the_printed_ones_overall_and_by_type() -> None:
    judged = comparison(arms={"oltramem": {"answer/strict": .25}, "memorystack": {
        "answer/strict": .5, "type=single-session-user/answer/strict": .75,
        "type=temporal-reasoning/answer/strict": 1.0}})
    rows = [row for row in answers(judged).rows if row[0] in ("MemoryStack", "memorystack, this run")]
    assert rows == [
        ("MemoryStack", "MemoryStack, LongMemEval-S", "92.8", "92.6", "98.6", "91.1", "93.3", "90.2", "97.4", "89.5"),
        ("memorystack, this run", "judge strict", "50.0", "–", "75.0", "–", "–", "100.0", "–", "–")]
    assert [row[2] for row in answers(judged).rows if row[0] == "oltramem, this run"] == ["25.0", "25.0"]
    assert {*TYPES} == {*figures()["sizes"]}


@pytest.mark.parametrize("system", ["Hindsight", "EmergenceMem", "Mem0", "naive RAG"])
def test_systems_that_the_authors_compare_with_are_there(system: str) -> None:
    (row,) = (row for row in answers().rows if row[0] == system)
    assert float(row[2]) > 50


def test_costs_and_latencies_are_those_printed() -> None:
    assert [row[1] for row in costs().rows] == ["0.00024", "0.00014", "0.0080", "0.0096"]
    assert [row[-1] for row in costs().rows[:2]] == ["240", "140"]  # a month of a million, as printed
    assert costs().rows[-1][-2:] == ("4.78", "9,560")
    assert latencies().rows[0][1:] == ("5.0", "100", "150", "50.0", "5.0", "500", "–", "–", "900")
    assert latencies().rows[-1][3] == "14.6"


def test_the_command_prints_all_tables_or_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (None, "{}", '{"arms": []}', "nonsense"):
        if content:
            (tmp_path / "comparison.json").write_text(content)
        assert main([str(tmp_path)]) == 1
        assert f"Fix: make it: memlab report {tmp_path}" in capsys.readouterr().err
    (tmp_path / "comparison.json").write_text(json.dumps(comparison("locomo")))
    assert main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("Hindsight", "Targets of Gimli's author", "no: other data", "0.00024",
                                          "| oltramem | 1,000 | 0.0030 | – | 1.50 | 3,000 |"))  # 50 tokens a reply
