"""Publication of finished arms, and their report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from memlab.evaluate.compare import Comparison
from memlab.evaluate.contrast import Contrast
from memlab.harness.arm import Arm
from memlab.harness.results import failure_file
from memlab.report.inputs import inputs_digest, record_inputs, up_to_date
from memlab.report.sizes import write_table
from memlab.runtime.console import Console
from memlab.runtime.foreign import read_json


def publish(arms: Iterable[Arm], track: Any, contrasts: Sequence[Contrast], before: Sequence[Path] = ()) -> list[Path]:
    """Publish the arms that finished (with their twins) or failed, and build the reports that are not up to date.

    Return their comparison.json.

    ``before`` are comparisons of exactly these arms that a job has built: then none is built again.
    """
    comparisons: list[Path] = []
    arms = list(arms)
    for place in dict.fromkeys(arm.arms_folder() for arm in arms):
        group = [a for a in arms if a.arms_folder() == place]
        exact: dict[str, str] = {}
        for arm in group:
            matched = str(read_json(arm.folder() / "manifest.json").get("twin") or "") if arm.finished() else ""
            exact |= {arm.name: arm.folder().name, f"{arm.name}.twin": matched}
            if arm.finished() or failure_file(arm.folder()).is_file():
                track.publish(arm.folder())
            if matched:
                track.publish(place / matched)
        if any(arm.finished() for arm in group) and not before:
            names = [arm.name for arm in group]
            digest = inputs_digest(place, contrasts, names, exact)
            if not up_to_date(place, digest):
                from memlab.report.build import build  # imports the charts, which a finished report does not need

                build(place, contrasts=contrasts, expected=names, exact=exact)
                record_inputs(place, digest)
                write_table(place)
            comparisons.append(place / "comparison.json")
    return list(before) or comparisons


def show(path: Path, arms: Sequence[Arm], out: Console) -> None:
    """Print a comparison.json, and where its report lies."""
    from memlab.report.console import print_arm, print_comparison

    comparison = cast(Comparison, read_json(path))
    names = [a.name for a in arms if a.arms_folder().resolve() == path.parent.resolve()]
    if len(names) == 1 and names[0] in comparison["arms"]:
        print_arm(comparison, names[0], out)
    else:
        print_comparison(comparison, out)
    out.print(f"report: {path.with_name('report.html')}")
