"""Figures that the authors of the published systems print, beside those of a comparison (published.yaml).

``python experiments/systems/published.py`` writes the tables of docs/systems.md, between its two marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from memlab.evaluate.compare import Comparison, judge_metrics
from memlab.evaluate.costs import STAGES, per, price_table
from memlab.report import units
from memlab.report.costs import complete, dollars, milliseconds
from memlab.report.markdown import plain
from memlab.report.sections import PlainTable
from memlab.support.foreign import load_yaml
from memlab.support.text.display import EMPTY, format_count, is_number

FILE = Path(__file__).with_name("published.yaml")
PAGE = Path(__file__).parents[2] / "docs/systems.md"
START, END = "<!-- made from experiments/systems/published.yaml by published.py beside it -->", "<!-- end -->"

OTHER_DATA = "no: other data"
"""What stands in a table on a benchmark that the author did not use."""

TYPES = {"user": "single-session-user", "assistant": "single-session-assistant",
         "preference": "single-session-preference", "temporal": "temporal-reasoning", "update": "knowledge-update",
         "multi-session": "multi-session"}
"""LongMemEval's types by the names in the tables."""


@cache
def figures() -> dict[str, Any]:
    """Return the content of the file: sizes, answers, retrieval, here_on, targets, costs, latencies and errors."""
    content: dict[str, Any] = load_yaml(FILE.read_text(encoding="utf-8"))
    return content


def from_types(row: Mapping[str, Any]) -> float | None:
    """Return the percent of all questions that an author's figures by type give; None without all of them.

    >>> from_types({"user": 87.1, "assistant": 96.4, "preference": 90.0, "temporal": 75.9, "update": 85.9,
    ...             "multi-session": 78.2})
    82.8
    """
    sizes: dict[str, int] = figures()["sizes"]
    if not sizes.keys() <= row.keys():
        return None
    return round(sum(sizes[kind] * row[kind] for kind in sizes) / sum(sizes.values()), 1)


def tables_of(comparison: Comparison) -> list[PlainTable]:
    """Return the tables with the figures of a comparison's arms, and what the authors print on cost and latency."""
    beside = answers(comparison), protocols(comparison), retrieval(comparison), targets(comparison)
    return [*beside, costs(), contexts(comparison), latencies()]


def contexts(comparison: Comparison) -> PlainTable:
    """Return what one hosted reader would cost for the context that each arm shows; tokens stand in for a reply."""
    _, reader, reply = price_table()
    rows = []
    for name, summary in comparison["arms"].items():
        tokens = summary["tokens_mean"]
        cost = None if tokens is None else reader.dollars(tokens, reply)
        rows.append((name, format_count(tokens), dollars(cost), dollars(per(cost, complete(summary))),
                     dollars(None if cost is None else 500 * cost), dollars(None if cost is None else 1e6 * cost)))
    return PlainTable(
        "If a hosted reader read each context", ("arm", "context tokens", "per question",
                                                 "per complete evidence", "500 questions", "a million questions"),
        tuple(rows),
        f"A stand-in, not a measurement: {reader.input:g} dollars a million tokens read and {reader.output:g} written "
        f"({reader.date}, {reader.source}), the context alone and a reply of {reply} tokens. Tokens are those of the "
        "run's own counter.")


def answers(comparison: Comparison | None = None) -> PlainTable:
    """Return the table of answers; those of a comparison's arms stand below the row of their system, if it has a judge.
    """
    kinds = tuple(figures()["sizes"])
    judge = next(iter(judge_metrics(comparison)), None) if comparison else None
    rows = []
    for group in figures()["answers"]:
        for row in group["rows"]:
            rows.append((row["system"], f"{group['author']}, {group['benchmark']}", _percent(row["overall"]),
                         _percent(from_types(row)), *(_percent(row.get(kind)) for kind in kinds)))
            if comparison and judge:
                rows += [_answers_of(comparison, name, judge) for name in row.get("arms", ())
                         if judge in comparison["arms"].get(name, {"metrics": {}})["metrics"]]
    return PlainTable(
        "Answers, percent right, as printed by the authors",
        ("system", "printed by, on", "overall", "from types", *kinds), tuple(rows),
        "From types: what the figures by type give over LongMemEval's 500 questions.", 2)


def _answers_of(comparison: Comparison, name: str, judge: str) -> tuple[str, ...]:
    """Return the row of an arm: its share of right answers, of all questions and by type."""
    metrics = comparison["arms"][name]["metrics"]
    values = [metrics[metric]["value"] * 100 if metric in metrics else None
              for metric in (judge, *(f"type={TYPES[kind]}/{judge}" for kind in figures()["sizes"]))]
    overall, *by_type = map(_percent, values)
    return f"{name}, this run", f"judge {judge.partition('/')[2]}", overall, EMPTY, *by_type


def protocols(comparison: Comparison | None = None) -> PlainTable:
    """Return how the authors measured answers, and whether a run of memlab can be compared with that."""
    rows = tuple((group["author"], group["benchmark"], group["protocol"], _comparable(comparison, group))
                 for group in figures()["answers"])
    return PlainTable("How these answers were measured", ("printed by", "on", "protocol", "comparable"), rows, "", 4)


def retrieval(comparison: Comparison | None = None) -> PlainTable:
    """Return the table of retrieval, with the figures of a comparison's arms or those measured for the docs."""
    rows = []
    for row in figures()["retrieval"]:
        here = (_of_run(comparison, row["arms"], row["metric"]) if comparison
                else _cell(row["metric"], row["here"]) if "here" in row else EMPTY)
        rows.append((f"{row['author']}, {row['figure']}", _comparable(comparison, row),
                     _cell(row["metric"], row["value"]), here))
    return PlainTable("Retrieval, as printed by the authors",
                      ("figure", "comparable", "printed", "this run" if comparison else "here"), tuple(rows),
                      "" if comparison else f"Here: {figures()['here_on']}.", 2)


def targets(comparison: Comparison) -> PlainTable:
    """Return whether each arm meets the targets of Gimli's author."""
    wanted = figures()["targets"]
    rows = []
    for name, arm in comparison["arms"].items():
        cells = []
        for target in wanted:
            estimate = arm["metrics"].get(target["metric"])
            cells.append(f"{estimate['value']:.3f}, {'met' if estimate['value'] > target['above'] else 'not met'}"
                         if estimate else EMPTY)
        rows.append((name, *cells))
    return PlainTable(
        "Targets of Gimli's author", ("arm", *(f"{t['figure']} > {t['above']:g}" for t in wanted)), tuple(rows),
        "Figures of sessions over this data; the author's are for its own labelled set. With n sessions of "
        "evidence P@5 is n / 5 at most: .2 with one.")


def costs() -> PlainTable:
    """Return the table of what a question costs, as the authors print it."""
    rows = tuple((f"{row['author']}: {row['what']}", *(dollars(count * row["dollars"]) for count in (1, 500, 1e6)))
                 for row in figures()["costs"])
    return PlainTable("Cost in US dollars, as printed by the authors",
                      ("what", "per question", "500 questions", "a million questions"), rows,
                      "The report of a run has its own: Cost and latency.")


def latencies() -> PlainTable:
    """Return the table of the time that a question takes by stage, as the authors print it."""
    stages = (*STAGES, "total")
    rows = tuple((row["author"], *(milliseconds(row.get(stage)) for stage in stages)) for row in figures()["latencies"])
    return PlainTable("Latency of a question by stage in milliseconds, as printed by the authors", ("author", *stages),
                      rows, "")


def errors() -> PlainTable:
    """Return the table of the causes of wrong answers as the authors state them."""
    causes = ("retrieval", "reasoning", "data", "extraction")
    rows = tuple((row["author"], str(row["wrong"]), *(_percent(row.get(cause)) for cause in causes))
                 for row in figures()["errors"])
    return PlainTable(
        "Causes of wrong answers, percent, as printed by the authors", ("author", "wrong answers", *causes), rows,
        "Read by the authors, not tested; memlab tests causes by intervention (+exp=attribution_by_system). "
        "MemoryStack's rows make 37 failures; OltraMem's accuracy makes 148.")


def document_tables() -> list[PlainTable]:
    """Return the tables of docs/systems.md, which have no figures of a run."""
    return [answers(), protocols(), retrieval(), errors()]


def _of_run(comparison: Comparison, arms: Sequence[str], metric: str) -> str:
    """Return the first of these arms that a comparison has, with its value of a metric."""
    for name in arms:
        if name in comparison["arms"] and metric in comparison["arms"][name]["metrics"]:
            return f"{units.write(metric, comparison['arms'][name]['metrics'][metric]['value'])} ({name})"
    return EMPTY


def _comparable(comparison: Comparison | None, row: Mapping[str, Any]) -> str:
    other = comparison is not None and not comparison["data"].startswith(row["dataset"])
    return OTHER_DATA if other else str(row["comparable"])


def _percent(value: Any) -> str:
    return f"{value:.{2 if round(value, 1) != round(value, 2) else 1}f}" if is_number(value) else EMPTY


def _cell(metric: str, value: float) -> str:
    return f"{value:.1f} %" if units.is_share(metric) else f"{value:.3f}"


def page(text: str) -> str:
    """Return the page with the tables of the file between its marks."""
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    return f"{before}{START}\n\n" + "\n\n".join(map(plain, document_tables())) + f"\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
