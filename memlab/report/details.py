"""The folded sections of a report that are tables of texts alone, as its page and its Markdown show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlab.evaluate.compare import Comparison
from memlab.harness.results import ArmRun
from memlab.report import costs, sections


@dataclass(frozen=True)
class Section:
    """A section: its id in the page, its title, a hint, and its tables."""

    name: str
    title: str
    hint: str
    tables: Sequence[sections.PlainTable]


def details(comparison: Comparison, arms: Sequence[ArmRun]) -> list[Section]:
    """Return the sections that have a table, in the order of the page."""
    every = [
        Section("classes", "Question classes", sections.CLASSES, sections.class_tables(arms)),
        Section("turns", "Turns, as other benchmarks print them", sections.TURNS, sections.turn_metrics(comparison)),
        Section("why", "Why answers are wrong", sections.WHY, sections.attribution_tables(arms)),
        Section("importances", "Feature importances", sections.GAINS,
                [*sections.importance_tables(arms), *sections.example(arms)]),
        Section("costs", "Cost and latency", "", costs.cost_tables(comparison, arms))]
    return [section for section in every if section.tables]
