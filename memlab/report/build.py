"""The reports of finished run folders: comparison.json, HTML and Markdown, made again where an input changed.

Every finished arm is reported: arms that failed or are still running are listed as missing, arms of an earlier
configuration as older, and none of them stops the report.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from memlab.evaluate.compare import ArmResult, Comparison, VerdictCounts, compare
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.evidence import BUDGET, PREFIX, judge_columns
from memlab.evaluate.whole import budget, whole
from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.results import ArmRun, failure_file, finished_arms
from memlab.pipeline.stage import name_of
from memlab.report.act import commands_to_offer
from memlab.report.html import page
from memlab.report.markdown import document
from memlab.report.opening import recommended_arm
from memlab.report.view_model import ReportView
from memlab.stages.judge.accuracy import CALIBRATION_FILE, arm_remarks, judge_warnings
from memlab.stages.judge.official import OfficialJudge
from memlab.support.console import Console
from memlab.support.disk_cache import own_digest
from memlab.support.errors import DiskFault, MemlabError
from memlab.support.files import atomic_write, disk_faults, sweep_leftovers
from memlab.support.foreign import read_json

HEAD = 10
"""Ranks in which the rankings of two arms are compared."""

RECORD = "report_inputs.json"
"""File beside a report with the digest. It is none of comparison.json's figures, which are equal on every machine."""


def inputs_digest(folder: Path, contrasts: Sequence[Contrast], expected: Sequence[str],
                  exact: Mapping[str, str]) -> str:
    """Return the digest of the arguments of a report and of the files that it is made from.

    These are memlab's source, the manifests below ``runs/<exp>/<data>``, sizes and times of the other files of their
    run folders, and the calibration of judges.
    """
    total = hashlib.blake2b(digest_size=16)
    arguments = [own_digest(), [asdict(contrast) for contrast in contrasts], list(expected), dict(exact)]
    total.update(json.dumps(arguments, sort_keys=True, default=str).encode())
    for path in [*sorted(folder.glob("*/manifest.json")), folder.resolve().parents[1] / CALIBRATION_FILE]:
        if path.is_file():
            total.update(b"\0" + str(path.relative_to(path.parents[1])).encode() + b"\0" + path.read_bytes())
    for path in sorted(path for manifest in folder.glob("*/manifest.json") for path in manifest.parent.iterdir()):
        about = path.stat()
        total.update(f"\0{path.relative_to(folder)}\0{about.st_size}\0{about.st_mtime_ns}".encode())
    return total.hexdigest()


def up_to_date(folder: Path, digest: str) -> bool:
    """Return whether the three files of a report are there and were made from these inputs."""
    try:
        recorded = read_json(folder / RECORD).get("inputs")
    except (OSError, ValueError, AttributeError):  # missing or damaged: the report is built again
        return False
    return recorded == digest and bool(reported_runs(folder)) and all(
        (folder / name).is_file() for name in ("report.html", "report.md"))


def reported_runs(folder: Path) -> dict[str, str]:
    """Return arm -> run folder of the folder's comparison.json, in its order; none where it cannot be read."""
    try:
        return {name: arm["folder"] for name, arm in read_json(folder / "comparison.json")["arms"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def publish(arms: Iterable[Arm], track: Any, contrasts: Sequence[Contrast]) -> list[Path]:
    """Publish the arms that finished (with their twins) or failed, and build the reports that are not up to date.

    Return their comparison.json.
    """
    comparisons: list[Path] = []
    arms = list(arms)
    for place in dict.fromkeys(arm.arms_folder() for arm in arms):
        group = [a for a in arms if a.arms_folder() == place]
        exact: dict[str, str] = {}
        for arm in group:
            matched = str(read_json(arm.folder() / "manifest.json").get("twin") or "") if arm.is_finished() else ""
            exact |= {arm.name: arm.folder().name, f"{arm.name}.twin": matched}
            if arm.is_finished() or failure_file(arm.folder()).is_file():
                track.publish(arm.folder())
            if matched:
                track.publish(place / matched)
        if any(arm.is_finished() for arm in group):
            names = [arm.name for arm in group]
            digest = inputs_digest(place, contrasts, names, exact)
            if not up_to_date(place, digest):
                build(place, contrasts=contrasts, expected=names, exact=exact)
                with suppress(DiskFault):  # without a record it is built again
                    _write(place / RECORD, json.dumps({"inputs": digest}) + "\n")
            comparisons.append(place / "comparison.json")
    return comparisons


def show(path: Path, arms: Sequence[Arm], out: Console) -> None:
    """Print a comparison.json and the path of its report."""
    from memlab.report.console import print_report

    comparison = cast(Comparison, read_json(path))
    names = [a.name for a in arms if a.arms_folder().resolve() == path.parent.resolve()]
    print_report(ReportView(comparison), out, names[0] if len(names) == 1 and names[0] in comparison["arms"] else None)
    out.print(f"report: {path.with_name('report.html')}")


@dataclass(frozen=True)
class ReportFiles:
    """The files of a report, and what it shows."""

    view: ReportView
    json: Path
    html: Path
    markdown: Path

    @property
    def comparison(self) -> Comparison:
        """The content of comparison.json."""
        return self.view.comparison


def build(folder: Path, contrasts: Sequence[Contrast] | None = None, expected: Iterable[str] = (),
          seed: int = 0, exact: Mapping[str, str] | None = None, notes: Sequence[str] = ()) -> ReportFiles:
    """Compare the finished arms in ``runs/<exp>/<data>`` and write the three files there, each whole or not at all.

    ``contrasts`` are those declared before the run; None takes them from the newest arm's config.yaml. ``expected``
    names the arms of the experiment in their order; those without a finished run are reported as missing. Without
    ``expected``, the order and the run folders of the last report are kept, but for arms that finished since. ``exact``
    names the run folder of each arm for which no other configuration may be used. ``notes`` stand before all others.
    Raises MemlabError where no arm is finished.
    """
    expected = list(expected)
    last = {} if expected else reported_runs(folder)
    runs = finished_arms(folder, expected or last, exact, last)
    if not runs.arms:
        raise MemlabError("no finished run is here" + (f" ({'; '.join(runs.broken)})" if runs.broken else ""),
                          where=str(folder), fix="run the experiment, or give the folder runs/<experiment>/<data>")
    declared = declared_contrasts(runs.arms) if contrasts is None else list(contrasts)
    broken = [fault.replace(f"{folder}/", "") for fault in runs.broken]  # the same on every machine
    comparison = comparison_of(folder, runs.arms, declared, expected, seed, broken, runs.other_data, notes)
    view = ReportView(comparison, runs.arms, [path.name for path in runs.older])
    files = ReportFiles(view, folder / "comparison.json", folder / "report.html", folder / "report.md")
    _set_aside(files)
    _write(files.html, page(view))
    _write(files.markdown, document(view))
    _write(files.json, json.dumps(comparison, indent=1, allow_nan=False) + "\n")
    return files


def _set_aside(files: ReportFiles) -> None:
    """Keep the report of another budget in the folder, under the name of its budget: ``report.300_tokens.html``.

    The record of the last report goes: who recorded it built another one.
    """
    folder = files.json.parent
    with suppress(OSError, ValueError, KeyError, TypeError):  # there is none, or it is damaged
        if (before := read_json(files.json)["budget"]) != files.comparison["budget"]:
            for path in (*folder.glob("report.[a-z]*"), files.json):
                if path.name.count(".") == 1:
                    path.replace(path.with_suffix(f".{int(before)}_tokens{path.suffix}"))
    with disk_faults(folder):
        (folder / RECORD).unlink(missing_ok=True)


def comparison_of(folder: Path, arms: Sequence[ArmRun], contrasts: Sequence[Contrast], expected: Sequence[str],
                  seed: int, broken: Sequence[str] = (), other_data: Sequence[ArmRun] = (),
                  notes: Sequence[str] = ()) -> Comparison:
    """Compare the arms' frames, and warn of judges that are not calibrated, and of runs on ``other_data``."""
    results = {arm.name: ArmResult(arm.questions, arm.ranking, arm.context, arm.answers, arm.curve, arm.folder.name,
                                   arm.seconds, arm.oracle, arm.tainted, bool(arm.manifest.get("fitted")),
                                   verdict_counts(arm.verdicts)) for arm in arms}
    own, counted = _notes(arms), _count_sentences(arms)
    names = ", ".join(f"{arm.name} ({arm.manifest['questions']} questions)" for arm in other_data)
    left_out = [f"Left out, since they ran with other data settings: {names}."] if names else []
    judges = sorted({name.removeprefix(PREFIX) for arm in arms for name in judge_columns(arm.questions.columns)
                     if arm.questions[name].count()})
    warnings = judge_warnings(judges, folder.resolve().parents[1] / CALIBRATION_FILE)
    judged = [remark for arm in arms if arm.verdicts is not None
              for remark in arm_remarks(arm.name, arm.verdicts, results[arm.name].verdicts)]
    systems = [arm for arm in arms if not arm.oracle and not arm.name.endswith(".twin")]
    first = arms[0].manifest
    comparison = compare(
        first["experiment"], first["dataset"], results, contrasts,
        notes=[*notes, *left_out, *warnings, *_same_heads(arms), *own, *judged, *counted],
        missing=[name for name in expected if name not in results], broken=broken, seed=seed,
        constant_k={arm.name: arm.manifest["constant_k"] for arm in arms},
        budget=budget(arm.manifest["pipeline"] for arm in systems) or BUDGET,
        whole=whole([arm.manifest["pipeline"].get("select") for arm in systems], first["haystack"]))
    best = recommended_arm(comparison)
    comparison["act"] = [list(pair) for pair in commands_to_offer(comparison, arms, best)]
    return comparison


def _same_heads(arms: Sequence[ArmRun]) -> list[str]:
    """Return a sentence for arms that rank alike, and for each ranking made elsewhere: whose first ten it has most.

    A package that swallows its errors may be known by that it ranks as another arm does.
    """
    foreign, notes = [arm.name for arm in arms if "foreign_run" in arm.settings], list[str]()
    place = pl.struct("rank", "session", "turns").hash().sum().alias("head")
    heads = {arm.name: arm.ranking.filter(pl.col("rank") <= HEAD).group_by("question").agg(place)
             for arm in arms} if foreign else {}
    for name in foreign:
        equal = {other: heads[name].join(head, on=["question", "head"]).height
                 for other, head in heads.items() if other != name}
        if any(equal.values()):
            nearest = max(equal, key=lambda other: equal[other])
            notes.append(f"{name} has the first {HEAD} of {nearest} in {equal[nearest]:,} of {heads[name].height:,} "
                         "questions.")
    alike = defaultdict[int, list[str]](list)
    for arm in (arm for arm in arms if not arm.name.endswith(".twin")):
        alike[arm.ranking.select(pl.struct("question", "rank", "session", "turns").hash().sum()).item()] += [arm.name]
    return [*notes, *(f"{', '.join(names[:-1])} and {names[-1]} rank all {arms[0].questions.height:,} questions alike."
                      for names in alike.values() if len(names) > 1)]


def verdict_counts(verdicts: pl.DataFrame | None) -> dict[str, VerdictCounts]:
    """Return the counts of each judge that gave no verdict on an answer, or had an incomplete reply."""
    if verdicts is None or verdicts.is_empty():
        return {}
    fault = pl.col("fault").is_not_null() if "fault" in verdicts.columns else pl.lit(False)
    counts = verdicts.group_by("judge", maintain_order=True).agg(
        pl.len().alias("answers"), pl.col("correct").is_null().sum().alias("without"),
        (pl.col("correct").is_not_null() & fault).sum().alias("incomplete"))
    return {judge: {"answers": n, "without": without, "incomplete": incomplete}
            for judge, n, without, incomplete in counts.iter_rows() if without or incomplete}


def declared_contrasts(arms: Sequence[ArmRun]) -> list[Contrast]:
    """Read the contrasts that the newest arm's config.yaml declares."""
    newest = max(arms, key=lambda arm: arm.manifest["finished"])
    try:
        return [Contrast(**{str(k): v for k, v in dict(c).items()}) for c in newest.settings.get("contrasts") or ()]
    except (TypeError, ValueError) as error:
        raise MemlabError(f"contrasts cannot be read ({error})", where=str(newest.folder / "config.yaml"),
                          fix="each needs arm, comparator and metric") from error


def _notes(arms: Sequence[ArmRun]) -> list[str]:
    notes = list(dict.fromkeys(note for arm in arms for note in arm.manifest["notes"]))
    data = {json.dumps(arm.manifest["data"], sort_keys=True, default=str) for arm in arms}
    sources = {arm.manifest["source"] for arm in arms}
    for values, versions in ((sources, "versions of memlab's source"), (data, "versions of the data")):
        if len(values) > 1:
            notes.append(f"The arms were run on different {versions}: run them again before trusting a difference.")
    counters = {arm.name: arm.manifest["tokens"] for arm in arms}
    if len(set(counters.values())) > 1:
        by_arm = "; ".join(f"{name} by {counter}" for name, counter in counters.items())
        notes.append("The arms count tokens differently, so that neither their tokens nor their budgets compare: "
                     f"{by_arm}.")
    else:
        notes.append(f"Tokens are counted by {counters[arms[0].name]}.")
    unfenced = [arm.name for arm in arms
                if name_of(OfficialJudge) in json.dumps(arm.manifest["pipeline"], default=str)]
    if unfenced:
        notes.append("The official judge's prompts are published wording, kept word for word: nothing marks where an "
                     f"answer ends, so that an answer could address the judge ({', '.join(unfenced)}).")
    return notes


def _count_sentences(arms: Sequence[ArmRun]) -> list[str]:
    """Return a sentence for each count of warnings and omissions; arms with the same count share it."""
    by_count: dict[str, list[str]] = {}
    for arm in arms:
        for what, count in arm.manifest["told"].items():
            by_count.setdefault(f"{count['number']:,} of {count['of']:,} {what}", []).append(arm.name)
    return [f"{words} ({'all arms' if len(names) == len(arms) else ', '.join(names)})." if len(arms) > 1
            else f"{words}." for words, names in by_count.items()]


def _write(path: Path, text: str) -> None:
    sweep_leftovers(path)
    atomic_write(path, text.encode(errors="replace"))
