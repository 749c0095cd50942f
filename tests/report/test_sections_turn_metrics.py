from __future__ import annotations

from memlab.harness.results import ArmRun
from memlab.report.build import ReportFiles
from memlab.report.html import page
from memlab.report.markdown import document
from memlab.report.sections import turn_metrics


def with_turns(report: ReportFiles, **values: float) -> dict:
    """The comparison with these figures (their names as in metrics.json) for the arm gap alone."""
    arms = {name: {**arm, "metrics": {m: e for m, e in arm["metrics"].items() if not m.startswith(("turn/", "macro/"))}}
            for name, arm in report.comparison["arms"].items()}
    for metric, value in values.items():
        arms["gap"]["metrics"][metric] = {"value": value, "low": None, "high": None, "n": 60}
    return {**report.comparison, "arms": arms}


def test_arms_that_rank_turns_have_a_row_in_both_reports(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    comparison = with_turns(report, **{"turn/ndcg@10": .6235, "macro/type/turn/ndcg@10": .5651, "turn/recall@10": .8152,
                                       "turn/mrr@10": .5799, "turn/recall_any@1": .4454})
    cells = [".6235", ".5651", "", ".8152", ".5799", ".4454"]
    ((name, *row),) = turn_metrics(comparison)[0].rows
    assert name == "gap"
    assert [float(cell) if cell[-1].isdigit() else None for cell in row] == [
        round(float(cell), 3) if cell else None for cell in cells]
    text = document(comparison, arms)
    assert "\n## Turns, as other benchmarks print them\n" in text
    assert f"| gap | {' | '.join(row)} |" in text
    assert 'id="turns"' in page(comparison, arms)


def test_sessions_alone_have_no_such_section(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    comparison = with_turns(report)
    assert turn_metrics(comparison) == []
    assert "as other benchmarks print them" not in document(comparison, arms)
    assert 'id="turns"' not in page(comparison, arms)


def test_arms_with_the_same_figures_share_a_row(report: ReportFiles) -> None:
    comparison = with_turns(report, **{"turn/ndcg@10": .6})
    metrics = comparison["arms"]["gap"]["metrics"]
    arms = {name: {**arm, "metrics": metrics} for name, arm in comparison["arms"].items()}
    assert [row[0] for row in turn_metrics({**comparison, "arms": arms})[0].rows] == [f"all {len(arms)} arms"]
    arms["oracle"] = comparison["arms"]["oracle"]
    assert [row[0] for row in turn_metrics({**comparison, "arms": arms})[0].rows] == [
        ", ".join(name for name in arms if name != "oracle")]
