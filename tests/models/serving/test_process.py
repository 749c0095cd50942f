from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from memlab.models.serving import process


def test_lines_of_a_log_lose_their_prefixes_and_what_steers_a_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"(APIServer pid=24846) INFO 11-22 02:21:31 [launcher.py:195] Route: /ping\n\n"
                    b"Loading:   0%\rLoading: 100%\n\x1b[31mred \xff\n")
    assert process.tail(log) == ["Route: /ping", "Loading: 100%", "\\x1b[31mred �"]
    assert process.tail(tmp_path / "absent") == []


@pytest.mark.parametrize(("line", "what"), [
    ("ValueError: No available memory for the cache blocks. Try increasing", "there is not enough memory"),
    ("ValueError: To serve at least one request with the model's max seq len (131072), 16.0 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (2.0 GiB).", "the attention cache does not hold one full"),
    ("  Value error, User-specified max_model_len (9000) is greater than the derived max_model_len (2048)",
     "more than the model's own window"),
    ("huggingface_hub.errors.GatedRepoError: 401 Client Error.", "this model is gated on the hub"),
    ("OSError: We couldn't connect to 'https://hub' to load the files", "the hub cannot be reached"),
    ("/env/bin/python: Error while finding module specification for 'vllm.x' (ModuleNotFoundError: No module named "
     "'vllm')", "vLLM is not in this environment"),
    ("ValueError: anything else", "ValueError: anything else")])
def test_why_a_server_ended(line: str, what: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(["(EngineCore pid=1) INFO 11-22 02:21:10 [core.py:133] beginning",
                              f"(EngineCore pid=1) ERROR 11-22 02:21:10 [core.py:133] {line}", *["  at a line"] * 30]))
    told = str(process.death(1, log))
    assert what in told
    assert "Fix: " in told
    assert "beginning" not in told


def test_the_first_cause_is_shown_not_the_last(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("RuntimeError: Engine core initialization failed. See root cause above.\n"
                   "KeyError: 'the cause'\n" + "x\n" * 20
                   + "RuntimeError: Engine core initialization failed. See root cause above.\n")
    assert "| KeyError: 'the cause'" in str(process.death(1, log))
    assert "memory ran out" in str(process.death(-signal.SIGKILL, log))


def test_the_family_ends_even_what_left_the_group_and_does_not_listen(tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); " \
               "time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {stubborn!r}], " \
             "start_new_session=True).wait()"
    log = tmp_path / "log"
    leader = process.launch([sys.executable, "-c", parent], os.environ, log)
    end = time.monotonic() + 60
    while "up" not in process.tail(log):
        assert time.monotonic() < end
        time.sleep(0.02)
    family = [psutil.Process(leader.pid), *psutil.Process(leader.pid).children(recursive=True)]
    assert len(family) == 2
    process.end(leader.pid, grace=0.3)
    assert not any(one.is_running() for one in family)
    process.end(leader.pid, grace=0.3)  # nothing is left to end
