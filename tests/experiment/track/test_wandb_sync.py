from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlab.commands.track import main
from memlab.experiment.track.record import MARKER
from memlab.experiment.track.wandb import PATIENCE, missing_key, pending_records, sync

pytestmark = pytest.mark.slow

wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install -e .")


def test_what_was_published_offline_is_sent_once_with_its_lineage(
        runs: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folders = sorted(runs.iterdir())
    (runs / "late-00.failed.txt").write_text("ValueError: no")
    assert main([str(runs), "--project", "memory"]) == 0
    assert not server.calls  # offline asks nobody
    assert main(["sync", str(runs), "--entity", "team"]) == 0
    assert "4 of 4 offline runs sent" in capsys.readouterr().out
    assert {run["state"] for run in server.runs.values()} == {"finished", "failed"}
    assert {(run["entity"], run["project"]) for run in server.runs.values()} == {("team", "memory")}
    for folder in folders:
        marker = json.loads((folder / MARKER).read_text())
        found = json.loads(server.runs[marker["id"]]["summaryMetrics"])
        for name, value in json.loads((folder / "metrics.json").read_text()).items():
            assert found[name] == value, name
        assert marker["mode"] == "online"
        assert server.used[marker["id"]]
    assert len(list((runs.parents[1] / "wandb").glob("*/*.wandb.synced"))) == 4
    before = len(server.calls)
    assert main(["sync", str(runs)]) == 0
    assert "nothing to send" in capsys.readouterr().out
    assert len(server.calls) == before


def test_a_sync_that_was_cut_off_goes_on_where_it_stopped(runs: Path, server: Any) -> None:
    assert main([str(runs)]) == 0
    assert next(sync(pending_records(runs)))[1] is not None
    assert len(pending_records(runs)) == 2
    assert main(["sync", str(runs)]) == 0
    assert len(server.runs) == len(server.named("RunResumeStatus")) == 3


def test_a_server_that_refuses_is_told_by_the_exit_status_and_asked_no_more(
        runs: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(runs)]) == 0
    (runs / "late-00.failed.txt").write_text("ValueError: no")
    assert main([str(runs)]) == 0
    server.broken = "UpsertBucket"
    with pytest.warns(UserWarning, match="was not published"):
        assert main(["sync", str(runs)]) == 1
    out = capsys.readouterr().out
    assert out.count("not sent") == PATIENCE
    assert "0 of 4 offline runs sent" in out
    server.broken = ""
    wandb.teardown()  # the client keeps a refused run's id for the rest of its process
    assert main(["sync", str(runs)]) == 0


def test_without_an_account_nothing_is_tried_and_the_way_to_one_is_named(
        runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert main([str(runs)]) == 0  # offline wants none
    capsys.readouterr()
    assert main(["sync", str(runs)]) == 1
    assert "Fix: wandb login" in capsys.readouterr().err
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password " + "k" * 40)
    assert missing_key() is None
