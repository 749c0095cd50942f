"""The content of a finished arm's W&B run: settings, figures, a table of questions, and plots."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.evaluate.per_question import ABOUT
from memlab.evaluate.summary import headline
from memlab.harness.results import ArmRun
from memlab.runtime.redaction import redact_tree
from memlab.text.display import clean

ROWS, LETTERS = 2_000, 500
"""Rows of the per-question table and letters of a text in it; the artifact holds all rows and columns."""

CURVES = ("constant_k", "reliability", "importances")
"""Parts of a manifest that are curves or tables, not settings."""


def config(arm: ArmRun) -> dict[str, Any]:
    """Return the arm's configuration, and its manifest under ``manifest``, without keys."""
    manifest = {k: v for k, v in arm.manifest.items() if k not in CURVES}
    return {str(k): v for k, v in redact_tree({**arm.settings, "manifest": manifest}).items()}


def figures(arm: ArmRun) -> dict[str, float]:
    """Return metrics.json under its own names, and the manifest's numbers under ``manifest/``."""
    numbers = {f"manifest/{k}": v for k, v in arm.manifest.items()
               if isinstance(v, int | float) and not isinstance(v, bool)}
    return {**arm.metrics, **numbers}


def tables(wandb: Any, arm: ArmRun) -> dict[str, Any]:
    """Return the per-question table, recall over k, and a metric by type; plots only where there is data.

    The table has the headline metrics: the client prepares it cell by cell, and all hundred metrics would take a second
    per arm. All are in the run folder's questions.parquet, which is in the artifact.
    """
    questions = arm.questions.head(ROWS).select(*ABOUT, *headline(arm.questions.columns))
    cells = [[clean(v)[:LETTERS] if isinstance(v, str) else v for v in row] for row in questions.iter_rows()]
    # mixed types are allowed because inferring a type for every cell takes the client a second per arm; the name must
    # not be a metric's, since the summary has both ("questions" is in metrics.json)
    out = {"per question": wandb.Table(columns=questions.columns, data=cells, allow_mixed_types=True)}
    curve = sorted((int(name.rpartition("@")[2]), name, value) for name, value in arm.metrics.items()
                   if name.startswith(("session/recall_all@", "session/recall_any@")))
    if curve:
        table = wandb.Table(columns=["k", "metric", "value"],
                            data=[[k, name.rpartition("@")[0], value] for k, name, value in curve])
        out["recall over k"] = wandb.plot.line(table, "k", "value", stroke="metric", title="recall over k")
    for metric in ("selected/session/recall_all", "session/recall_all@5"):
        kinds = arm.questions.filter(pl.col("scored"))["category"].drop_nulls().unique().sort()
        values = {kind: arm.metrics.get(f"type={kind}/{metric}") for kind in kinds}
        bars = [[clean(kind), value] for kind, value in values.items() if value is not None]
        if bars:
            table = wandb.Table(columns=["type", metric], data=bars)
            out["by type"] = wandb.plot.bar(table, "type", metric, title=f"{metric} by type")
            break
    return out
