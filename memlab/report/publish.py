"""Publishing finished arms and building their report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from memlab.evaluate.contrast import Contrast
from memlab.harness.arm import Arm
from memlab.harness.results import failure_file
from memlab.runtime.files import read_json


def publish(arms: Iterable[Arm], track: Any, contrasts: Sequence[Contrast], before: Sequence[Path] = ()) -> list[Path]:
    """Publish what finished (with its twin) or failed, and build a report beside it; return the comparisons' files.

    ``before`` are comparisons of just these arms that a job has built: then none is built again.
    """
    from memlab.report.build import build

    built: list[Path] = []
    arms = list(arms)
    for place in dict.fromkeys(arm.beside() for arm in arms):
        here = [a for a in arms if a.beside() == place]
        exact: dict[str, str] = {}
        for arm in here:
            matched = str(read_json(arm.folder() / "manifest.json").get("twin") or "") if arm.finished() else ""
            exact |= {arm.name: arm.folder().name, f"{arm.name}.twin": matched}
            if arm.finished() or failure_file(arm.folder()).is_file():
                track.publish(arm.folder())
            if matched:
                track.publish(place / matched)
        if any(arm.finished() for arm in here) and not before:
            built.append(build(place, contrasts=contrasts, expected=[a.name for a in here], exact=exact).json)
    return list(before) or built



def show(comparison: Path, arms: Sequence[Arm], out: Console) -> None:
    """Print the comparison that a report was built with, and where the report lies."""
    from memlab.report.console import print_arm, print_comparison

    read = read_json(comparison)
    here = [a.name for a in arms if a.beside().resolve() == comparison.parent.resolve()]
    if len(here) == 1 and here[0] in read["arms"]:
        print_arm(read, here[0], out)
    else:
        print_comparison(read, out)
    out.print(f"report: {comparison.with_name('report.html')}")
