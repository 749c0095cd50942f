"""Requests to SLURM: the settings of a profile as sbatch gets them, and the arms that share a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console

from memlab.experiment.cluster.schedule import Step, levels, models_key
from memlab.experiment.cluster.slurm import Slurm
from memlab.experiment.cluster.snapshot import sweeps
from memlab.experiment.cluster.submit import submit
from memlab.experiment.config.instantiate import CONF
from memlab.experiment.harness.sweep import read
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.rank.select import Gap
from memlab.stages.search.dense import Dense
from memlab.support.errors import Faults, MemlabError
from tests.experiment.cluster.test_snapshot import arms, small_snapshot
from tests.experiment.config.files import faults_of
from tests.small import arm, lexical, words
from tests.stages.search.world import WordEmbedder

PROFILES = sorted(path.stem for path in (CONF / "hydra" / "launcher").glob("*.yaml"))


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_is_a_launcher_with_the_settings_of_its_class(profile: str, tmp_path: Path) -> None:
    launcher = read(words(tmp_path, f"hydra/launcher={profile}")).launcher
    assert type(launcher).__module__.startswith("memlab.experiment.cluster.")
    assert (profile == "local") == (not isinstance(launcher, Slurm))


@pytest.mark.slow
def test_a_misspelt_setting_is_reported_with_the_others_before_anything_is_submitted(tmp_path: Path) -> None:
    faults = faults_of(*words(tmp_path, "hydra/launcher=slurm", "+hydra.launcher.cpu_per_task=2", "rank.select.k=0"))
    assert any("did you mean 'cpus_per_task'?" in fault for fault in faults)
    assert any("rank.select.k" in fault for fault in faults)
    with pytest.raises(Faults, match="hydra.launcher has no setting 'mem'; did you mean 'mem_gb'?"):
        read(words(tmp_path, "hydra/launcher=slurm", "hydra.launcher.mem=3"))


def test_neither_a_launcher_nor_shards_change_an_arm(tmp_path: Path) -> None:
    plain, launched, parted = (read(words(tmp_path, *more)).arms[0] for more in (
        (), ("hydra/launcher=slurm_gpu",), ("shards=8",)))
    assert plain.folder() == launched.folder() == parted.folder()
    assert plain.config == launched.config


@pytest.mark.slow
def test_no_parts_and_arms_that_are_unfit_for_shards_are_reported(tmp_path: Path) -> None:
    with pytest.raises(Faults, match="shards: 0 parts"):
        read(words(tmp_path, "shards=0"))
    with pytest.raises(Faults, match="shards: score: CrossFitWeight learns from all questions"):
        read(words(tmp_path, "shards=2", "rank/score=cross_fit_weight"))


@pytest.mark.parametrize(("settings", "words"), [
    ({"timeout_min": 2}, "the job would end as it starts"),
    ({"options": ("nice=5",)}, "'nice=5' is no long option of sbatch")])
def test_settings_that_no_job_can_have_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Slurm(**settings)


def test_what_sbatch_gets(tmp_path: Path) -> None:
    snapshot = small_snapshot(tmp_path)
    profile = Slurm(partition="gpu", mem_gb=1.5, gpus_per_node=2, setup=("module load cuda",),
                    options=("--nice=5", "--exclusive"))
    parameters = profile._parameters(snapshot, [Step("arms", (0,))], ["afterany:7", "after:9"])
    assert parameters["partition"] == "gpu"
    assert parameters["mem"] == "1536MB"
    assert parameters["gpus_per_node"] == 2
    assert parameters["dependency"] == "afterany:7,after:9"
    assert parameters["setup"][0].startswith(f"export PYTHONPATH={snapshot.source}")
    assert "export OMP_NUM_THREADS=4" in parameters["setup"]  # as many as it asks for, whatever the shell has
    assert parameters["setup"][-1] == "module load cuda"
    assert parameters["additional_parameters"] == {"requeue": True, "nice": "5", "exclusive": True}
    report = Slurm(gpus_per_node=2)._parameters(snapshot, [Step("report")], [])
    assert "gpus_per_node" not in report  # a report needs none
    assert "dependency" not in report


def test_arms_of_the_same_models_share_jobs(tmp_path: Path) -> None:
    dense = Pipeline(dense=Dense(embedder=WordEmbedder()))
    arms = [arm(tmp_path, pipeline) for pipeline in (dense, lexical(), dense.replace(select=Gap()), lexical())]
    assert models_key(arms[0]) == models_key(arms[2]) != models_key(arms[1])
    assert Slurm(arms_per_job=8).bundles(arms) == [[0, 2], [1, 3]]
    assert Slurm().bundles(arms) == [[0], [2], [1], [3]]


def test_without_sbatch_the_fix_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MemlabError, match="login node"):
        Slurm().submit(small_snapshot(tmp_path), levels([[0], [1]], 2))


def test_accepted_jobs_are_cancelled_when_a_later_job_is_refused(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, text in (("sbatch", f'n=$(ls {tmp_path}/taken 2>/dev/null | wc -l)\n'
                                  f'[ "$n" = 1 ] && {{ echo "invalid partition" >&2; exit 1; }}\n'
                                  f'mkdir -p {tmp_path}/taken/$((n + 11))\necho "Submitted batch job $((n + 11))"'),
                       ("scancel", f'echo "$@" > {tmp_path}/cancelled'), ("srun", "exit 0")):
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    with pytest.raises(MemlabError, match="SLURM accepted no job.*invalid partition"):
        submit(Slurm(), arms(tmp_path), [], f"{tmp_path}/store", 1, Console())
    assert (tmp_path / "cancelled").read_text().split() == ["11"]
    assert not list(sweeps(tmp_path / "runs"))  # nothing of it runs, so that no status shows it
