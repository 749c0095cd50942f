from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.experiment.harness.results import read_arm
from memlab.experiment.harness.sweep import read
from memlab.experiment.track import wandb
from memlab.experiment.track.record import MARKER, NoTracking
from memlab.experiment.track.wandb import WandbTrack, run_id
from tests.data.test_custom import QUESTIONS, SESSIONS, folder
from tests.sealing import seal

pytest.importorskip("wandb", reason="wandb is not installed: pip install -e .")


def inspected(where: str, *flags: str) -> str:
    """What W&B's own reader finds in an offline run."""
    (file,) = Path(where).glob("*.wandb")
    tool = shutil.which("wandb", path=Path(sys.executable).parent) or "wandb"
    done = subprocess.run([tool, "leet", "inspect", *flags, "--json", str(file)], capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_published_arm_reads_back_with_its_metrics_config_group_tags_and_tables(runs: Path, gap: Path) -> None:
    where = WandbTrack(tags=("trial",)).publish(gap)
    assert where is not None
    assert Path(where).parent == runs.parents[1] / "wandb"
    found = json.loads(inspected(where, "--summary"))
    for name, value in json.loads((gap / "metrics.json").read_text()).items():
        assert found["summary"][name] == pytest.approx(value), name
    assert found["config"]["rank"]["select"]["_target_"] == "memlab.stages.rank.select.gap"
    assert found["config"]["manifest"]["versions"]["torch"] == "2.13.0"
    assert (found["run_id"], found["name"], found["state"]) == (run_id(gap), "gap", "finished")
    assert found["tags"] == ["trial", "adaptive_k", "synthetic"]
    records = [json.loads(line) for line in inspected(where).splitlines()]
    assert next(r["run"] for r in records if r["type"] == "run")["run_group"] == "adaptive_k"
    tables = {p.name.split("_table_")[0].split("_0_")[0] for p in Path(where).rglob("*.table.json")}
    assert tables == {"per question", "by type", "recall over k"}


def test_an_arm_already_published_is_not_read_or_published_again_until_it_is_run_again(
        runs: Path, gap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = WandbTrack().publish(gap)
    with monkeypatch.context() as patch:
        patch.setattr(wandb, "read_arm", lambda _: pytest.fail("it was read"))
        assert WandbTrack().publish(gap) == first
    assert len(list((runs.parents[1] / "wandb").glob("offline-run-*"))) == 1
    seal(gap, finished="2026-12-01T00:00:00")
    assert WandbTrack().publish(gap) is not None
    marker = json.loads((gap / MARKER).read_text())
    assert marker["id"] == run_id(gap)  # the same run, not a second one


def test_a_failure_is_a_warning_and_leaves_no_marker(gap: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.warns(UserWarning, match="was not published to W&B.*its run folder is complete"):
        assert WandbTrack(dir=blocked / "sub").publish(gap) is None
    assert not (gap / MARKER).exists()
    with pytest.warns(UserWarning, match=r"manifest\.json"):
        assert WandbTrack().publish(tmp_path / "nowhere") is None


def test_texts_are_left_out_unless_asked_for(gap: Path) -> None:
    texts = read_arm(gap).questions["text"].to_list()
    where = WandbTrack().publish(gap)
    assert where is not None
    (without,) = Path(where).rglob("per question*.table.json")
    assert not any(text[:30] in without.read_text() for text in texts)
    (gap / MARKER).unlink()
    where = WandbTrack(texts=True).publish(gap)
    assert where is not None
    (with_texts,) = Path(where).rglob("per question*.table.json")
    assert texts[0][:30] in with_texts.read_text()


def test_own_data_are_not_tracked_unless_asked(tmp_path: Path) -> None:
    folder(tmp_path, SESSIONS, QUESTIONS)
    own = ["data=custom", f"data.path={tmp_path}"]
    assert read(own).track == NoTracking()
    assert "track.record.NoTracking" in read(own).arms[0].config  # as jobs read it
    assert read([*own, "track=wandb"]).track == WandbTrack()
    assert read([]).track == WandbTrack()
    assert "nothing is written" in NoTracking().describe()
    assert "without texts" in WandbTrack().describe()
