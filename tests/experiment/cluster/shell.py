"""``memlab.run`` in a process of its own that waits for a sweep, with faults for its jobs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from memlab.commands.status import main as status
from memlab.experiment.cluster.snapshot import Job, Snapshot, sweeps
from memlab.experiment.cluster.status import ArmStatus, arm_statuses
from memlab.support.foreign import read_json
from tests.experiment.cluster.bed import command_line, wait_until
from tests.experiment.cluster.test_on_slurm import SLURM
from tests.small import with_words

INJECT = Path(__file__).parent / "inject"


@dataclass
class Shell:
    """``memlab.run`` on tiny lives in a shell of its own, with faults for its jobs in ``root/faults``."""

    root: Path
    words: tuple[str, ...]
    running: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        (self.root / "faults").mkdir(parents=True, exist_ok=True)

    def start(self, name: str = "log") -> Shell:
        """Start it; what it prints goes to a file of this name."""
        self.log = self.root / name
        paths = [str(INJECT), os.environ.get("PYTHONPATH", "")]
        with self.log.open("wb") as out:
            self.running = subprocess.Popen(
                command_line("run", *with_words(self.words, *SLURM), root=self.root), cwd=self.root, stdout=out,
                stderr=out, env={**os.environ, "OMP_NUM_THREADS": "1", "FAULTS": str(self.root / "faults"),
                     "PYTHONPATH": os.pathsep.join(filter(None, paths))})
        return self

    def ended(self, seconds: float = 900) -> int:
        """Wait for its end; return its exit status."""
        assert self.running is not None
        return self.running.wait(seconds)

    @property
    def output(self) -> str:
        return self.log.read_text()

    def fault(self, name: str, what: str) -> None:
        """Set a fault (tests/experiment/cluster/inject/sitecustomize.py)."""
        (self.root / "faults" / name).write_text(what)

    def remove_faults(self, *names: str) -> None:
        """Remove faults; jobs that wait continue."""
        for name in names:
            (self.root / "faults" / name).unlink()

    def reached(self, *names: str) -> None:
        """Wait until jobs have reached their faults, such as ``arms-0.1``: the second start of task 0."""
        wait_until(lambda: self.exited() or all((self.root / "faults" / name).exists() for name in names), 600,
                   f"a job at {names}; {self.output}")
        assert not self.exited(), self.output

    def exited(self) -> bool:
        assert self.running is not None
        return self.running.poll() is not None

    def sweep(self) -> Snapshot:
        return next(sweeps(self.root / "runs"))

    def jobs(self, task: str) -> list[Job]:
        """Return the jobs of this task in the newest sweep."""
        return [job for job in self.sweep().jobs() if job.step.task == task]

    def arms(self) -> dict[str, ArmStatus]:
        return {status.arm: status for status in arm_statuses(self.sweep())}

    def manifests(self) -> dict[str, dict]:
        return {arm["name"]: read_json(Path(arm["folder"]) / "manifest.json") for arm in self.sweep().metadata()["arms"]
                if (Path(arm["folder"]) / "manifest.json").is_file()}

    def status(self) -> int:
        return status(["--out", str(self.root / "runs")])
