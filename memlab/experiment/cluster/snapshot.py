"""Snapshot of a submitted sweep on disk: its arms, its source code, and its jobs.

``OUT/.sweeps/<id>/`` holds ``source/`` (memlab, its configuration, plug-ins and the files of ``conf_dir`` at
submission: jobs run from there, so that later edits have no effect), ``arms/<n>.yaml`` (the composed configuration of
each arm), ``logs/`` and ``sweep.json``. All files are plain text without secrets.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from memlab.experiment.cluster.schedule import Step, parse_step
from memlab.experiment.config import choices, plugins
from memlab.experiment.config.instantiate import CONF
from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.manifest import COMMIT, commit
from memlab.experiment.harness.sweep import build
from memlab.support.errors import Faults, MemlabError
from memlab.support.files import disk_faults, write_json
from memlab.support.foreign import read_json
from memlab.support.paths import PACKAGE, shipped_path, store_root
from memlab.support.redaction import redact

SWEEPS = ".sweeps"
"""Folder of submitted sweeps below the root of the runs."""

SERVE = "slurm/serve.sbatch"


@dataclass(frozen=True)
class Job:
    """A submitted job: the id from its scheduler, and its step."""

    id: str
    step: Step


@dataclass(frozen=True)
class Snapshot:
    """A submitted sweep, by its folder."""

    folder: Path

    @property
    def source(self) -> Path:
        """The folder from which its jobs import memlab."""
        return self.folder / "source"

    @property
    def logs(self) -> Path:
        """The folder of its jobs' logs."""
        return self.folder / "logs"

    def metadata(self) -> dict[str, Any]:
        """Return the content of ``sweep.json``; raise MemlabError if it cannot be read."""
        try:
            return read_json(self.folder / "sweep.json")
        except (OSError, ValueError) as error:
            raise MemlabError(f"no record of a sweep ({error})", where=str(self.folder),
                              fix="remove the folder, or submit again") from error

    def jobs(self) -> list[Job]:
        """Return its jobs in the order of their submission."""
        return [Job(job["id"], parse_step(job["step"])) for job in self.metadata()["jobs"]]

    def activate_plugins(self) -> None:
        """Import the plug-ins of the sweep from its copy of their source; raise Faults if that fails."""
        recorded = self.metadata()["plugins"]
        names = [module for about in recorded.values() for module in about["modules"]]
        versions = {package: about["version"] for package, about in recorded.items()}
        if faults := plugins.activate(names, self.source, versions):
            raise Faults(faults)

    def add_jobs(self, jobs: Sequence[Job], **more: Any) -> None:
        """Append submitted jobs to ``sweep.json`` and set further keys; raise MemlabError if it cannot be written."""
        metadata = self.metadata() | more
        metadata["jobs"] += [{"id": job.id, "step": str(job.step)} for job in jobs]
        write_json(self.folder / "sweep.json", metadata)

    def config(self, number: int) -> DictConfig:
        """Return the configuration of an arm, by its number in the sweep."""
        config = OmegaConf.load(self.folder / "arms" / f"{number}.yaml")
        assert isinstance(config, DictConfig)
        return config

    def arm(self, number: int) -> Arm:
        """Build an arm from the snapshot, by its number in the sweep."""
        metadata, config = self.metadata(), self.config(number)
        about = metadata["arms"][number]
        pipeline, dataset = build(config)
        settings: Any = OmegaConf.to_container(config)
        return Arm(name=about["name"], experiment=about["experiment"], pipeline=pipeline, dataset=dataset,
                   out=Path(metadata["out"]), seed=config["seed"], settings=settings,
                   overrides=tuple(about["overrides"]), command=about["command"])


def take_snapshot(arms: Sequence[Arm], arguments: Sequence[str], store: str | None, shards: int) -> Snapshot:
    """Write a sweep and its source code, with absolute paths; raise MemlabError if the disk refuses."""
    if secret := [arm.name for arm in arms if arm.has_secret]:
        raise MemlabError("the configuration holds a key or a variable's value, and the files of a submitted sweep "
                          "would keep it", where=secret[0], fix="name the variable that holds the key (key_env=NAME, "
                          "which the jobs read), and write other values out")
    out = arms[0].out.resolve()
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"  # unique also within a second
    snapshot = Snapshot(out / SWEEPS / stamp)
    with disk_faults(snapshot.folder, other="choose another folder with out=DIR"):
        snapshot.folder.mkdir(parents=True)
        try:
            _copy_source(snapshot)
            _copy_plugins(snapshot)
            _write_arms(snapshot, [replace(arm, out=out) for arm in arms], {
                "words": [redact(argument) for argument in arguments],
                "submitted": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "plugins": {one.package: {"modules": one.modules, "version": one.version} for one in plugins.active()},
                "out": str(out), "store": str((Path(store) if store else store_root()).resolve()), "shards": shards})
        except BaseException:
            shutil.rmtree(snapshot.folder, ignore_errors=True)
            raise
    return snapshot


def _copy_source(snapshot: Snapshot) -> None:
    shutil.copytree(PACKAGE, snapshot.source / "memlab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CONF, snapshot.source / "conf")
    (snapshot.source / SERVE).parent.mkdir()
    shutil.copy2(shipped_path(SERVE), snapshot.source / SERVE)
    (snapshot.source / COMMIT).write_text(json.dumps(commit()), encoding="utf-8")


def _copy_plugins(snapshot: Snapshot) -> None:
    """Copy the plug-ins beside memlab, and the files of all further configuration folders below ``more_conf``."""
    for plugin in plugins.active():
        goal = snapshot.source / plugin.place.name
        if plugin.place.is_file():
            shutil.copy2(plugin.place, goal)
        else:
            shutil.copytree(plugin.place, goal, ignore=shutil.ignore_patterns("__pycache__"))
    for name, choice in choices.more_choices().items():
        if choice.settings is None:  # a file, which holds its entries
            goal = snapshot.source / "more_conf" / f"{name}.yaml"
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(choice.path, goal)


def _write_arms(snapshot: Snapshot, arms: Sequence[Arm], metadata: dict[str, Any]) -> None:
    for folder in (snapshot.folder / "arms", snapshot.logs):
        folder.mkdir()
    for number, arm in enumerate(arms):
        (snapshot.folder / "arms" / f"{number}.yaml").write_text(arm.config, encoding="utf-8")
    about = [{"name": arm.name, "experiment": arm.experiment, "data": arm.dataset.name, "folder": str(arm.folder()),
              "overrides": list(arm.overrides), "command": arm.command} for arm in arms]
    write_json(snapshot.folder / "sweep.json", {**metadata, "arms": about, "jobs": []})


def sweeps(out: Path) -> Iterator[Snapshot]:
    """Yield the sweeps that were submitted below a root of runs, newest first."""
    for path in sorted((out / SWEEPS).glob("*/sweep.json"), reverse=True):
        yield Snapshot(path.parent)
