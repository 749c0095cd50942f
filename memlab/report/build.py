"""From finished run folders to comparison.json, report.html and report.md beside them.

Whatever is finished is reported: arms that failed or are still running are named as missing, arms of an earlier
configuration as older, and none of them stops the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.errors import MemlabError
from memlab.evaluate.answers import PREFIX
from memlab.evaluate.compare import Finished, compare
from memlab.evaluate.contrast import Contrast
from memlab.harness.results import ArmRun, Found, finished
from memlab.judge.calibration.trust import FILE, doubts
from memlab.report import view_model
from memlab.report.html import Extras, page
from memlab.report.markdown import document
from memlab.runtime.files import atomic_write, write_errors
from memlab.token_counter import Words


@dataclass(frozen=True)
class Built:
    """Where the report lies, and the comparison that it shows."""

    comparison: dict[str, Any]
    json: Path
    html: Path
    markdown: Path


def build(folder: Path, contrasts: Sequence[Contrast] | None = None, expected: Iterable[str] = (),
          seed: int = 0, exact: Mapping[str, str] | None = None) -> Built:
    """Compare the finished arms in ``runs/<exp>/<data>`` and write the three files there, each whole or not at all.

    ``contrasts`` are those declared before the run; None takes them from the newest arm's config.yaml. ``expected``
    names the arms of the experiment in their order; those without a finished run are reported as missing. None are
    named where a report is built again: it keeps the order of the one before, since the first arm is what others are
    compared with. ``exact`` names the run folder of arms of which no earlier configuration may stand in. Raises
    MemlabError where no arm is finished.
    """
    wanted = list(expected)
    found = finished(folder, wanted or _order_before(folder), exact)
    if not found.arms:
        raise MemlabError("no finished run is here" + (f" ({'; '.join(found.broken)})" if found.broken else ""),
                          where=str(folder), fix="run the experiment, or give the folder runs/<experiment>/<data>")
    declared = declared_in(found.arms) if contrasts is None else list(contrasts)
    comparison = comparison_of(folder, found, declared, wanted, seed)
    extras = Extras(tuple(p.name for p in found.older), found.broken)
    built = Built(comparison, folder / "comparison.json", folder / "report.html", folder / "report.md")
    _write(built.json, json.dumps(comparison, indent=1, allow_nan=False) + "\n")
    _write(built.html, page(comparison, found.arms, extras))
    _write(built.markdown, document(comparison, found.arms, extras.older, extras.broken))
    return built


def _order_before(folder: Path) -> list[str]:
    """Return the arms of the comparison that lies there, in its order; none where it cannot be read."""
    try:
        return list(json.loads((folder / "comparison.json").read_text(encoding="utf-8"))["arms"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def comparison_of(folder: Path, found: Found, contrasts: Sequence[Contrast], expected: Sequence[str],
                  seed: int) -> dict[str, Any]:
    """Hand the arms' frames to the statistics, and mark the arms that looked at gold."""
    arms, first = found.arms, found.arms[0].manifest
    frames = {arm.name: Finished(arm.questions, arm.ranking, arm.context, arm.answers, arm.folder.name, arm.seconds)
              for arm in arms}
    line = curve(arms, contrasts)
    comparison = compare(
        str(first.get("experiment") or folder.resolve().parent.name), str(first.get("dataset") or folder.name), frames,
        contrasts, clustered=any(arm.manifest.get("clustered") for arm in arms), notes=_notes(arms, line, frames),
        missing=[name for name in expected if name not in frames],
        constant_k=line.manifest["constant_k"] if line else None, seed=seed)
    judges = [name.removeprefix(PREFIX) for name in view_model.said(comparison)]
    comparison["notes"] = [*doubts(judges, folder.resolve().parents[1] / FILE), *comparison["notes"]]
    for arm in arms:
        comparison["arms"][arm.name] |= {"oracle": arm.oracle, "tainted": arm.tainted}
    return comparison


def curve(arms: Sequence[ArmRun], contrasts: Sequence[Contrast]) -> ArmRun | None:
    """Choose the arm whose ranking the constant-K curve is drawn from: the first contrast's, else the first."""
    have = [arm for arm in arms if arm.manifest.get("constant_k")]
    wanted = {name for c in contrasts[:1] for name in (c.arm, c.against)}
    return next((arm for arm in have if arm.name in wanted), next((a for a in have if not a.oracle), None))


def declared_in(arms: Sequence[ArmRun]) -> list[Contrast]:
    """Read the contrasts that the newest arm's config.yaml declares."""
    newest = max(arms, key=lambda arm: str(arm.manifest.get("finished", "")))
    try:
        return [Contrast(**{str(k): v for k, v in dict(c).items()}) for c in newest.settings.get("contrasts") or ()]
    except (TypeError, ValueError) as error:
        raise MemlabError(f"contrasts cannot be read ({error})", where=str(newest.folder / "config.yaml"),
                          fix="each needs arm, comparator and metric") from error


def _notes(arms: Sequence[ArmRun], line: ArmRun | None, frames: dict[str, Finished]) -> list[str]:
    notes = list(dict.fromkeys(str(note) for arm in arms for note in arm.manifest.get("notes") or []))
    for key, what in (("source", "versions of memlab's source"), ("data", "versions of the data")):
        if len({json.dumps(arm.manifest.get(key), sort_keys=True, default=str) for arm in arms}) > 1:
            notes.append(f"The arms were run on different {what}: run them again before trusting a difference.")
    counters = {arm.name: str(arm.manifest.get("tokens") or Words().name) for arm in arms}
    if len(set(counters.values())) > 1:
        told = "; ".join(f"{name} by {by}" for name, by in counters.items())
        notes.append(f"The arms count tokens differently, so that neither their tokens nor what a budget lets in "
                     f"compare: {told}.")
    else:
        notes.append(f"Tokens are counted by {counters[arms[0].name]}.")
    if line is not None and len(frames) > 1:
        notes.append(f"The constant-K curve is that of the ranking of {line.name}.")
    return notes


def _write(path: Path, text: str) -> None:
    with write_errors("the report", path.parent, fix="free some space there and run the same line again"):
        atomic_write(path, text.encode(errors="replace"))
