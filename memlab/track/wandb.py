"""W&B runs filled from finished run folders: a view of the record, never the record.

One run per arm. Its id comes from the arm's path and hash, so that an arm that is resumed, that failed before, or that
is published twice is one run; a marker records what was published, so that a repeated experiment costs nothing here.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any, Literal

from memlab.errors import MemlabError
from memlab.harness.results import ArmRun, read_arm
from memlab.stage import LocalPath, Names, stage
from memlab.text.display import one_line
from memlab.track import artifacts, contents
from memlab.track.record import PublishRecord, failure_tail, find_record

NAME, TAG = 128, 64
"""Letters of a run's name and of a tag that W&B accepts."""

INIT_TIMEOUT, FINISH_TIMEOUT = 30.0, 300.0
"""Seconds for a server to answer, and to take all of an arm; by default the client waits without limit at the end."""

PATIENCE = 3
"""Failures in a row after which a server is given up, so that 200 arms do not wait for it one by one."""

_refused: list[str] = []  # arms that the server has refused since it last accepted one, in this process


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

    def publish(self, folder: Path) -> str | None:
        """Publish one run folder, finished or failed; return where, or None with a warning."""
        try:
            record = find_record(folder)
            arm = None if record.failed else read_arm(folder)
            wanted = {"id": run_id(folder), "project": self.project, "entity": self.entity, "group": self.group,
                      "tags": list(self.tags), "manifest": record.digest()}
            before = record.published()
            if {k: before.get(k) for k in wanted} == wanted and before.get("mode") in (self.mode, "online"):
                return str(before["where"])  # online includes offline
            where = self._send_unless_given_up(record, arm)
            record.write({**wanted, "mode": self.mode, "where": where})
            return where
        except Exception as error:  # no error of tracking may cost a finished arm
            warnings.warn(f"{folder.name} was not published to W&B ({type(error).__name__}: {error}); "
                          "its run folder is complete", stacklevel=2)
            return None

    def _send_unless_given_up(self, record: PublishRecord, arm: ArmRun | None) -> str:
        if self.mode == "offline":
            return self._send(record, arm)
        if server_given_up():
            raise MemlabError(f"not tried, since W&B did not accept the last {PATIENCE} arms",
                              fix="memlab track RUNS --mode online, when it answers")
        _refused.append(record.folder.name)
        where = self._send(record, arm)
        _refused.clear()
        return where

    def _send(self, record: PublishRecord, arm: ArmRun | None) -> str:
        wandb = _wandb()
        place = record.folder.resolve()
        experiment, data = place.parent.parent.name, place.parent.name
        root = self.dir or place.parents[2]
        root.mkdir(parents=True, exist_ok=True)
        marks = ["oracle"] if arm and arm.oracle else ["failed"] if record.failed else []
        tags = [one_line(t)[:TAG] for t in dict.fromkeys([*self.tags, experiment, data, *marks])]
        name = arm.name if arm else place.name.rpartition("-")[0] or place.name
        notes = failure_tail(record.folder) if arm is None else f"{name}: {experiment} on {data}"
        run = wandb.init(
            mode=self.mode, project=self.project, entity=self.entity, id=run_id(place), name=one_line(name)[:NAME],
            job_type="arm", group=(self.group or experiment)[:NAME], tags=tags, dir=str(root), notes=notes,
            config=contents.config(arm) if arm else {"manifest": {"arm": name, "experiment": experiment}},
            resume="allow" if self.mode == "online" else None, reinit="create_new", settings=_settings(wandb))
        status = 1
        try:
            if arm is None:
                run.summary.update({"failure": notes})
            else:
                run.summary.update(contents.figures(arm))
                run.log(contents.tables(wandb, arm))
                artifacts.log(wandb, run, arm)
                status = 0
        finally:
            run.finish(exit_code=status)
        return str(run.url) if self.mode == "online" and run.url else str(Path(run.dir).parent)


def server_given_up() -> bool:
    """Return whether the server has refused so many arms in a row that this process tries no more."""
    return len(_refused) >= PATIENCE


def reset_refusals() -> None:
    """Forget the server's refusals, so that it is tried again."""
    _refused.clear()


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
