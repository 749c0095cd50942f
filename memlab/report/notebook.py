"""Finished runs and their comparison in Python: ``load`` and ``compare``, shown as tables in a notebook.

::

    from memlab import compare, load

    runs = load("runs/adaptive_k/synthetic")
    runs["gap"].questions              # the metrics of each question, a polars frame
    comparison = compare(runs)         # intervals, paired tests and the verdict, as the report shows them
    comparison.table()
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import polars as pl

from memlab.evaluate.compare import Comparison
from memlab.evaluate.contrast import Contrast
from memlab.experiment.harness.results import ArmRun, finished_arms, read_arm
from memlab.report.arms_table import ALONE
from memlab.report.build import comparison_of, declared_contrasts
from memlab.report.console import print_report
from memlab.report.export import latex
from memlab.report.markdown import escape, join, summary
from memlab.report.view_model import ReportView
from memlab.support.arguments import Place, check_arguments
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.text.display import format_number, html_table, plural


class FinishedRuns(dict[str, ArmRun]):
    """The finished runs of one or more arms, by the arm's name."""

    def __missing__(self, name: str) -> ArmRun:
        raise MemlabError(f"there is no finished run of the arm '{name}'", fix=did_you_mean(name, self))

    def table(self, metrics: Sequence[str] = ()) -> pl.DataFrame:
        """Return one row per arm with these metrics of metrics.json; by default the retrieval metrics, tokens and K.

        Raises MemlabError for a metric that no run has.
        """
        present = {name for run in self.values() for name in run.metrics}
        unknown = [name for name in metrics if name not in present]
        if unknown:
            raise MemlabError(f"no run has the metric '{unknown[0]}'", fix=did_you_mean(unknown[0], present))
        usual = [name for name in (*ALONE, "context/tokens_mean", "selected/k_mean") if name in present]
        return pl.DataFrame([{"arm": run.name, **{name: run.metrics.get(name) for name in metrics or usual}}
                             for run in self.values()])

    def __repr__(self) -> str:
        names = ", ".join(self)
        return f"<{plural(len(self), 'finished run')}: {names}>"

    def _repr_html_(self) -> str:
        table = self.table()
        return html_table(table.columns, [[value if isinstance(value, str) else format_number(value) for value in row]
                                          for row in table.iter_rows()], repr(self)[1:-1])


Runs = Annotated[Place | ArmRun | FinishedRuns, "give a folder of runs, or what load returns"]


@dataclass(frozen=True, repr=False)
class ComparedRuns:
    """The comparison of finished runs; ``comparison`` is the content of comparison.json."""

    comparison: Comparison

    @cached_property
    def _view(self) -> ReportView:
        return ReportView(self.comparison)

    @property
    def verdict(self) -> list[str]:
        """The verdict in sentences: which arm to use, how surely, and what could not be shown."""
        found = self._view.opening
        return [found.sentence, *found.sure] if found.sentence else list(found.sure)

    def table(self) -> pl.DataFrame:
        """Return one row per arm and metric: arm, metric, value, low, high (95 % interval)."""
        return pl.DataFrame(
            [{"arm": name, "metric": metric, **{key: estimate[key] for key in ("value", "low", "high")}}
             for name, arm in self.comparison["arms"].items() for metric, estimate in arm["metrics"].items()],
            schema={"arm": pl.String, "metric": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64},
            strict=False)

    def contrasts(self, exploratory: bool = False) -> pl.DataFrame:
        """Return one row per declared contrast, or per exploratory one, with difference, interval, p and verdict."""
        columns = ("arm", "comparator", "metric", "difference", "low", "high", "p", "p_adjusted", "verdict", "words")
        rows = self.comparison["exploratory" if exploratory else "contrasts"]
        texts = ("arm", "comparator", "metric", "verdict", "words")
        return pl.DataFrame([{name: row.get(name) for name in columns} for row in rows],
                            schema={name: pl.String if name in texts else pl.Float64 for name in columns}, strict=False)

    def to_latex(self) -> str:
        """Return the table of arms as LaTeX, with 95 % intervals in brackets."""
        return latex(self._view)

    def __repr__(self) -> str:
        from memlab.support.console import Console

        out = io.StringIO()
        print_report(self._view, Console(file=out, width=110, no_color=True, highlight=False))
        return out.getvalue().rstrip()

    def _repr_html_(self) -> str:
        from markdown_it import MarkdownIt

        text = join(*map(escape, self.verdict), summary(self._view))
        return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)


@check_arguments
def load(folder: Place) -> FinishedRuns:
    """Load the finished runs of a folder: ``runs/<experiment>/<data>``, or the folder of one run.

    Of several runs of an arm the newest counts. Raises MemlabError if no run is finished there.

    >>> load("runs/nowhere")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    memlab.support.errors.MemlabError: runs/nowhere: no finished run is here. Fix: give the folder
    runs/<experiment>/<data>
    """
    folder = Path(folder)
    if (folder / "manifest.json").is_file():
        return _by_name((read_arm(folder),))
    found = finished_arms(folder)
    if not found.arms:
        near = sorted({path.parents[1] for path in folder.glob("*/*/*/manifest.json")} |
                      {path.parents[1] for path in folder.glob("*/*/manifest.json")})
        fix = f"give one of {', '.join(map(str, near[:5]))}" if near else "give the folder runs/<experiment>/<data>"
        raise MemlabError("no finished run is here" + (f" ({'; '.join(found.broken)})" if found.broken else ""),
                          where=str(folder), fix=fix)
    return _by_name(found.arms)


@check_arguments
def compare(*runs: Runs, contrasts: Sequence[Contrast] | None = None, seed: int = 0
            ) -> ComparedRuns:
    """Compare finished runs, question by question, as a report does, and write nothing.

    Each of ``runs`` is a folder as ``load`` takes it, a run, or the runs that ``load`` returned. ``contrasts`` are the
    claims made beforehand; None takes those that the newest run's configuration declares, if all runs are of one
    experiment. ``seed`` is that of the resamples behind intervals.

    Raises MemlabError for no run, two runs of one name, and runs on different data.

    >>> compare()
    Traceback (most recent call last):
    ...
    memlab.support.errors.MemlabError: compare: no run is given. Fix: compare(load('runs/<experiment>/<data>'))
    """
    arms = [arm for run in runs for arm in _arms(run)]
    if not arms:
        raise MemlabError("no run is given", where="compare", fix="compare(load('runs/<experiment>/<data>'))")
    names = [arm.name for arm in arms]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise MemlabError(f"several runs are named {', '.join(twice)}", where="compare",
                          fix="give each run its own name (name=NAME on the command line)")
    if len(data := sorted({arm.manifest["dataset"] for arm in arms})) > 1:
        raise MemlabError(f"the runs are on different data: {', '.join(data)}", where="compare",
                          fix="compare runs on one data set")
    folders = {arm.folder.resolve().parent for arm in arms}
    if contrasts is None:
        contrasts = declared_contrasts(arms) if len(folders) == 1 else []
    return ComparedRuns(comparison_of(arms[0].folder.parent, arms, contrasts, [], seed))


def _by_name(arms: Iterable[ArmRun]) -> FinishedRuns:
    return FinishedRuns((arm.name, arm) for arm in arms)


def _arms(run: Runs) -> list[ArmRun]:
    if isinstance(run, ArmRun):
        return [run]
    return [*(run if isinstance(run, FinishedRuns) else load(run)).values()]
