"""One table over all sizes of haystack (data.grow, data.pool): ``memlab experiment scale runs/scale``.

Each size has its own folder ``runs/EXPERIMENT/DATA`` with its own report. The table has the figures of their
comparison.json, and is written beside these folders, as ``runs/EXPERIMENT/DATA.sizes.md``.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from memlab.evaluate.compare import Comparison
from memlab.pipeline.slots import SLOTS
from memlab.report.markdown import escape, join, table
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write
from memlab.support.foreign import read_json
from memlab.support.help_text import Parser
from memlab.support.paths import path_argument
from memlab.support.terminal import print
from memlab.support.text.display import format_count, format_interval, format_number

METRICS = {"session any@1": "session/recall_any@1", "session all@5": "session/recall_all@5",
           "session all@10": "session/recall_all@10", "turn nDCG@10": "turn/ndcg@10"}
"""Heading -> name in metrics.json."""

PER_QUESTION = tuple(slot.name for slot in SLOTS if slot.phase in ("query", "search", "rank"))
"""Slots whose time is spent for a question; what is written of the sessions is written once."""

LEGEND = ("In brackets the 95 % interval. Seconds per question: the stages from the question to the selection, without "
          "calls to models and approximate indexes, which are made once and kept, but with the fits of a learned "
          "fusion. They are of the machine and its load. Sessions and turns are means over the questions.")

_SIZES = ("grow", "grow_seed", "pool")
_SUFFIX = re.compile(r"-(x\d+|pooled)$")


@dataclass(frozen=True)
class Size:
    """The comparison at one size, and the manifests of its arms."""

    folder: Path
    comparison: Comparison
    manifests: Mapping[str, Mapping[str, Any]]

    @property
    def data(self) -> Mapping[str, Any]:
        """Return what identifies the data."""
        return next((m["data"] for m in self.manifests.values() if isinstance(m.get("data"), dict)), {})

    def same_but_size(self) -> str:
        """Return a key that data of different sizes share, if all else is the same."""
        return json.dumps({k: v for k, v in self.data.items() if k not in _SIZES}, sort_keys=True, default=str)

    @property
    def name(self) -> str:
        """Return the size as the table has it: a haystack's own, a multiple of it, or all haystacks as one."""
        if self.data.get("pool"):
            return "all as one"
        return f"{self.data['grow']} times" if self.data.get("grow") else "its own"

    @property
    def sessions(self) -> float:
        """Return the mean number of sessions of a haystack, 0 where it is not known."""
        return max((float(_part(m, "haystack").get("sessions", 0)) for m in self.manifests.values()), default=0)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the tables of an experiment; exit status 1 if it has no data at several sizes."""
    parser = Parser(prog="memlab experiment scale", description=__doc__)
    parser.add_argument("runs", type=path_argument, help="runs/EXPERIMENT")
    files = write_tables(parser.parse_args(argv).runs)
    for file in files:
        print(f"sizes: {file}")
    if not files:
        print("memlab: no data set here has reports at several sizes. Fix: memlab run +exp=scale", file=sys.stderr)
    return 0 if files else 1


def write_tables(experiment: Path) -> list[Path]:
    """Write a table for each data set that ``runs/EXPERIMENT`` has at several sizes; return their files."""
    folders: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(experiment.glob("*/comparison.json")):
        folders[_SUFFIX.sub("", path.parent.name)].append(path)
    files = []
    for data, paths in folders.items():
        groups: dict[str, list[Size]] = defaultdict(list)
        left_out: list[str] = []
        for path in paths:
            try:
                size = _read(path)
                groups[size.same_but_size()].append(size)
            except MemlabError as error:
                left_out.append(f"Left out: {escape(str(error))}.")
        several = [sorted(sizes, key=lambda size: size.sessions) for sizes in groups.values() if len(sizes) > 1]
        if several:
            title = f"# {escape(experiment.name)} on {escape(data)} by size of the haystack"
            files.append(experiment / f"{data}.sizes.md")
            text = join(title, *map(section, several), *left_out, LEGEND)
            atomic_write(files[-1], f"{text}\n".encode(errors="replace"))
    return files


def section(sizes: list[Size]) -> str:
    """Return the table of comparisons that differ in the size of their haystacks alone."""
    scored = max(size.comparison["scored"] for size in sizes)
    rows = []
    for size in sizes:
        for name, arm in size.comparison["arms"].items():
            manifest = size.manifests.get(name, {})
            haystack = _part(manifest, "haystack")
            figures = []
            for metric in METRICS.values():
                estimate = arm["metrics"].get(metric)
                interval = estimate and format_interval(estimate["low"], estimate["high"])
                figures.append(format_number(estimate and estimate["value"]) + (f" ({interval})" if interval else ""))
            rows.append([size.name, escape(name), *(format_count(haystack.get(what)) for what in ("sessions", "turns")),
                         *figures, format_number(seconds_per_question(manifest), 4)])
    head = ["haystack", "arm", "sessions", "turns", *METRICS, "seconds per question"]
    return f"{scored:,} questions that count for retrieval.\n\n" + table(head, rows, 2).strip("\n")


def seconds_per_question(manifest: Mapping[str, Any]) -> float | None:
    """Return the time from a question to its selection, without the cost of cached results; None without costs."""
    costs, questions = _part(manifest, "costs"), manifest.get("questions")
    known = [float(costs[slot]) for slot in PER_QUESTION if slot in costs]
    return sum(known) / questions if known and isinstance(questions, int) and questions else None


def _read(path: Path) -> Size:
    """Return the size that a comparison.json is of; MemlabError where it, or a manifest of its arms, is damaged."""
    try:
        comparison = cast(Comparison, read_json(path))
        manifests = {name: read_json(path.parent / arm["folder"] / "manifest.json")
                     for name, arm in comparison["arms"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MemlabError(f"the size of {path.parent.name} cannot be read ({type(error).__name__})",
                          fix=f"memlab report {path.parent}") from error
    return Size(path.parent, comparison, manifests)


def _part(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = manifest.get(name)
    return value if isinstance(value, dict) else {}


if __name__ == "__main__":
    raise SystemExit(main())
