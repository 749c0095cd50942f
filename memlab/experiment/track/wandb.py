"""W&B runs and artifacts filled from finished run folders: a view of the record, never the record.

W&B artifacts of an arm with their lineage: its outputs (rankings, answers) and its inputs (data set, models).

Inputs are small files with the checksums and fingerprints of the manifest, not the data and weights themselves. A run
is linked to them online; an offline run has them as metadata of its outputs, and gets the links when ``python -m
memlab.experiment.track sync`` sends it.

One run per arm. Its id comes from the arm's path and hash, so that an arm that is resumed, that failed before, or that
is published twice is one run; a marker records what was published, so that a repeated experiment costs nothing here.

``sync`` sends the run folder, not W&B's own offline file: the folder is the record, its id is the same, and online the
run is linked to the data and the models that it used. Markers are rewritten one by one, so an interrupted sync
continues where it stopped; W&B's own mark (``*.wandb.synced``) keeps ``wandb sync`` from sending the file again.
"""

from __future__ import annotations

import hashlib
import json
import netrc
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from memlab.experiment.harness.results import ArmRun, read_arm
from memlab.experiment.track.record import (
    TEXTS,
    PublishRecord,
    config,
    failure_tail,
    figures,
    find_record,
    find_records,
    tables,
)
from memlab.pipeline.stage import LocalPath, Names, stage
from memlab.support.errors import MemlabError, error_message
from memlab.support.files import make_folder
from memlab.support.paths import expand
from memlab.support.text.display import safe_line

OUTPUTS = {
    "ranking": ("ranking.parquet", "context.parquet", "questions.parquet", "ids.parquet", "run.trec", "metrics.json",
                "config.yaml", "manifest.json"),
    "answers": ("answers.jsonl", "verdicts.jsonl", "attribution.parquet"),
}
"""Type of an artifact -> its files of the run folder; an artifact without any file is skipped."""

WITH_TEXTS = ("ids.parquet", "run.trec", "answers.jsonl", "verdicts.jsonl")
"""Files that hold names of sessions, answers, or replies of judges; questions.parquet is sent without its ``TEXTS``."""

LONGEST = 128
"""Characters of an artifact's name that W&B accepts."""


@dataclass(frozen=True)
class ArtifactInput:
    """An input of an arm: its type and name in W&B, and the facts that identify it."""

    kind: str
    name: str
    facts: dict[str, Any]


def inputs(manifest: dict[str, Any]) -> list[ArtifactInput]:
    """Return the data set and every model of a manifest, each once.

    >>> [i.name for i in inputs({"dataset": "locomo", "data": {"sha256": "1f"}, "pipeline": {
    ...     "dense": {"is": "memlab.Dense", "embedder": {"is": "SentenceEmbedder", "weights": "78"}}}})]
    ['data-locomo', 'model-SentenceEmbedder-ac3b9e']
    """
    data = {"dataset": manifest.get("dataset"), "data": manifest.get("data")}
    by_name = {data_name(manifest): ArtifactInput("dataset", data_name(manifest), data)}
    for model in _models(manifest.get("pipeline")):
        digest = hashlib.blake2b(json.dumps(model, sort_keys=True, default=str).encode(), digest_size=3).hexdigest()
        label = str(model.get("model") or model["is"]).rpartition("/")[2]
        name = artifact_name("model", label, tail=digest)
        by_name[name] = ArtifactInput("model", name, model)
    return list(by_name.values())


def data_name(manifest: dict[str, Any]) -> str:
    """Return the name of the data set's artifact; other contents of that name are further versions."""
    return artifact_name("data", str(manifest.get("dataset")))


def artifact_name(*words: str, tail: str = "") -> str:
    """Join words to a name that W&B accepts: letters, digits, ``-_.``, at most ``LONGEST``.

    >>> artifact_name("model", "Qwen 3", tail="ab12")
    'model-Qwen_3-ab12'
    """
    ending = f"-{tail}" if tail else ""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join(words))[:LONGEST - len(ending)] + ending


def log(wandb: Any, run: Any, arm: ArmRun, texts: bool = False) -> None:
    """Link the run to its inputs, where it is online, and add its outputs, with or without what people wrote."""
    used = inputs(arm.manifest)
    if not run.offline:
        for source in used:
            artifact = wandb.Artifact(source.name, source.kind, metadata=source.facts)
            with artifact.new_file("identity.json") as file:
                json.dump(source.facts, file, indent=1, sort_keys=True, default=str)
            run.use_artifact(artifact)
    for kind, names in OUTPUTS.items():
        sent = [name for name in names if texts or name not in WITH_TEXTS]
        files = [arm.folder / name for name in sent if (arm.folder / name).is_file()]
        if not files:
            continue
        artifact = wandb.Artifact(artifact_name(kind, arm.name, tail=run.id), kind, metadata={
            "arm": arm.name, "digest": arm.digest, "used": {source.name: source.facts for source in used}})
        for path in files:  # a finished folder does not change: the client need not copy it first
            if path.name == "questions.parquet" and not texts:
                with artifact.new_file(path.name, mode="wb") as file:
                    arm.questions.drop(TEXTS).write_parquet(file)
                continue
            artifact.add_file(str(path), name=path.name, skip_cache=True, policy="immutable")
        run.log_artifact(artifact)


def _models(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the identities of models in a pipeline's description: their "is" names no package, unlike a stage's."""
    if isinstance(part, dict):
        if "." not in str(part.get("is", ".")) and ("weights" in part or "model" in part):
            yield part
        for inner in part.values():
            yield from _models(inner)
    elif isinstance(part, list | tuple):
        for inner in part:
            yield from _models(inner)


NAME, TAG = 128, 64
"""Characters of a run's name and of a tag that W&B accepts."""

INIT_TIMEOUT, FINISH_TIMEOUT = 30.0, 300.0
"""Seconds for a server to answer, and to take all of an arm; by default the client waits without limit at the end."""

PATIENCE = 3
"""Failures in a row after which a server is given up, so that 200 arms do not wait for it one by one."""


@stage
class WandbTrack:
    """Publish finished and failed arms to Weights & Biases.

    ``offline`` needs neither key nor network and writes under ``<out>/wandb``; ``memlab track sync`` sends
    it later. The group is the experiment unless one is given; the folder of W&B's files is ``dir``, else the root of
    the runs.
    """

    # needs neither key nor network; send later with `memlab track sync`; or online
    mode: Literal["offline", "online"] = "offline"
    project: str = "memlab"
    entity: str | None = None  # your team; null = your own account
    group: str | None = None  # null = the experiment's name, so that its arms stand together
    tags: Names = ()  # beside experiment and data, which are always tags
    dir: LocalPath | None = None  # where W&B keeps its files; null = <out>/wandb
    texts: bool = False  # true: questions, answers, names of sessions and tracebacks too, which are of the data

    @cached_property
    def refused(self) -> list[str]:
        """Names of the arms that the server has refused since it last accepted one."""
        return []

    def describe(self) -> str:
        """Return one sentence on what is written, and how it gets further."""
        where = "sent" if self.mode == "online" else "written offline; memlab track sync sends it"
        return (f"W&B: settings and figures, {'texts included' if self.texts else 'without texts (track.texts=true)'}, "
                f"{where}")

    def publish(self, folder: Path) -> str | None:
        """Publish one run folder, finished or failed; return where, or None with a warning."""
        try:
            record = find_record(folder)
            wanted = {"id": run_id(folder), "project": self.project, "entity": self.entity, "group": self.group,
                      "tags": list(self.tags), "texts": self.texts, "manifest": record.digest()}
            before = record.read_marker()
            if {k: before.get(k) for k in wanted} == wanted and before.get("mode") in (self.mode, "online"):
                return str(before["where"])  # online includes offline
            where = self._send_unless_given_up(record, None if record.failed else read_arm(folder))
            record.write({**wanted, "mode": self.mode, "where": where})
            return where
        except Exception as error:  # no error of tracking may cost a finished arm
            warnings.warn(f"{folder.name} was not published to W&B ({error_message(error)}); "
                          "its run folder is complete", stacklevel=2)
            return None

    def _send_unless_given_up(self, record: PublishRecord, arm: ArmRun | None) -> str:
        if self.mode == "offline":
            return self._send(record, arm)
        if len(self.refused) >= PATIENCE:
            raise MemlabError(f"not tried, since W&B did not accept the last {PATIENCE} arms",
                              fix="memlab track RUNS --mode online, when it answers")
        self.refused.append(record.folder.name)
        where = self._send(record, arm)
        self.refused.clear()
        return where

    def _send(self, record: PublishRecord, arm: ArmRun | None) -> str:
        wandb = _wandb()
        place = record.folder.resolve()
        experiment, data = place.parent.parent.name, place.parent.name
        root = self.dir or place.parents[2]
        marks = ["oracle"] if arm and arm.oracle else ["failed"] if record.failed else []
        tags = [safe_line(t)[:TAG] for t in dict.fromkeys([*self.tags, experiment, data, *marks])]
        name = arm.name if arm else place.name.rpartition("-")[0] or place.name
        notes = f"{name}: {experiment} on {data}" if arm else failure_tail(record.folder, texts=self.texts)
        make_folder(root / "wandb")  # where the client may not write, it takes the folder of temporary files
        run = wandb.init(
            mode=self.mode, project=self.project, entity=self.entity, id=run_id(place), name=safe_line(name)[:NAME],
            job_type="arm", group=(self.group or experiment)[:NAME], tags=tags, dir=str(root), notes=notes,
            config=config(arm) if arm else {"manifest": {"arm": name, "experiment": experiment}},
            resume="allow" if self.mode == "online" else None, reinit="create_new", settings=_settings(wandb))
        status = 1
        try:
            if arm is None:
                run.summary.update({"failure": notes})
            else:
                run.summary.update(figures(arm))
                run.log(tables(wandb, arm, self.texts))
                log(wandb, run, arm, self.texts)
                status = 0
        finally:
            run.finish(exit_code=status)
        return str(run.url) if self.mode == "online" and run.url else str(Path(run.dir).parent)


def run_id(folder: Path) -> str:
    """Return a run's id from experiment, data, arm and hash: the same folder is the same run on any machine.

    >>> run_id(Path("/a/runs/adaptive_k/locomo/gap-1f2e")) == run_id(Path("/b/runs/adaptive_k/locomo/gap-1f2e"))
    True
    """
    place = "/".join(folder.resolve().parts[-3:])
    return hashlib.blake2b(place.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _settings(wandb: Any) -> Any:
    """Send nothing that memlab did not add: no console, host, program, git state or installed packages."""
    return wandb.Settings(silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True,
                          x_disable_meta=True, x_disable_machine_info=True, x_save_requirements=False,
                          init_timeout=INIT_TIMEOUT, finish_timeout=FINISH_TIMEOUT, finish_timeout_raises=True)


def _wandb() -> Any:
    os.environ.setdefault("WANDB_SILENT", "true")  # its banners would break the progress lines
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # its own crash reports go to a third party
    try:
        import wandb
    except ImportError as error:
        raise MemlabError("wandb is not installed", fix="pip install wandb, or track=none") from error
    return wandb


def missing_key() -> str | None:
    """Return an error message where neither WANDB_API_KEY nor the login's netrc has a key, else None."""
    host = urlsplit(os.environ.get("WANDB_BASE_URL") or "https://api.wandb.ai").hostname or ""
    if os.environ.get("WANDB_API_KEY"):
        return None
    for path in (os.environ.get("NETRC"), "~/.netrc", "~/_netrc"):
        with suppress(OSError, MemlabError, netrc.NetrcParseError):
            if path and netrc.netrc(expand(path)).authenticators(host):
                return None
    return "there is no W&B account here, and nothing was sent. Fix: wandb login, or export WANDB_API_KEY=..."


def pending_records(root: Path) -> list[PublishRecord]:
    """Return the arms under a folder that were published offline and are not on a server yet."""
    return [record for record in find_records(root) if record.read_marker().get("mode") == "offline"]


def sync(records: list[PublishRecord], project: str | None = None, entity: str | None = None
         ) -> Iterator[tuple[Path, str | None]]:
    """Send arms, with the project, entity, group and tags of their offline run unless others are given.

    Yields the folder and the address of each, None where it was not sent; ends when the server is given up.
    """
    refused = 0
    for record in records:
        before = record.read_marker()
        track = WandbTrack(mode="online", project=project or before.get("project") or "memlab",
                           entity=entity or before.get("entity"), group=before.get("group"),
                           tags=tuple(before.get("tags") or ()), texts=bool(before.get("texts")))
        where = track.publish(record.folder)
        if where and before:
            _mark_synced(Path(before["where"]))
        yield record.folder, where
        refused = 0 if where else refused + len(track.refused)
        if refused >= PATIENCE:
            return


def _mark_synced(offline: Path) -> None:
    """Set the client's own mark that an offline run was sent; its folder may be gone by now."""
    for file in offline.glob("*.wandb"):
        with suppress(OSError):
            file.with_suffix(".wandb.synced").touch()
