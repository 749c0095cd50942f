"""Publication of a finished run: its content, and the marker beside the result.

With the marker nothing is published twice. A finished arm's marker lies in its folder, a failed one's beside the
folder that it would have had.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from memlab.evaluate.costs import latency, price_table, spending
from memlab.evaluate.summary import ABOUT, headline
from memlab.experiment.harness.results import ArmRun, failure_file
from memlab.pipeline.stage import stage
from memlab.support.files import write_json
from memlab.support.foreign import read_json
from memlab.support.redaction import redact, redact_tree
from memlab.support.text.display import safe_text


@stage
class NoTracking:
    """No tracking: the run folder is the only record."""

    def describe(self) -> str:
        """Return one sentence on what is written."""
        return "W&B: nothing is written (track=wandb writes settings and figures, track.texts=true also texts)"

    def publish(self, folder: Path) -> str | None:  # noqa: ARG002  (the signature of every track)
        """Return None: nothing is published."""
        return None


TEXTS = ("text", "answer", "label_error")
"""Columns of a per-question frame that people wrote."""

ROWS, CHARACTERS = 2_000, 500
"""Rows of the per-question table and characters of a text in it; the artifact holds all rows and columns."""

CURVES = ("constant_k", "reliability", "importances")
"""Parts of a manifest that are curves or tables, not settings."""


def config(arm: ArmRun) -> dict[str, Any]:
    """Return the arm's configuration, and its manifest under ``manifest``, without keys."""
    manifest = {k: v for k, v in arm.manifest.items() if k not in CURVES}
    return {str(k): v for k, v in redact_tree({**arm.settings, "manifest": manifest}).items()}


def figures(arm: ArmRun) -> dict[str, float]:
    """Return metrics.json under its own names, the manifest's numbers under ``manifest/``, dollars and milliseconds."""
    numbers = {f"manifest/{k}": v for k, v in arm.manifest.items()
               if isinstance(v, int | float) and not isinstance(v, bool)}
    spent = spending(arm.manifest, price_table()[0])
    dollars = {f"cost/{name}": value for name, value in (("question", spent.question), ("writing", spent.writing))
               if value is not None}
    return {**arm.metrics, **numbers, **dollars,
            **{f"latency_ms/{stage}": value for stage, value in latency(arm.manifest).items()}}


def tables(wandb: Any, arm: ArmRun, texts: bool = False) -> dict[str, Any]:
    """Return the per-question table, recall over k, and a metric by type; plots only where there is data.

    The table has the headline metrics: the client prepares it cell by cell, and all hundred metrics would take a second
    per arm. All are in the run folder's questions.parquet, which is in the artifact.
    """
    about = [column for column in ABOUT if texts or column not in TEXTS]
    questions = arm.questions.head(ROWS).select(*about, *headline(arm.questions.columns))
    cells = [[safe_text(v)[:CHARACTERS] if isinstance(v, str) else v for v in row] for row in questions.iter_rows()]
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
        bars = [[safe_text(kind), value] for kind, value in values.items() if value is not None]
        if bars:
            table = wandb.Table(columns=["type", metric], data=bars)
            out["by type"] = wandb.plot.bar(table, "type", metric, title=f"{metric} by type")
            break
    return out


MARKER = "published.json"
"""Lies in a run folder that was published; delete it to publish again."""

FAILED = ".failed.published.json"
"""Suffix of the marker of a failed arm, after the name of its run folder."""

LINES, MARKER_CHARACTERS = 30, 4_000
"""Length of a traceback's end that is published; all of it lies beside the run folder."""

@dataclass(frozen=True)
class PublishRecord:
    """A run folder that can be published: where it is (or would be), and whether its arm failed."""

    folder: Path
    failed: bool

    @property
    def source(self) -> Path:
        """The file whose content identifies the state of the arm."""
        return failure_file(self.folder) if self.failed else self.folder / "manifest.json"

    @property
    def marker(self) -> Path:
        """The file that records what was published."""
        return self.folder.with_name(self.folder.name + FAILED) if self.failed else self.folder / MARKER

    def digest(self) -> str:
        """Return a digest of the source; raise OSError if it is missing."""
        return hashlib.blake2b(self.source.read_bytes(), digest_size=16).hexdigest()

    def read_marker(self) -> dict[str, Any]:
        """Return the content of the marker; empty where there is none or it is damaged."""
        try:
            content = read_json(self.marker)
        except (OSError, ValueError):
            return {}
        return content if content.get("where") else {}

    def is_online(self, entity: str, project: str) -> bool:
        """Return whether the arm, in its present state, is in a project on a server."""
        before = self.read_marker()
        wanted = {"mode": "online", "entity": entity, "project": project, "manifest": self.digest()}
        return {k: before.get(k) for k in wanted} == wanted

    def write(self, value: dict[str, Any]) -> None:
        """Write the marker."""
        write_json(self.marker, value)
        if not self.failed:  # an arm that failed before and is now finished is one run
            PublishRecord(self.folder, failed=True).marker.unlink(missing_ok=True)


def find_record(folder: Path) -> PublishRecord:
    """Return the record of a run folder; one without manifest and failure counts as finished and unreadable."""
    return PublishRecord(folder, failed=not (folder / "manifest.json").is_file() and failure_file(folder).is_file())


def find_records(root: Path) -> list[PublishRecord]:
    """Return the records of all finished and failed arms under a folder, in the order of their names."""
    finished = {path.parent for path in root.rglob("manifest.json")}
    failed = {path.with_name(path.name.removesuffix(".failed.txt")) for path in root.rglob("*.failed.txt")}
    if failure_file(root).is_file():  # root is the run folder of a failed arm
        failed.add(root)
    return [PublishRecord(folder, failed=folder not in finished) for folder in sorted(finished | failed)]


def failure_tail(folder: Path, environment: Mapping[str, str] | None = None, texts: bool = True) -> str:
    """Return the last lines of a failure without secrets; raise OSError where there is no such file.

    Without ``texts`` it is the name of the exception alone, since its message may quote the data.
    """
    text = failure_file(folder).read_text(encoding="utf-8", errors="replace")
    if not texts:
        named = re.findall(r"^[A-Za-z_][\w.]*(?=:|$)", text, re.MULTILINE)
        return f"failed: {named[-1]}" if named else "failed"
    lines = redact(text, environment).strip().splitlines()
    return "\n".join(lines[-LINES:])[-MARKER_CHARACTERS:]
