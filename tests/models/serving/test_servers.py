from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from memlab.models.serving import servers
from memlab.models.serving.servers import (
    Address,
    address_of,
    node_name,
    own_address,
    reachable_servers,
    running_servers,
)
from memlab.support.errors import MemlabError
from tests.models.chatserver import publish, serving


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that come before SLURM's own, if there is one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def command(folder: Path, name: str, prints: str, status: int = 0) -> None:
    (folder / name).write_text(f"#!/bin/sh\ncat <<'E'\n{prints}\nE\nexit {status}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(("host", "address"), [
    (None, Address()), ("127.0.0.1", Address()), ("0.0.0.0", Address("0.0.0.0", "10.0.0.3", shared=True)),
    ("node", Address("10.0.0.3", "10.0.0.3", shared=True)),
    ("192.0.2.7", Address("192.0.2.7", "192.0.2.7", shared=True))])
def test_where_a_server_listens(host: str | None, address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "own_address", lambda: "10.0.0.3")
    assert address_of(host) == address


def test_an_unknown_address_is_told() -> None:
    with pytest.raises(MemlabError, match="the address nowhere.invalid is unknown here .*--host node"):
        address_of("nowhere.invalid")


def test_in_a_job_the_address_is_slurms(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(slurm, "scontrol", "NodeName=n7 Arch=x86_64 NodeAddr=10.9.8.7 NodeHostName=vm")
    monkeypatch.setattr(servers, "_candidates", lambda called: iter([f"::1 {called}".split()[0], "10.0.0.4"]))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert own_address() == "10.0.0.4"  # outside of a job SLURM is not asked
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    assert own_address() == "10.9.8.7"
    command(slurm, "scontrol", "NodeName=n7 NodeAddr=n7.cluster NodeHostName=n7")
    assert own_address() == "10.0.0.4"  # what the name means here may be loopback: the first that is not
    command(slurm, "scontrol", "slurm_load_node error", status=1)
    assert own_address() == "10.0.0.4"


def test_a_node_without_an_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_candidates", lambda called: iter(["127.0.1.1"]))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(MemlabError, match="no address that other nodes reach.*--host ADDRESS"):
        own_address()


def test_this_node_is_called_as_slurm_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    assert node_name() == socket.gethostname()
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    assert publish("http://127.0.0.1:9/v1", host="n7.cluster").is_local
    assert not publish("http://127.0.0.1:9/v1", host="n70").is_local


def test_the_record_of_a_job_that_is_gone_is_removed_unless_its_server_answers(slurm: Path) -> None:
    command(slurm, "squeue", "7")
    with serving() as server:
        kept = [publish("http://127.0.0.1:9/v1", host="n7", shared=True, job="7"),
                publish("http://127.0.0.1:9/v1", host="n8", shared=True),  # no job's: nothing is known of it
                publish(server.url, host="n9", shared=True, job="8")]
        gone = publish("http://127.0.0.1:9/v1", host="n9", shared=True, job="8")
        assert {found.file for found in running_servers()} == {one.file for one in kept}
    assert not gone.file.exists()
    command(slurm, "squeue", "slurm_load_jobs error: Unable to contact slurm controller", status=1)
    assert len(running_servers()) == 3  # SLURM does not say


@pytest.mark.parametrize("changes", [{"url": "http://[/v1"}, {"url": "http://h:x/v1"}, {"url": 7}, {"name": 7},
                                     {"pidd": 1}])
def test_an_odd_record_is_named_and_asked_by_no_run(memlab_home: Path, changes: dict[str, object]) -> None:
    file = publish("http://127.0.0.1:8000/v1").file
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    assert reachable_servers() == []
    with pytest.raises(MemlabError, match="no record of a server"):
        running_servers()
