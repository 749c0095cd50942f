"""Model servers as jobs of a real SLURM, with a stand-in for vLLM: arms use one, and the report ends it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memlab.experiment.cluster.snapshot import sweeps
from memlab.support.foreign import read_json
from memlab.support.paths import PACKAGE
from tests.experiment.cluster.bed import Bed, memlab, wait_until
from tests.models.serving.fakes import fake_vllm_env, model_folder

pytestmark = pytest.mark.nightly

SMALL = ["--gres=none", "--mem=500M", "--cpus-per-task=1"]


def asked(folder: Path) -> dict[str, list[str]]:
    """Return the requests to each server, by its name."""
    return {file.name: [line for line in file.read_text().splitlines() if line] for file in folder.glob("*.jsonl")}


def test_arms_use_a_server_survive_the_loss_of_one_and_end_the_one_of_their_sweep(
        testbed: Bed, tmp_path: Path, memlab_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_vllm_env(memlab_home / "serving-env")
    model, heard = model_folder(tmp_path / "tiny"), tmp_path / "asked"
    heard.mkdir()
    monkeypatch.setenv("FAKE_VLLM_DELAY", "4")  # so that a request is under way
    monkeypatch.setenv("FAKE_VLLM_ASKED", str(heard))
    other = testbed.ask("sbatch", "--parsable", *SMALL, f"--output={tmp_path}/other.log",
                        str(PACKAGE.parent / "slurm" / "serve.sbatch"), str(model))
    with ThreadPoolExecutor() as pool:
        run = pool.submit(
            memlab, "run", "rank.select.k=3", "search/dense=none", "read/answer=reader", "judge=contains",
            "chat=server", "chat.model=tiny", "chat.url=auto", "chat.concurrency=2", "hydra/launcher=slurm",
            "hydra.launcher.cpus_per_task=1", f"hydra.launcher.serve={model}",
            f"hydra.launcher.serve_options={json.dumps(SMALL)}", root=tmp_path)
        wait_until(lambda: bool(asked(heard)) or run.done(), 600, "a server at work")
        testbed.ask("scancel", other)
        done = run.result()
    assert done.returncode == 0, done.stdout + done.stderr
    arm = Path(next(sweeps(tmp_path / "runs")).metadata()["arms"][0]["folder"])
    answers = [json.loads(line) for line in (arm / "answers.jsonl").read_text().splitlines()]
    assert len({one["question_id"] for one in answers}) == 16
    assert all(one["hypothesis"] for one in answers)
    assert read_json(arm / "manifest.json")["made"]["completions"] == 16
    wait_until(lambda: testbed.ask("squeue", "-h") == "", 300, "the end of the sweep's own server")
    assert not list((memlab_home / "serving").glob("*.json"))  # no address is left behind
