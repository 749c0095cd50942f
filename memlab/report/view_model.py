"""The view model of a report: what HTML, Markdown, the terminal, notebooks and exports show, so that they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memlab.evaluate.compare import Comparison
from memlab.evaluate.contrast import ContrastResult
from memlab.evaluate.verbalise import agreement, p_value
from memlab.experiment.harness.results import ArmRun
from memlab.report import arm_settings, arms_table, costs, differing, sections, units
from memlab.report.arms_table import ArmRow, ArmsTable
from memlab.report.opening import Opening, opening
from memlab.support.text.display import EMPTY, format_number, format_p


@dataclass(frozen=True)
class ContrastRow:
    """One contrast: its sentence, its tone (up, down, same or open), (name, text) of its figures, and its numbers."""

    words: str
    tone: str
    facts: tuple[tuple[str, str], ...]
    result: ContrastResult

    @property
    def outcome(self) -> str:
        """The verdict, or of an exploratory contrast its p."""
        p, verdict = self.result["p"], self.result["verdict"]
        return f"p {p_value(p)}" if verdict == "exploratory" and p is not None else verdict


@dataclass(frozen=True)
class Section:
    """A folded section of tables: its id in the page, its title, a hint, and its tables."""

    name: str
    title: str
    hint: str
    tables: Sequence[sections.PlainTable]


@dataclass(frozen=True)
class ReportView:
    """A comparison as a report shows it; each part is computed once, on first use.

    ``arms`` are the finished runs of the comparison, in its order; without them the parts that read run folders are
    empty. ``older`` names run folders of the same arms that the comparison does not use.
    """

    comparison: Comparison
    arms: Sequence[ArmRun] = ()
    older: Sequence[str] = ()

    @cached_property
    def opening(self) -> Opening:
        """The verdict, how sure it is, and what to do."""
        return opening(self.comparison)

    @property
    def title(self) -> str:
        """The question of the experiment, or else one made of what was compared."""
        arms = [name for name in self.comparison["arms"] if not name.endswith(".twin")]
        data = self.comparison["data"]
        return self.opening.question or (f"What does {arms[0]} find in {data}?" if len(arms) == 1 else
                                         f"Which of {len(arms)} arms finds the evidence in {data}?")

    @cached_property
    def columns(self) -> list[str]:
        """The metrics of the arms table."""
        return arms_table.metric_columns(self.comparison, self.opening.metric)

    @cached_property
    def rows(self) -> list[ArmRow]:
        """The rows of the arms table, with all columns."""
        return arms_table.arm_rows(self.comparison, self.opening, self.columns)

    @cached_property
    def table(self) -> ArmsTable:
        """The arms table."""
        return arms_table.arms_table(self.columns, self.rows)

    @cached_property
    def declared(self) -> list[ContrastRow]:
        """The contrasts that were declared before the run."""
        return [_contrast_row(c) for c in self.comparison["contrasts"]]

    @cached_property
    def exploratory(self) -> list[ContrastRow]:
        """All other contrasts on which any question differs."""
        return [_contrast_row(c) for c in self.comparison["exploratory"] if c["wins"] or c["losses"]]

    @cached_property
    def pair(self) -> differing.ArmPair | None:
        """The two arms that are compared question by question."""
        return differing.pair(self.comparison, self.opening)

    @cached_property
    def differing(self) -> list[differing.Differing]:
        """The questions on which these two differ."""
        return differing.questions(self.arms, self.pair) if self.pair else []

    @cached_property
    def types(self) -> list[sections.TypeTable]:
        """Each metric of the arms table by question type."""
        return sections.type_tables(self.arms, self.columns)

    @cached_property
    def sections(self) -> list[Section]:
        """The folded sections that have a table."""
        every = [
            Section("turns", "Turns, as other benchmarks print them", sections.TURNS,
                    sections.turn_metrics(self.comparison)),
            Section("truth", "Stale, or not there", sections.ABOUT_TRUTH, sections.truth_table(self.comparison)),
            Section("why", "Why answers are wrong", sections.WHY, sections.attribution_tables(self.arms)),
            Section("importances", "Feature importances", sections.GAINS, sections.importance_tables(self.arms)),
            Section("costs", "Cost and latency", "", costs.cost_tables(self.comparison, self.arms))]
        return [section for section in every if section.tables]

    @cached_property
    def settings(self) -> dict[str, dict[str, list[str]]]:
        """Setting -> value -> arms, for the settings in which the arms differ."""
        return arm_settings.by_value(self.arms)

    @cached_property
    def manifests(self) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        """What the manifests of all arms share, and what differs."""
        return arm_settings.manifests(self.arms)

    @property
    def pairing(self) -> str:
        """How the arms are compared, in words."""
        groups = self.comparison["groups"]
        grouped = groups < self.comparison["scored"]
        return "paired by question" + (f" in {groups:,} independent groups" if grouped else "")

    @cached_property
    def notices(self) -> list[tuple[str, str]]:
        """(Heading, sentence) of each warning above the figures: arms that changed nothing come first."""
        unchanged = [("Changed nothing", f"{n['arm']} and {n['comparator']} have the same outputs for every question. "
                      "This is not evidence of “no effect”.")
                     for n in self.comparison["noop"] if arms_table.is_alarming(n)]
        return [*unchanged, *(("Not here", f"{name} has no finished run.") for name in self.comparison["missing"]),
                *(("Left out", fault) for fault in self.comparison["broken"])]


def _contrast_row(c: ContrastResult) -> ContrastRow:
    metric, in_groups = c["metric"], agreement(c)
    power = EMPTY if c["power"] is None else f"{100 * c['power']:.0f} %" + (
        "" if c["planned"] is None else f" for {units.difference(metric, c['planned']).removeprefix('+')}")
    if c["tokens"] is None:
        outcome = "wins / losses / ties", " / ".join(format_number(n) for n in (c["wins"], c["losses"], c["ties"]))
    else:
        outcome = "token range", " to ".join(f"{n:,.0f}" for n in c["tokens"])
    facts = (("difference", units.difference(metric, c["difference"])),
             ("95 % interval", units.difference_interval(metric, c["low"], c["high"]) or EMPTY),
             ("p, uncorrected", format_p(c["p"])), ("p, corrected", format_p(c["p_adjusted"])),
             ("sign-flip p", format_p(c["p_sign_flip"])), outcome,
             ("smallest detectable", units.difference(metric, c["smallest_detectable"]).removeprefix("+")),
             ("power", power), ("test", f"{c['test'] or 'none'}, n = {c['n']:,}{', ' * bool(in_groups)}{in_groups}"))
    return ContrastRow(c["words"], arms_table.tone(c), facts, c)
