"""Status of an arm from its run folder, the states of its jobs and their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.experiment.cluster.schedule import Step
from memlab.experiment.cluster.slurm import LOST, JobState
from memlab.experiment.cluster.snapshot import Job, Snapshot
from memlab.experiment.cluster.status import ArmStatus, arm_statuses
from memlab.store import Store
from tests.experiment.cluster.test_snapshot import small_snapshot

PREPARE, ARMS = Job("1", Step("prepare", (0, 1))), Job("2_0", Step("arms", (0,)))


def status(snapshot: Snapshot, number: int = 0, **known: JobState) -> ArmStatus:
    return arm_statuses(snapshot, {name.removeprefix("j"): state for name, state in known.items()})[number]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    made = small_snapshot(tmp_path)
    made.add_jobs([PREPARE])
    made.add_jobs([ARMS], server="11")
    assert made.metadata()["server"] == "11"
    return made


def test_a_finished_folder_is_all_that_counts(snapshot: Snapshot, tmp_path: Path) -> None:
    snapshot.arm(0).run(Store(tmp_path / "store"))
    assert status(snapshot, j1=LOST, j2_0=JobState("NODE_FAIL")).state == "done"


def test_what_waits_says_for_what(snapshot: Snapshot) -> None:
    waiting = status(snapshot, j1=JobState("RUNNING", "n1"), j2_0=JobState("PENDING", reason="Dependency"))
    assert waiting == ArmStatus("fixed", "queued", "waits for the preparation, running on n1", "2_0")
    queued = status(snapshot, j1=JobState("COMPLETED"), j2_0=JobState("PENDING", reason="Resources"))
    assert queued.message == "queued (Resources)"


@pytest.mark.parametrize(("ended", "log", "state", "message"), [
    (JobState("RUNNING", "n2"), "submitit INFO (x) - Starting\nminilm: 40/80 texts, 20 texts/s, 2 s left\n", "running",
     "running on n2; minilm: 40/80 texts, 20 texts/s, 2 s left"),
    *((JobState(name), "slurmstepd: error: *** STEP 2.0 ***\nlast words\n", "failed", f"{message}; last words")
      for name, message in (("OUT_OF_MEMORY", "ran out of memory"), ("TIMEOUT", "ran out of time"),
                            ("CANCELLED", "cancelled"), ("NODE_FAIL", "its node died"))),
    (JobState("FAILED", "n1", "signal 9"), "StepId=2.0 exceeded memory limit (310 > 200), being killed\n", "failed",
     "ran out of memory; "),
    (JobState("COMPLETED"), "", "failed", "")])  # without a result it is no success
def test_a_job_is_shown_by_its_state_and_the_last_line_of_its_log(
        snapshot: Snapshot, ended: JobState, log: str, state: str, message: str) -> None:
    (snapshot.logs / "2_0_0_log.err").write_text(log)
    shown = status(snapshot, j1=JobState("COMPLETED"), j2_0=ended)
    assert shown.state == state
    assert shown.message.startswith(message)


def test_a_sharded_arm_is_under_way_until_its_merge_has_ended(tmp_path: Path) -> None:
    made = small_snapshot(tmp_path)
    made.add_jobs([Job("2_0", Step("shard", (0,), 0, 2)), Job("2_1", Step("shard", (0,), 1, 2)),
                 Job("3", Step("merge", (0,), 0, 2))])
    ended, waits = JobState("COMPLETED"), JobState("PENDING", reason="Dependency")
    assert status(made, j2_0=waits, j2_1=waits, j3=waits).state == "queued"
    assert status(made, j2_0=ended, j2_1=ended, j3=waits) == ArmStatus(
        "fixed", "running", "2 of 3 jobs ended, queued (Dependency)", "3")


def test_what_raised_shows_its_own_traceback(snapshot: Snapshot) -> None:
    arm = snapshot.arm(0)
    arm.arms_folder().mkdir(parents=True)
    failed_txt = arm.arms_folder() / f"{arm.folder().name}.failed.txt"
    failed_txt.write_text("Traceback\n  File x\nMemlabError: 2 faults:\n  * one\n  * two\n")
    failed = status(snapshot, j1=JobState("COMPLETED"), j2_0=JobState("FAILED", "n1", "exit status 1"))
    assert (failed.state, failed.message) == ("failed", "MemlabError: 2 faults:\n  * one\n  * two")


def test_what_slurm_forgot_is_lost(snapshot: Snapshot) -> None:
    assert status(snapshot, j1=LOST, j2_0=LOST).state == "lost"
    assert status(snapshot, 1, j1=JobState("COMPLETED"), j2_0=JobState("COMPLETED")) == ArmStatus(
        "gap", "lost", "no job was submitted for it")
