"""Faults on a real SLURM: the status of each arm is right, and no finished work is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memlab.experiment.cluster.snapshot import sweeps
from memlab.experiment.harness.sweep import read
from memlab.run import main
from memlab.store.segment import count
from tests.experiment.cluster.bed import Bed, wait_until
from tests.experiment.cluster.shell import Shell
from tests.experiment.cluster.test_on_slurm import figures, stored
from tests.small import on_lives, words

pytestmark = pytest.mark.nightly

LEXICAL = "search/dense=none"


def undisturbed(root: Path, *asked: str) -> dict:
    """Return the figures of the same arguments on one machine."""
    assert main(on_lives(root, *asked)) == 0
    return figures(root, "single")


def test_arms_that_die_are_shown_as_what_they_died_of_and_the_same_line_does_only_them(
        testbed: Bed, tmp_path: Path) -> None:
    asked = ("-m", "rank.select.k=1,2,3,4,5,6", LEXICAL)
    shell = Shell(tmp_path, (*asked, "hydra.launcher.mem_gb=0.5", "hydra.launcher.max_num_timeout=0"))
    in_the_way = read(words(tmp_path, *asked[1:]), multirun=True).arms[0].folder()
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file where the run folder should be")
    for name, what in {"arms-1": "exit", "arms-2": "grow", "arms-3": "wait", "arms-4": "wait"}.items():
        shell.fault(name, what)
    shell.start().reached("arms-3.0", "arms-4.0")
    _, _, _, cancelled, timed, _ = shell.jobs("arms")
    testbed.ask("scancel", cancelled.id)
    testbed.ask("scancel", "--signal=USR2", timed.id)  # what SLURM says ahead of the time limit
    assert shell.ended() == 1, shell.output

    arms = shell.arms()
    assert {name: arm.state for name, arm in arms.items()} == {
        "k=1": "failed", "k=2": "failed", "k=3": "failed", "k=4": "failed", "k=5": "failed", "k=6": "done"}
    assert "a file is there, where a folder is needed" in arms["k=1"].message
    assert arms["k=2"].message.startswith("failed (exit status 3)")
    assert arms["k=3"].message.startswith("ran out of memory")
    assert arms["k=4"].message.startswith("cancelled")
    assert "timed-out too many times" in arms["k=5"].message
    assert shell.status() == 1
    comparison = figures(tmp_path, "single")
    assert list(comparison["arms"]) == ["k=6"]
    assert comparison["missing"] == ["k=1", "k=2", "k=3", "k=4", "k=5"]

    before = shell.manifests()["k=6"]
    in_the_way.unlink()
    shell.remove_faults("arms-1", "arms-2", "arms-3", "arms-4")
    shell.start()
    again = wait_until(lambda: len(list(sweeps(tmp_path / "runs"))) == 2 and shell.jobs("arms"),
                       what="the second sweep")
    assert not list(in_the_way.parent.glob("*.failed.txt"))  # the status must show how an arm ends now
    assert shell.ended() == 0, shell.output
    assert [job.step.arms for job in again] == [(0,), (1,), (2,), (3,), (4,)]
    assert shell.manifests()["k=6"] == before
    assert shell.status() == 0
    assert figures(tmp_path, "single") == undisturbed(tmp_path / "here", *asked)


def test_jobs_that_run_out_of_time_are_preempted_or_lose_their_node_go_on_from_the_store(
        testbed: Bed, tmp_path: Path) -> None:
    asked = ("-m", "rank.select.k=5,6")
    shell = Shell(tmp_path, (*asked, "hydra.launcher.partition=spare", "hydra.launcher.cpus_per_task=4"))  # a node each
    for name in ("prepare-0", "arms-0", "arms-1"):
        shell.fault(name, "wait")
    shell.start().reached("prepare-0.0")
    first = stored(tmp_path).height
    (prepare,) = shell.jobs("prepare")
    testbed.ask("scancel", "--signal=USR2", prepare.id)  # what SLURM says ahead of the time limit
    wait_until(lambda: testbed.job(prepare.id)["Restarts"] == "1", what="the preparation queued again")
    shell.remove_faults("prepare-0")

    shell.reached("arms-0.0", "arms-1.0")
    assert shell.status() == 3
    yields, dies = (job.id for job in shell.jobs("arms"))
    node, dead = (testbed.job(job)["NodeList"] for job in (yields, dies))
    testbed.do("node", dead, "off")
    testbed.submit("true", f"--nodelist={node}", "--exclusive", log=tmp_path / "high")
    wait_until(lambda: {testbed.job(job)["Restarts"] for job in (yields, dies)} == {"1"}, 600,
               "both arms queued again")  # an arm that may go on before SLURM stops it can end first
    shell.remove_faults("arms-0", "arms-1")
    assert shell.ended() == 0, shell.output

    assert {arm.state for arm in shell.arms().values()} == {"done"}
    assert testbed.accounted(prepare.id) == ["REQUEUED", "COMPLETED"]
    assert testbed.accounted(yields) == ["PREEMPTED", "COMPLETED"]
    assert testbed.accounted(dies) == ["NODE_FAIL", "COMPLETED"]
    expected = undisturbed(tmp_path / "here", *asked)
    assert figures(tmp_path, "single") == expected

    starts: Counter[str] = Counter()
    for line in (tmp_path / "faults" / "stored").read_text().splitlines():
        start, _, path = line.partition(" ")
        starts[start] += count(Path(path))
    total = stored(tmp_path / "here").height
    assert 0 < first < total
    assert starts == {"prepare-0.0": first, "prepare-0.1": total - first}  # each text once, whoever was stopped
    assert all(manifest["made"].get("vectors", 0) == 0 for manifest in shell.manifests().values())


def test_what_was_submitted_runs_though_the_controller_is_killed(testbed: Bed, tmp_path: Path) -> None:
    asked = ("-m", "rank.select.k=3,4", LEXICAL)
    busy = [testbed.submit("sleep 3600", f"--nodelist={node}", "--exclusive", log=tmp_path / node)
            for node in testbed.nodes()]
    wait_until(lambda: {testbed.state(job) for job in busy} == {"RUNNING"})
    shell = Shell(tmp_path, asked).start()
    wait_until(lambda: shell.exited() or "2 queued" in shell.output, 300, "submitted jobs")
    saved = testbed.folder / "state" / "job_state"  # a killed controller knows only what it had saved
    since = saved.stat().st_mtime_ns
    wait_until(lambda: saved.stat().st_mtime_ns > since, 300, "a saved queue")
    testbed.do("controller", "off")
    waiting = "squeue does not answer; waiting"
    wait_until(lambda: shell.exited() or waiting in shell.output, 600, "a shell that waits")
    testbed.do("controller", "on")
    wait_until(lambda: testbed.accepts("scancel", *busy))
    assert shell.ended() == 0, shell.output
    assert figures(tmp_path, "single") == undisturbed(tmp_path / "here", *asked)
