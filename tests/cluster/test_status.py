"""What is said of an arm, from its folder, its jobs' states and their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.cluster.schedule import Step
from memlab.cluster.slurm_states import LOST, State
from memlab.cluster.snapshot import Frozen, Job
from memlab.cluster.status import Look, looks
from memlab.store import Store
from tests.cluster.test_snapshot import freeze

PREPARE, ARMS = Job("1", Step("prepare", (0, 1))), Job("2_0", Step("arms", (0,)))


def look(frozen: Frozen, number: int = 0, **known: State) -> Look:
    return looks(frozen, {name.removeprefix("j"): state for name, state in known.items()})[number]


@pytest.fixture
def frozen(tmp_path: Path) -> Frozen:
    made = freeze(tmp_path)
    made.record([PREPARE, ARMS])
    return made


def says(frozen: Frozen, job: str, text: str) -> None:
    (frozen.logs / f"{job}_0_log.err").write_text(text)


def test_a_finished_folder_is_all_that_counts(frozen: Frozen, tmp_path: Path) -> None:
    frozen.arm(0).run(Store(tmp_path / "store"))
    assert look(frozen, j1=LOST, j2_0=State("NODE_FAIL")).state == "done"


def test_what_waits_says_for_what(frozen: Frozen) -> None:
    waiting = look(frozen, j1=State("RUNNING", "n1"), j2_0=State("PENDING", why="Dependency"))
    assert waiting == Look("fixed", "queued", "waits for the preparation, running on n1", "2_0")
    assert look(frozen, j1=State("COMPLETED"), j2_0=State("PENDING", why="Resources")).told == "queued (Resources)"


def test_what_runs_says_where_and_its_last_line_of_progress(frozen: Frozen) -> None:
    says(frozen, "2_0", "submitit INFO (x) - Starting\nminilm: 40/80 texts, 20 texts/s, 2 s left\n")
    running = look(frozen, j1=State("COMPLETED"), j2_0=State("RUNNING", "n2"))
    assert running == Look("fixed", "running", "running on n2; minilm: 40/80 texts, 20 texts/s, 2 s left", "2_0")


def test_a_sharded_arm_is_under_way_until_its_merge_has_ended(tmp_path: Path) -> None:
    made = freeze(tmp_path)
    made.record([Job("2_0", Step("shard", (0,), 0, 2)), Job("2_1", Step("shard", (0,), 1, 2)),
                 Job("3", Step("merge", (0,), 0, 2))])
    ended, waits = State("COMPLETED"), State("PENDING", why="Dependency")
    assert look(made, j2_0=waits, j2_1=waits, j3=waits).state == "queued"
    assert look(made, j2_0=ended, j2_1=ended, j3=waits) == Look(
        "fixed", "running", "2 of 3 jobs ended, queued (Dependency)", "3")


def test_what_raised_shows_its_own_traceback(frozen: Frozen) -> None:
    arm = frozen.arm(0)
    arm.arms_folder().mkdir(parents=True)
    failed_txt = arm.arms_folder() / f"{arm.folder().name}.failed.txt"
    failed_txt.write_text("Traceback\n  File x\nMemlabError: 2 faults:\n  * one\n  * two\n")
    failed = look(frozen, j1=State("COMPLETED"), j2_0=State("FAILED", "n1", "exit status 1"))
    assert (failed.state, failed.told) == ("failed", "MemlabError: 2 faults:\n  * one\n  * two")


@pytest.mark.parametrize(("word", "told"), [("OUT_OF_MEMORY", "ran out of memory"), ("TIMEOUT", "ran out of time"),
                                            ("CANCELLED", "cancelled"), ("NODE_FAIL", "its node died")])
def test_what_died_is_shown_as_what_it_is(frozen: Frozen, word: str, told: str) -> None:
    says(frozen, "2_0", "slurmstepd: error: *** STEP 2.0 ***\nlast words\n")
    died = look(frozen, j1=State("COMPLETED"), j2_0=State(word))
    assert (died.state, died.told) == ("failed", f"{told}; last words")


def test_a_job_killed_by_sampling_ran_out_of_memory(frozen: Frozen) -> None:
    says(frozen, "2_0", "slurmstepd: error: StepId=2.0 exceeded memory limit (310 > 200), being killed\n")
    died = look(frozen, j1=State("COMPLETED"), j2_0=State("FAILED", "n1", "signal 9"))
    assert died.told.startswith("ran out of memory;")


def test_what_slurm_forgot_is_lost(frozen: Frozen) -> None:
    assert look(frozen, j1=LOST, j2_0=LOST).state == "lost"
    assert look(frozen, 1, j1=State("COMPLETED"), j2_0=State("COMPLETED")) == Look(
        "gap", "lost", "no job was submitted for it")


def test_a_job_that_ended_well_without_a_result_is_no_success(frozen: Frozen) -> None:
    assert look(frozen, j1=State("COMPLETED"), j2_0=State("COMPLETED")).state == "failed"


def test_shards_are_counted(frozen: Frozen) -> None:
    parts = [Job(f"3_{n}", Step("shard", (1,), n, 3)) for n in range(3)]
    frozen.record([*parts, Job("4", Step("merge", (1,), 0, 3))])
    running = look(frozen, 1, j1=State("COMPLETED"), j2_0=State("COMPLETED"), j3_0=State("COMPLETED"),
                   j3_1=State("RUNNING", "n1"), j3_2=State("PENDING"), j4=State("PENDING"))
    assert running == Look("gap", "running", "1 of 4 jobs ended, running on n1", "3_1")
