"""Publishing to a server, with the official client on both ends of a small one on the loopback device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.experiment.track.wandb import PATIENCE, WandbTrack, run_id
from tests.experiment.track.loopback import KEY
from tests.sealing import seal

pytestmark = pytest.mark.slow

wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install -e .")


def test_a_run_logs_what_it_made_and_names_what_it_used(gap: Path, server: Any) -> None:
    model = {"is": "SentenceEmbedder", "weights": "78ab"}
    (gap / "answers.jsonl").write_text('{"question": 0, "sample": 0, "hypothesis": "a cello"}\n')
    seal(gap, pipeline={"dense": {"is": "memlab.Dense", "embedder": model}, "tokens": {"tokens": "w"}})
    assert WandbTrack(mode="online", entity="team", texts=True).publish(gap) is not None
    by_id = {a["id"]: a for a in server.artifacts.values()}
    used = {by_id[one]["artifactCollectionName"]: by_id[one] for one in server.used[run_id(gap)]}
    assert {a["artifactTypeName"] for a in used.values()} == {"dataset", "model"}
    assert json.loads(used["data-synthetic"]["metadata"])["data"] == {"name": "synthetic", "seed": 0}
    (ranking,), (answers,) = server.sent("ranking"), server.sent("answers")
    assert ranking["runName"] == answers["runName"] == run_id(gap)
    assert json.loads(ranking["metadata"])["used"].keys() == used.keys()
    assert server.files[ranking["id"]]["ranking.parquet"] == (gap / "ranking.parquet").read_bytes()
    assert pl.read_parquet(server.files[ranking["id"]]["questions.parquet"]).height == 12
    assert set(server.files[answers["id"]]) == {"answers.jsonl", "wandb_manifest.json"}


def test_a_failed_arm_is_published_as_failed_and_finished_under_the_same_id_later(
        runs: Path, gap: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "open-sesame-9")
    aside = gap.rename(runs.parent / "aside")
    failure = gap.with_name(f"{gap.name}.failed.txt")
    failure.write_text('Traceback:\n  File "x.py"\nRuntimeError: refused key open-sesame-9\n')
    track = WandbTrack(mode="online", entity="team", texts=True)
    assert track.publish(gap) is not None
    assert track.publish(gap) is not None  # the second time nothing is sent
    assert len(server.named("RunResumeStatus")) == 1
    run = wandb.Api().run(f"team/memlab/{run_id(gap)}")
    assert (run.state, run.tags[-1]) == ("failed", "failed")
    assert run.notes.endswith("RuntimeError: refused key ***")
    assert run.summary["failure"] == run.notes
    failure.unlink()
    aside.rename(gap)
    assert track.publish(gap) is not None
    again = wandb.Api(overrides={}).run(f"team/memlab/{run_id(gap)}")
    again.load(force=True)
    assert (again.state, again.tags) == ("finished", ["adaptive_k", "synthetic"])
    assert "refused" not in again.notes
    assert len(server.runs) == 1
    assert sorted(p.name for p in runs.glob("*.json")) == []  # the marker of the failure went with it


def test_a_server_that_refuses_several_arms_is_asked_for_no_more(runs: Path, server: Any) -> None:
    server.broken = "UpsertBucket"
    track = WandbTrack(mode="online", entity="team")
    for n, folder in enumerate([*runs.iterdir(), next(runs.iterdir())]):
        with pytest.warns(UserWarning, match="was not published" if n < PATIENCE else "not tried"):
            assert track.publish(folder) is None
    other = folder.rename(runs / "another-00")  # the client keeps the id of a refused run for its process
    assert WandbTrack().publish(other) is not None  # offline needs no server


def test_no_key_and_no_text_beyond_the_run_folder_is_stored_or_sent(gap: Path, server: Any, tmp_path: Path) -> None:
    assert WandbTrack(mode="online", entity="team").publish(gap) is not None
    stored = [p for root in (tmp_path / "runs", tmp_path / "cache", tmp_path / "data") for p in root.rglob("*")]
    assert not [p for p in stored if p.is_file() and KEY.encode() in p.read_bytes()]
    assert KEY not in json.dumps(server.calls)
    assert not [name for name in server.files[run_id(gap)] if "metadata" in name or "requirements" in name]
