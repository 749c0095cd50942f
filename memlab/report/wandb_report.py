"""The report as a W&B Report: the same findings and tables as text, and panels over the arms' runs.

Text comes from ``report.md``, in which foreign text is escaped; panels name runs by their id, so that a report shows
only the arms of its comparison. Publishing again updates the report, whose id is kept beside ``report.html``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memlab.experiment.harness.results import ArmRun
from memlab.experiment.track.wandb import run_id
from memlab.report.markdown import document
from memlab.report.view_model import ReportView
from memlab.support.errors import MemlabError
from memlab.support.files import write_json
from memlab.support.foreign import read_json
from memlab.support.text.display import plural, safe_line

FILE = "wandb_report.json"
"""Lies beside report.html with the id of its W&B Report; delete it to publish a new one."""

TITLE, WIDTH = 128, 24
"""Longest title that W&B accepts, in characters, and columns of its grid of panels."""

TOKENS = "context/tokens_mean"


def publish(folder: Path, view: ReportView, entity: str, project: str) -> str:
    """Save the report of ``runs/<exp>/<data>`` and return its URL; the runs of its arms must be in the project.

    Raises MemlabError where the client is missing or the server refuses.
    """
    api = client()
    try:
        report = build_report(api, view, entity, project)
        report.id = _last_id(folder, entity, project)
        report.save()
    except MemlabError:
        raise
    except Exception as error:  # whatever the client raises: connection, login, permission, a server's refusal
        raise MemlabError(f"the W&B Report was not published ({type(error).__name__}: {safe_line(error)[:300]})",
                          where=str(folder), fix="check wandb login, the entity and the project; the local report is "
                          "complete") from error
    write_json(folder / FILE, {"entity": entity, "project": project, "id": report.id, "url": report.url})
    return str(report.url)


def build_report(api: Any, view: ReportView, entity: str, project: str) -> Any:
    """Build the report without saving it; ``api`` is ``wandb_workspaces.reports.v2``."""
    parts, arms, comparison = sections(document(view)), view.arms, view.comparison
    metrics = [m for m in view.columns if any(m in arm.metrics for arm in arms)]
    grids = {"Evidence against tokens": _tokens(api, metrics[:1]), "All arms": _arms(api, metrics),
             "Settings": [
                 api.RunComparer(diff_only="split", layout=api.Layout(x=0, y=0, w=WIDTH, h=12))]}
    parts = {name: parts.get(name, "") for name in dict.fromkeys(["Verdict", *list(grids)[:2], *parts, *grids])}
    blocks: list[Any] = [api.TableOfContents()]
    for name, text in parts.items():
        panels = grids.get(name, [])
        if text or panels:
            blocks += [api.H2(name), *([api.MarkdownBlock(text)] if text else [])]
        if panels:
            blocks.append(api.PanelGrid(runsets=[_runs(api, arms, entity, project, metrics)], panels=panels))
    title = f"{safe_line(comparison['experiment'])} on {safe_line(comparison['data'])}"[:TITLE]
    summary = f"memlab: {plural(len(comparison['arms']), 'arm')}, {plural(comparison['questions'], 'question')}"
    return api.Report(entity=entity, project=project, title=title, description=summary, blocks=blocks, width="fluid")


def sections(markdown: str) -> dict[str, str]:
    """Split a document at its second-level headings; foreign text is escaped and on one line, so it cannot add one.

    >>> sections("# a on b\\n\\ntwo arms\\n\\n## Verdict\\n\\nnone\\n\\n## All arms\\n\\n### gap\\n")
    {'Verdict': 'none', 'All arms': '### gap'}
    """
    parts = [part.partition("\n") for part in f"\n{markdown}".split("\n## ")[1:]]
    return {name.strip(): text.strip() for name, _, text in parts}


def _runs(api: Any, arms: Sequence[ArmRun], entity: str, project: str, metrics: Sequence[str]) -> Any:
    ids = [run_id(arm.folder) for arm in arms]
    columns = [f"summary:{name}" for name in [*metrics, TOKENS]]
    return api.Runset(entity=entity, project=project, name="arms", filters=f"Metric('ID') in {ids!r}",
                      order=[api.OrderBy("Name", ascending=True)], pinned_columns=["run:displayName"],
                      visible_columns=["run:state", *columns])


def _arms(api: Any, metrics: Sequence[str]) -> list[Any]:
    return [api.BarPlot(title=_title(metric), metrics=[api.SummaryMetric(metric)], layout=_place(api, i, 3))
            for i, metric in enumerate(metrics[:3])]


def _tokens(api: Any, metrics: Sequence[str]) -> list[Any]:
    return [api.ScatterPlot(title=_title(f"{metric} against context tokens"), x=api.SummaryMetric(TOKENS),
                            y=api.SummaryMetric(metric), regression=False,
                            layout=api.Layout(x=0, y=0, w=WIDTH, h=12)) for metric in metrics]


def _title(text: str) -> str:
    return safe_line(text)[:TITLE]


def _place(api: Any, at: int, beside: int) -> Any:
    width = WIDTH // beside
    return api.Layout(x=width * (at % beside), y=8 * (at // beside), w=width, h=8)


def _last_id(folder: Path, entity: str, project: str) -> str:
    """Return the id of the report that was published to the same project; "" if there is none."""
    try:
        kept = read_json(folder / FILE)
    except (OSError, ValueError):
        return ""
    same = (kept.get("entity"), kept.get("project")) == (entity, project)
    return str(kept.get("id") or "") if same else ""


def client() -> Any:
    """Return the Report client; raise MemlabError where it is not installed."""
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        import wandb_workspaces.reports.v2 as api
    except ImportError as error:
        raise MemlabError("wandb-workspaces is not installed", fix="pip install 'memlab[wandb]'") from error
    return api
