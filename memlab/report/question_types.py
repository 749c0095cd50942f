"""The classes that questions were told, against the benchmark's own types: a table a classifier, once a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlab.evaluate.question_types import accuracy, confusion, right
from memlab.harness.results import ArmRun
from memlab.question_types import VOCABULARY
from memlab.text.display import one_line


@dataclass(frozen=True)
class Told:
    """One classifier's table: the classes that it told, and for each type their counts and how many fit it.

    ``fit`` is None for a type that no class stands for.
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
        share = (f"{self.right:,} of {self.n:,} questions ({self.right / self.n:.0%}) are told a class that fits their "
                 "type" if self.n else "no type here has a class")
        return f"{self.classifier} ({', '.join(self.arms)}): {share}"


def told(arms: Sequence[ArmRun]) -> list[Told]:
    """Tabulate what each classifier told; arms whose questions have the same classes share one table.

    Arms that were run before classes were kept, and questions without types, have none.
    """
    alike: dict[tuple[tuple[str, str, int], ...], list[ArmRun]] = {}
    for arm in arms:
        if arm.classes is not None:
            counts = confusion(arm.classes, arm.questions)
            if counts.height:
                alike.setdefault(tuple(counts.iter_rows()), []).append(arm)
    return [_table(same, every=len(same) == len(arms)) for same in alike.values()]


def _table(same: Sequence[ArmRun], every: bool) -> Told:
    counts = confusion(same[0].classes, same[0].questions)  # type: ignore[arg-type]
    there = set(counts["class"])
    names = tuple(name for name in VOCABULARY if name in there)
    cells = {(kind, name): n for kind, name, n in counts.iter_rows()}
    rows = tuple((one_line(kind), tuple(cells.get((kind, name), 0) for name in names), fit, n)
                 for kind, fit, n in right(counts).iter_rows())
    spec = (same[0].manifest.get("pipeline") or {}).get("classify") or {}
    classifier = one_line(str(spec.get("is", "classes")).rpartition(".")[2])
    return Told(classifier, ("all arms",) if every else tuple(one_line(arm.name) for arm in same), names, rows,
                *accuracy(counts))
