"""States of jobs, read from commands that print what the real ones printed on a testbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.experiment.cluster.slurm import DESCRIPTIONS, LOST, JobState, Unreachable, slurm_states


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put commands first in PATH: ``commands(squeue="text", sacct=None)``, None for one that fails."""
    def put(**outputs: str | None) -> None:
        for name, text in outputs.items():
            script = "#!/bin/sh\n" + ("exit 1\n" if text is None else f"cat <<'E'\n{text}\nE\n" if text else "exit 0\n")
            (tmp_path / name).write_text(script)
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    put(squeue="", sacct=None, scontrol=None)
    return put


def test_the_queue_is_asked_first(commands) -> None:
    commands(squeue="12|PENDING||Dependency\n13_0|RUNNING|n2|None", sacct="12|COMPLETED|n1|0:0")
    assert slurm_states(["12", "13_0"]) == {
        "12": JobState("PENDING", "", "Dependency"), "13_0": JobState("RUNNING", "n2")}


def test_the_accounting_tells_how_a_job_ended(commands) -> None:
    commands(sacct="12|COMPLETED|n1|0:0\n13_0|OUT_OF_MEMORY|n2|0:125\n13_1|CANCELLED by 0|None assigned|0:0\n"
                   "14|FAILED|n3|1:0\n15|NODE_FAIL|n3|0:0\n16|TIMEOUT|n1|0:15")
    known = slurm_states(["12", "13_0", "13_1", "14", "15", "16"])
    assert [state.name for state in known.values()] == [
        "COMPLETED", "OUT_OF_MEMORY", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT"]
    assert [str(state) for state in known.values()] == [
        "ended", "ran out of memory (signal 125)", "cancelled", "failed (exit status 1)", "its node died",
        "ran out of time (signal 15)"]
    assert not any(state.live for state in known.values())


def test_a_step_that_ran_out_of_memory_says_why_its_job_failed(commands) -> None:
    commands(sacct="12|FAILED|n1|1:0\n12.batch|FAILED|n1|1:0\n12.0|OUT_OF_MEMORY|n1|0:125\n13|FAILED|n1|1:0\n"
                   "13.0|FAILED|n1|1:0")
    assert slurm_states(["12", "13"]) == {
        "12": JobState("OUT_OF_MEMORY", "n1"), "13": JobState("FAILED", "n1", "exit status 1")}


def test_what_nobody_remembers_is_lost(commands) -> None:
    assert slurm_states(["12"]) == {"12": LOST}
    assert str(LOST) == "unknown to SLURM"


def test_a_controller_that_does_not_answer_is_no_lost_job(commands) -> None:
    commands(squeue=None)
    with pytest.raises(Unreachable):
        slurm_states(["12"])


def test_every_state_has_a_description() -> None:
    assert all(str(JobState(name)) == text for name, text in DESCRIPTIONS.items())
    assert str(JobState("REVOKED")) == "revoked"  # SLURM's own, where there is no other
