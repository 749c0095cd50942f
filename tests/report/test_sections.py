"""Optional sections: causes of wrong answers, learned rankings, question types, turn metrics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from memlab.evaluate.attribution import BEYOND, NOISE, STEADY
from memlab.experiment.harness.results import ArmRun, finished_arms, read_arm
from memlab.pipeline.tables import frame
from memlab.report import sections
from memlab.report.build import ReportFiles, build
from memlab.report.html import page
from memlab.report.markdown import document
from memlab.report.sections import DECLINE, attribution_tables, turn_metrics, type_tables, types
from memlab.report.view_model import ReportView
from tests.report.samples import make_runs
from tests.sealing import seal

ROWS = [  # question, reached, right, sampled, cause
    (0, "shown", True, True, STEADY), (1, "shown", False, True, BEYOND), (2, "cut by K", False, True, "cut by K"),
    (3, "shown", False, False, None), (4, None, False, True, NOISE), (5, "cut by K", True, True, "cut by K"),
]


def test_why_answers_are_wrong_in_the_page_the_markdown_and_the_tables(tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "attribution" / "synthetic", questions=6, arms=("gap",))
    (place,) = folder.glob("gap-*")
    names = ("question", "reached", "right", "sampled", "cause")
    attribution = frame("attribution", {"view": ["all"] * 6 + ["any"] * 6,
                                        **{name: [row[i] for row in ROWS] * 2 for i, name in enumerate(names)}})
    attribution.write_parquet(place / "attribution.parquet")
    seal(place)
    tables = {one.caption.removeprefix("gap, "): one for one in attribution_tables([read_arm(place)])}
    assert [*tables] == [f"{view} evidence: {what}" for view in ("any", "all") for what in (
        "how far it got", "causes", "wrong answers by question type")]
    causes = tables["any evidence: causes"]
    assert causes.head == ("cause", "wrong answers, of 3 sampled", "right answers, of 2 sampled")
    assert causes.rows == ((NOISE, "1", "0"), ("cut by K", "1", "1"), (BEYOND, "1", "0"), (STEADY, "0", "1"))
    words = tables["all evidence: causes"].remark
    assert words == "gap, all evidence: 1 of 3 wrong answers lack evidence, 2 do not."
    far = tables["all evidence: how far it got"]
    assert far.rows == (("shown", "1", "2"), ("cut by K", "1", "1"), (DECLINE, "0", "1"))  # all six questions, once
    # wrong: 1 (how many marathons, multi-session), 2 (when, temporal), 4 (could you suggest, preference)
    kinds = tables["any evidence: wrong answers by question type"]
    assert kinds.head[1:] == tuple(f"{kind} (n = 1)" for kind in (
        "multi-session", "single-session-preference", "temporal-reasoning"))
    assert kinds.rows == ((NOISE, "0", "1", "0"), ("cut by K", "0", "0", "1"), (BEYOND, "1", "0", "0"))
    built = build(folder)
    assert words in built.html.read_text(encoding="utf-8")
    text = built.markdown.read_text(encoding="utf-8").replace("\\", "")
    assert words in text
    assert "| cut by K | 0 | 0 | 1 |" in text.partition("wrong answers by question type")[2]
    attribution.filter(question=2).write_parquet(place / "attribution.parquet")
    seal(place)
    assert len(attribution_tables([read_arm(place)])) == 4  # causes of questions of one type are not split


def of(arms: tuple[ArmRun, ...], name: str) -> ArmRun:
    return next(arm for arm in arms if arm.name == name)


def test_arms_with_the_same_importances_share_a_table(arms: tuple[ArmRun, ...]) -> None:
    (table,) = sections.importance_tables(arms)
    assert set(table.caption.split(", ")) == {"gap", "by_type"}
    assert [row[1:] for row in table.rows] == [("50.0 %",), ("25.0 %",), ("5.0 %",)]
    assert "\u202e" not in table.rows[2][0]
    other = replace(of(arms, "gap"), name="other", manifest={"importances": [{"feature": "a", "share": 1.0}]})
    assert [t.caption for t in sections.importance_tables([of(arms, "by_type"), other])] == ["by_type", "other"]


def test_a_hostile_type_stays_text(runs: Path, report: ReportFiles) -> None:
    gap, evil = of(finished_arms(runs).arms, "gap"), "</td><script>x|y"
    gap.questions.with_columns(category=pl.lit(evil)).write_parquet(gap.folder / "questions.parquet")
    seal(gap.folder)
    again = of(finished_arms(runs).arms, "gap")
    named = replace(again, metrics={**again.metrics, f"type={evil}/selected/session/recall_all": .5})
    view = ReportView(report.comparison, [named])
    assert "<script>x" not in page(view)
    assert "&lt;/td&gt;&lt;script&gt;x\\|y" in document(view)


def test_a_table_by_type_counts_scored_questions_and_is_left_out_where_all_arms_agree(arms: tuple[ArmRun, ...]) -> None:
    rows = arms[0].questions
    assert sum(size for _, size in types(arms)) == rows["scored"].sum() < rows.height
    (table,) = type_tables(arms, ["selected/session/recall_all", "session/recall_all@5"])
    assert table.metric == "selected/session/recall_all"
    assert max(tint for _, cells in table.rows for _, tint in cells if tint is not None) == 100
    means = rows.filter("scored").group_by("category").agg(pl.col(table.metric).mean()).sort("category")
    assert [text for text, _ in table.rows[0][1]] == [f"{100 * value:.1f} %" for value in means[table.metric]]


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
    row = ("0.624", "0.565", "–", "0.815", "0.580", "0.445")
    assert turn_metrics(comparison)[0].rows == (("gap", *row),)
    (counted,) = turn_metrics(with_turns(report, **{"turn/ndcg@10": .6235, "round/recall@10": .9}))
    assert dict(zip(counted.head, counted.rows[0]))["recall@10, rounds"] == "0.900"
    text = document(ReportView(comparison, arms))
    assert "\n## Turns, as other benchmarks print them\n" in text
    assert f"| gap | {' | '.join(row)} |" in text
    metrics = comparison["arms"]["gap"]["metrics"]
    same = {name: {**arm, "metrics": metrics} for name, arm in comparison["arms"].items()}
    assert [row[0] for row in turn_metrics({**comparison, "arms": same})[0].rows] == [f"all {len(same)} arms"]
    same["oracle"] = comparison["arms"]["oracle"]
    assert [row[0] for row in turn_metrics({**comparison, "arms": same})[0].rows] == [
        ", ".join(name for name in same if name != "oracle")]


def test_what_no_arm_has_is_no_section(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    view = ReportView(with_turns(report), [of(arms, "fixed_10")])
    assert [section.name for section in view.sections] == ["costs"]
    assert not [name for name in ("turns", "why", "importances") if f'id="{name}"' in page(view)]
