"""W&B runs filled from finished run folders: a view of the record, never the record.

One run an arm. Its id comes from the arm's place and hash, so that an arm that is resumed or published twice is one
run; a marker in the folder remembers what was published, so that a repeated experiment costs nothing here.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any, Literal

import polars as pl

from memlab.errors import MemlabError
from memlab.evaluate.questions import ABOUT
from memlab.evaluate.summary import headline
from memlab.report.folders import ArmRun, read_arm
from memlab.report.words import clean
from memlab.stage import LocalPath, Names, stage

MARKER = "published.json"
"""Lies in a run folder that was published; delete it to publish again."""

ROWS, LETTERS = 2_000, 500
"""Rows of the per-question table and letters of a text in it."""


@stage
class WandbTrack:
    """Publish finished arms to Weights & Biases.

    ``offline`` needs neither key nor network and writes under ``<out>/wandb``, to be sent later by ``wandb sync``.
    The group is the experiment unless one is given; the folder of W&B's files is ``dir``, else the root of the runs.
    """

    mode: Literal["offline", "online"] = "offline"
    project: str = "memlab"
    entity: str | None = None
    group: str | None = None
    tags: Names = ()
    dir: LocalPath | None = None

    def publish(self, folder: Path) -> str | None:
        """Publish one finished run folder; return where it went, or None when it failed (a warning says why)."""
        try:
            arm = read_arm(folder)
            digest = hashlib.blake2b((folder / "manifest.json").read_bytes(), digest_size=16).hexdigest()
            wanted = {"id": run_id(folder), "mode": self.mode, "project": self.project, "entity": self.entity,
                      "group": self.group, "tags": list(self.tags), "manifest": digest}
            before = _read(folder / MARKER)
            if {k: before.get(k) for k in wanted} == wanted:
                return str(before["where"])
            where = self._send(arm, run_id(folder))
            _write(folder / MARKER, {**wanted, "where": where})
            return where
        except Exception as error:  # tracking is a courtesy: whatever goes wrong there must not cost a finished arm
            warnings.warn(f"{folder.name} was not published to W&B ({type(error).__name__}: {error}); "
                          "its run folder is complete", stacklevel=2)
            return None

    def _send(self, arm: ArmRun, name: str) -> str:
        wandb = _wandb()
        manifest = arm.manifest
        root = self.dir or arm.folder.resolve().parents[2]
        root.mkdir(parents=True, exist_ok=True)
        experiment, data = arm.folder.resolve().parent.parent.name, arm.folder.resolve().parent.name
        tags = [t[:64] for t in dict.fromkeys([*self.tags, experiment, data, *(["oracle"] if arm.oracle else [])])]
        run = wandb.init(
            mode=self.mode, project=self.project, entity=self.entity, id=name, name=arm.name, job_type="arm",
            group=self.group or experiment, tags=tags, dir=str(root), config=_config(arm),
            resume="allow" if self.mode == "online" else None, reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", disable_git=True, save_code=False,
                                    x_disable_stats=True, x_disable_meta=True))
        failed = 1
        try:
            run.summary.update({**arm.metrics, **_numbers(manifest)})
            run.log(_tables(wandb, arm))
            failed = 0
        finally:
            run.finish(exit_code=failed)
        return str(run.url) if self.mode == "online" and run.url else str(Path(run.dir).parent)


def run_id(folder: Path) -> str:
    """Name a run by experiment, data, arm and hash: the same folder is the same run on any machine.

    >>> run_id(Path("/a/runs/adaptive_k/locomo/gap-1f2e")) == run_id(Path("/b/runs/adaptive_k/locomo/gap-1f2e"))
    True
    """
    place = "/".join(folder.resolve().parts[-3:])
    return hashlib.blake2b(place.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _wandb() -> Any:
    os.environ.setdefault("WANDB_SILENT", "true")  # its banners would tear the progress lines
    try:
        import wandb
    except ImportError as error:
        raise MemlabError("wandb is not installed", fix="pip install wandb, or track=none") from error
    return wandb


def _config(arm: ArmRun) -> dict[str, Any]:
    from omegaconf import OmegaConf

    config = OmegaConf.to_container(OmegaConf.create(arm.config)) if arm.config else {}
    config = config if isinstance(config, dict) else {"config": config}
    manifest = {k: v for k, v in arm.manifest.items() if k not in ("constant_k", "reliability")}  # curves, no settings
    return {**{str(k): v for k, v in config.items()}, "manifest": manifest}


def _numbers(manifest: dict[str, Any]) -> dict[str, float]:
    return {f"manifest/{k}": v for k, v in manifest.items() if isinstance(v, int | float) and not isinstance(v, bool)}


def _tables(wandb: Any, arm: ArmRun) -> dict[str, Any]:
    """The per-question table, recall over k, and a metric by type; plots only where there is something to plot.

    The client prepares tables cell by cell: all hundred metrics of every question would take it a second an arm. The
    table has the headline ones; all are in the run folder's questions.parquet.
    """
    questions = arm.questions.head(ROWS).select(*ABOUT, *headline(arm.questions.columns))
    cells = [[clean(v)[:LETTERS] if isinstance(v, str) else v for v in row] for row in questions.iter_rows()]
    # mixed types are allowed only to spare the client's inference of a type for every cell, a second an arm
    out = {"questions": wandb.Table(columns=questions.columns, data=cells, allow_mixed_types=True)}
    curve = sorted((int(name.rpartition("@")[2]), name, value) for name, value in arm.metrics.items()
                   if name.startswith(("session/recall_all@", "session/recall_any@")))
    if curve:
        table = wandb.Table(columns=["k", "metric", "value"],
                            data=[[k, name.rpartition("@")[0], value] for k, name, value in curve])
        out["recall over k"] = wandb.plot.line(table, "k", "value", stroke="metric", title="recall over k")
    for metric in ("selected/session/recall_all", "session/recall_all@5"):
        kinds = arm.questions.filter(pl.col("scored"))["category"].drop_nulls().unique().sort()
        named = {kind: arm.metrics.get(f"type={kind}/{metric}") for kind in kinds}
        bars = [[kind, value] for kind, value in named.items() if value is not None]
        if bars:
            table = wandb.Table(columns=["type", metric], data=bars)
            out["by type"] = wandb.plot.bar(table, "type", metric, title=f"{metric} by type")
            break
    return out


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) and value.get("where") else {}


def _write(path: Path, value: dict[str, Any]) -> None:
    """Write aside and rename, so that a kill leaves the old marker or none."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(value, indent=1), encoding="utf-8")
    os.replace(aside, path)
