"""A submitted sweep as it lies on disk: what will run, what it runs from, and which job does what.

``OUT/.sweeps/<id>/`` holds ``source/`` (memlab and its configuration as they were at submission: jobs run from
there, so that an edit made afterwards changes nothing), ``arms/<n>.yaml`` (each arm's composed configuration),
``logs/`` and ``sweep.json``. Everything is plain text; nothing in it is a secret.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from memlab.cluster.schedule import Step, step_of
from memlab.config.instantiate import CONF
from memlab.errors import MemlabError
from memlab.harness.arm import Arm
from memlab.harness.build import build
from memlab.harness.manifest import COMMIT, PACKAGE, commit
from memlab.runtime.files import read_json, write_json

SWEEPS = ".sweeps"
"""Folder of submitted sweeps below the root of the runs."""

REPORTED = "reported.json"
"""Names what its report job has built."""

SERVE = "slurm/serve.sbatch"


@dataclass(frozen=True)
class Job:
    """A job that was submitted: the name that its scheduler gave it, and what it does."""

    id: str
    step: Step


@dataclass(frozen=True)
class Frozen:
    """A submitted sweep, by its folder."""

    folder: Path

    @property
    def source(self) -> Path:
        """The folder from which its jobs import memlab."""
        return self.folder / "source"

    @property
    def logs(self) -> Path:
        """Where its jobs write."""
        return self.folder / "logs"

    def note(self) -> dict[str, Any]:
        """Return what ``sweep.json`` holds; raises MemlabError where it cannot be read."""
        try:
            return read_json(self.folder / "sweep.json")
        except (OSError, ValueError) as error:
            raise MemlabError(f"no record of a sweep ({error})", where=str(self.folder),
                              fix="remove the folder, or submit again") from error

    def jobs(self) -> list[Job]:
        """List its jobs in the order of their submission."""
        return [Job(one["id"], step_of(one["step"])) for one in self.note()["jobs"]]

    def record(self, jobs: Sequence[Job], **more: Any) -> None:
        """Note jobs that were submitted, behind those that are noted; raises MemlabError where the disk refuses."""
        note = self.note() | more
        note["jobs"] += [{"id": job.id, "step": str(job.step)} for job in jobs]
        try:
            write_json(self.folder / "sweep.json", note)
        except OSError as error:
            raise MemlabError(f"the sweep's jobs cannot be noted: {_why(error)}", where=str(self.folder),
                              fix="free some space there and give the same line again") from error

    def note_report(self, built: Sequence[Path]) -> None:
        """Note the comparisons of all its arms that its report job has built, for a shell that waits for them."""
        with suppress(OSError):  # without the note the shell builds the report again
            write_json(self.folder / REPORTED, {str(path): path.stat().st_mtime_ns for path in built})

    def reported(self) -> list[Path]:
        """Return what ``note_report`` noted; nothing where one of them cannot be seen, or has been built anew since."""
        try:
            noted = read_json(self.folder / REPORTED)
            fresh = all(Path(name).stat().st_mtime_ns == told for name, told in noted.items())
        except (OSError, ValueError, AttributeError):
            return []
        return [Path(name) for name in noted] if fresh else []

    def config(self, number: int) -> DictConfig:
        """Return the configuration of an arm, by its number in the sweep."""
        loaded = OmegaConf.load(self.folder / "arms" / f"{number}.yaml")
        assert isinstance(loaded, DictConfig)
        return loaded

    def arm(self, number: int) -> Arm:
        """Make an arm again from what was frozen."""
        note, config = self.note(), self.config(number)
        one = note["arms"][number]
        pipeline, dataset = build(config)
        return Arm(name=one["name"], experiment=one["experiment"], pipeline=pipeline, dataset=dataset,
                   out=Path(note["out"]), seed=config["seed"], config=OmegaConf.to_yaml(config))


def freeze(arms: Sequence[Arm], out: Path, store: Path, words: Sequence[str], shards: int) -> Frozen:
    """Write a sweep down, with the source that it will run from; raises MemlabError where the disk refuses."""
    out = out.resolve()
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"  # two of the same second stay apart
    frozen = Frozen(out / SWEEPS / stamp)
    try:
        frozen.folder.mkdir(parents=True)
        try:
            _write(frozen, arms, out, store, words, shards)
        except BaseException:
            shutil.rmtree(frozen.folder, ignore_errors=True)
            raise
    except OSError as error:
        raise MemlabError(f"the sweep cannot be written down: {_why(error)}", where=str(frozen.folder),
                          fix="free some space there, or choose another place with out=DIR") from error
    return frozen


def _write(frozen: Frozen, arms: Sequence[Arm], out: Path, store: Path, words: Sequence[str], shards: int) -> None:
    for folder in (frozen.source, frozen.folder / "arms", frozen.logs):
        folder.mkdir()
    shutil.copytree(PACKAGE, frozen.source / "memlab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CONF, frozen.source / "conf")
    serve = PACKAGE.parent / SERVE
    if serve.is_file():
        (frozen.source / SERVE).parent.mkdir()
        shutil.copy2(serve, frozen.source / SERVE)
    (frozen.source / COMMIT).write_text(json.dumps(commit()), encoding="utf-8")
    for number, arm in enumerate(arms):
        (frozen.folder / "arms" / f"{number}.yaml").write_text(arm.config, encoding="utf-8")
    write_json(frozen.folder / "sweep.json", {
        "words": list(words), "submitted": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "from": os.getcwd(),
        "out": str(out), "store": str(store.resolve()), "shards": shards,
        "arms": [{"name": arm.name, "experiment": arm.experiment, "data": arm.dataset.name,
                  "folder": str(out / arm.folder().relative_to(arm.out))} for arm in arms],
        "jobs": []})


def _why(error: OSError) -> str:
    """Say what the disk refused; of a folder's files, each of which is told, the first."""
    if isinstance(error, shutil.Error):
        first = str(error.args[0][0][-1])  # "[Errno 28] No space left on device: 'path'"
        return first.partition("] ")[2].partition(":")[0] or first
    return error.strerror or str(error)


def sweeps(out: Path) -> Iterator[Frozen]:
    """Yield the sweeps that were submitted below a root of runs, the newest first."""
    for path in sorted((out / SWEEPS).glob("*/sweep.json"), reverse=True):
        yield Frozen(path.parent)
