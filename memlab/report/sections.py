"""Optional sections of a report: question types, error attribution, turn metrics, learned rankings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from memlab.evaluate.attribution import CAUSES
from memlab.evaluate.compare import Comparison
from memlab.evaluate.evidence import STEPS, VIEWS
from memlab.evaluate.summary import Estimate
from memlab.experiment.harness.results import ArmRun
from memlab.report import units
from memlab.support.text.display import EMPTY, format_number, is_number, safe_line


@dataclass(frozen=True)
class PlainTable:
    """A table of texts: heads and rows, a remark below it, and the first column of numbers."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remark: str = ""
    numbers_from: int = 1


DECLINE = "no evidence: to decline"

WHY = ("Under the view any, evidence counts as shown when any piece of it is, under all only when all of it is. A "
       "cause is the first of these changes that turns the verdict: the same context read again, a second judge, the "
       "tables, gold before the rest, gold alone. The same was tried on a sample of right answers.")


def attribution_tables(arms: Sequence[ArmRun]) -> list[PlainTable]:
    """Tabulate how far evidence got, the causes, and those by type of question, of each arm with an attribution."""
    return [table for arm in arms if arm.attribution is not None for view in VIEWS
            for table in _cause_tables(f"{safe_line(arm.name)}, {view} evidence", arm.attribution.filter(
                pl.col("view") == view).join(arm.questions.select("question", "category"), on="question", how="left"))]


def _cause_tables(heading: str, rows: pl.DataFrame) -> list[PlainTable]:
    counts = Counter((reached or DECLINE, right) for reached, right in rows.select("reached", "right").iter_rows())
    steps = tuple((step, str(counts[step, True]), str(counts[step, False])) for step in (*STEPS[::-1], DECLINE)
                  if counts[step, True] or counts[step, False])
    failed, passed = (rows.filter("sampled", pl.col("right") == right) for right in (False, True))
    wrong, right = Counter(failed["cause"]), Counter(passed["cause"])
    lost = sum(wrong[step] for step in STEPS)  # the basis of any rate of reasoning errors
    words = (f"{heading}: {lost} of {failed.height} wrong answers lack evidence, {failed.height - lost} do not."
             if failed.height else f"{heading}: no wrong answer was sampled.")
    tables = [
        PlainTable(f"{heading}: how far it got", ("evidence", "answered right", "wrong"), steps),
        PlainTable(f"{heading}: causes", ("cause", f"wrong answers, of {failed.height} sampled",
                                          f"right answers, of {passed.height} sampled"),
                   tuple((c, str(wrong[c]), str(right[c])) for c in CAUSES if wrong[c] or right[c]), words)]
    kinds = sorted(Counter(failed["category"].drop_nulls()).items())
    by_kind = Counter(failed.select("cause", "category").iter_rows())
    if len(kinds) > 1:
        tables.append(PlainTable(
            f"{heading}: wrong answers by question type",
            ("cause", *(f"{safe_line(kind)} (n = {n})" for kind, n in kinds)),
            tuple((c, *(str(by_kind[c, kind]) for kind, _ in kinds)) for c in CAUSES if wrong[c])))
    return tables


def types(arms: Sequence[ArmRun]) -> list[tuple[str, int]]:
    """Return the question types with their numbers of scored questions, in alphabetical order."""
    sizes: dict[str, int] = {}
    for arm in arms:
        scored = arm.questions.filter(arm.questions["scored"]).group_by("category").len()
        for category, size in scored.iter_rows():
            if category is not None:
                sizes[category] = max(size, sizes.get(category, 0))
    return sorted(sizes.items())


SPAN = 0.2
"""Smallest range of a table's tints, so that a spread of a point or two does not look large."""


@dataclass(frozen=True)
class TypeTable:
    """A metric by question type: (type, its questions), and for each arm (text, tint 0 to 100 or None) of each type."""

    metric: str
    types: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, tuple[tuple[str, int | None], ...]], ...]


def type_tables(arms: Sequence[ArmRun], metrics: Sequence[str]) -> list[TypeTable]:
    """Tabulate each metric in which arms differ, and of an arm alone each metric, by question type."""
    kinds, out = types(arms), []
    for metric in metrics:
        table = [[value if is_number(value := arm.metrics.get(f"type={kind}/{metric}")) else None for kind, _ in kinds]
                 for arm in arms]
        values = [value for row in table for value in row if value is not None]
        if not values or len(arms) > 1 and all(row == table[0] for row in table):
            continue
        low, high = min(min(values), max(values) - SPAN), max(values)
        cells = (tuple((units.write(metric, v), None if v is None else round(100 * (v - low) / (high - low)))
                       for v in row) for row in table)
        out.append(TypeTable(metric, tuple(kinds), tuple(zip((arm.name for arm in arms), cells))))
    return out


COLUMNS = {
    "nDCG@10": "turn/ndcg@10",
    "nDCG@10, mean of types": "macro/type/turn/ndcg@10",
    "nDCG@10, mean of conversations": "macro/corpus/turn/ndcg@10",
    "recall@10": "turn/recall@10",
    "recall@10, rounds": "round/recall@10",
    "MRR@10": "turn/mrr@10",
    "hit@1": "turn/recall_any@1",
}
"""Heading -> name in metrics.json."""

TURNS = ("nDCG@10, recall@10 (the share of the evidence), MRR@10 and hit@1 are means over questions (micro). The rows "
          "of MTEB's LMEB are means of question types (macro). Arms that rank units of different sizes cannot be "
          "compared here.")


def turn_metrics(comparison: Comparison) -> list[PlainTable]:
    """Tabulate the figures of ``COLUMNS`` of the arms that rank turns; a missing figure is a dash.

    Rounds have a column only where an arm has figures of them.
    """
    counted = {metric for arm in comparison["arms"].values() for metric in arm["metrics"]}
    columns = {head: metric for head, metric in COLUMNS.items() if not metric.startswith("round/") or metric in counted}
    return _figures(comparison, "Turn metrics", columns, lambda _, one: format_number(one["value"]))


def _figures(comparison: Comparison, caption: str, columns: Mapping[str, str],
             write: Callable[[str, Estimate], str]) -> list[PlainTable]:
    """Tabulate figures of the arms that have any of them; arms with the same cells share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, arm in comparison["arms"].items():
        found = arm["metrics"]
        if any(metric in found for metric in columns.values()):
            cells = (write(metric, found[metric]) if metric in found else EMPTY for metric in columns.values())
            rows.setdefault(tuple(cells), []).append(name)
    every = len(comparison["arms"])
    body = tuple((f"all {every} arms" if len(names) == every > 1 else ", ".join(names), *cells)
                 for cells, names in rows.items())
    return [PlainTable(caption, ("arm", *columns), body)] if body else []


TRUTH = {
    "outdated, of the evidence shown": "stale/shown",
    "valid evidence shown": "stale/recall",
    "newest valid evidence above all outdated": "stale/newest_first",
    "nothing there: AUROC": "nothing/auroc",
    "refused, where 5 % of the others are": "nothing/refused@5",
}
"""Heading -> name in metrics.json, or its beginning before the ranks or tokens."""

ABOUT_TRUTH = ("Outdated: pooled over the questions that have valid and outdated evidence. "
               "AUROC: how well an arm's certainty (its largest p, else its first raw score) tells questions without "
               "evidence from others; .5 is chance.")


def truth_table(comparison: Comparison) -> list[PlainTable]:
    """Tabulate stale evidence and what is not there, each figure with its interval; [] where the data have neither."""
    budget = comparison["budget"]
    cuts = {"": "", "@10": " in top 10", f"_within_{budget}": f" within {budget:,} tokens"}
    counted = {metric for arm in comparison["arms"].values() for metric in arm["metrics"]}
    columns = {head + where: metric + cut for head, metric in TRUTH.items() for cut, where in cuts.items()
               if metric + cut in counted}
    return _figures(comparison, "Stale, or not there", columns, lambda metric, one: (
        f"{units.write(metric, one['value'])} ({units.write_interval(metric, one['low'], one['high'])})"))


GAINS = ("Share of the gain in the loss of all splits, summed over the fits of the folds; the first 20 features. "
          "Features that say the same share their gain, so a small share is no proof that a feature could be left out.")


def importance_tables(arms: Sequence[ArmRun]) -> list[PlainTable]:
    """Tabulate the importances that manifests hold; arms with the same ones share a table."""
    names: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for arm in arms:
        rows = tuple((safe_line(row["feature"]), f"{100 * row['share']:.1f} %") for row in arm.manifest["importances"])
        if rows:
            names.setdefault(rows, []).append(safe_line(arm.name))
    return [PlainTable(", ".join(having), ("feature", "share of the gain"), rows) for rows, having in names.items()]
