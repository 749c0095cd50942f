"""Question classes against the benchmark's own types: one table per classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlab.evaluate.question_types import accuracy, confusion, right_by_type
from memlab.harness.results import ArmRun
from memlab.question_types import VOCABULARY
from memlab.report.display_names import slot_names
from memlab.text.display import one_line


@dataclass(frozen=True)
class ClassTable:
    """One classifier's table; rows are (type, count per class, how many fit the type, n).

    The third is None for a type that no class fits.
    """

    classifier: str
    arms: tuple[str, ...]
    classes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], int | None, int], ...]
    right: int
    n: int

    @property
    def words(self) -> str:
        """The accuracy in a sentence."""
        share = (f"{self.right:,} of {self.n:,} questions ({self.right / self.n:.0%}) have a class that fits their type"
                 if self.n else "no type here has a class")
        return f"{self.classifier} ({', '.join(self.arms)}): {share}"


def class_tables(arms: Sequence[ArmRun]) -> list[ClassTable]:
    """Tabulate the classes of each classifier; arms whose questions have the same classes share one table.

    Arms without classes, and questions without types, have none.
    """
    groups: dict[tuple[tuple[str, str, int], ...], list[ArmRun]] = {}
    for arm in arms:
        counts = confusion(arm.classes, arm.questions)
        if counts.height and not arm.classes.is_empty():
            groups.setdefault(tuple(counts.iter_rows()), []).append(arm)
    return [_table(group, whole=len(group) == len(arms)) for group in groups.values()]


def _table(group: Sequence[ArmRun], whole: bool) -> ClassTable:
    counts = confusion(group[0].classes, group[0].questions)
    names = tuple(name for name in VOCABULARY if name in set(counts["class"]))
    cells = {(kind, name): n for kind, name, n in counts.iter_rows()}
    rows = tuple((one_line(kind), tuple(cells.get((kind, name), 0) for name in names), fit, n)
                 for kind, fit, n in right_by_type(counts).iter_rows())
    classifier = one_line(slot_names(group[0]).get("classify", "classes"))
    arms = ("all arms",) if whole else tuple(one_line(arm.name) for arm in group)
    return ClassTable(classifier, arms, names, rows, *accuracy(counts))
