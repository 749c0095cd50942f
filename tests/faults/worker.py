"""A process that has imported everything, and forks one part of a scenario for each line of its input.

A line is ``{"scenario": NAME, "part": "prepare" | "act" | "check", "folder": DIR, "done": BOOL, "log": FILE}`` and is
answered with the child's process id; an ``act`` waits for a byte in the pipe ``gate`` before it works, so that a tracer
can be attached. ``{"wait": PID}`` is answered with an exit status: 0 done, 3 a MemlabError, 4 any other exception,
negative for a signal.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import memlab.report.build  # noqa: F401  (imported before the forks)
from memlab.support.errors import MemlabError
from tests.faults.scenarios import SCENARIOS

DONE, NAMED, UNEXPECTED = 0, 3, 4


def child(request: dict[str, Any]) -> None:
    """Do one part of a scenario in a forked process, which ends here."""
    scenario, folder = SCENARIOS[request["scenario"]], Path(request["folder"])
    status, text = DONE, ""
    try:
        if request["part"] == "prepare":
            scenario.prepare(folder)
        elif request["part"] == "check":
            scenario.check(folder, request["done"])
        else:
            with open(request["gate"], "rb") as gate:
                gate.read(1)
            scenario.act(folder)
    except MemlabError as error:
        status, text = NAMED, str(error)
    except BaseException:  # noqa: BLE001  (whatever it is, its status tells it)
        status, text = UNEXPECTED, traceback.format_exc()
    for _ in range(2):  # the first write of the log may be the call that fails
        try:
            Path(request["log"]).write_text(text)
            break
        except OSError:
            continue
    os._exit(status)


def answer(request: dict[str, Any]) -> int:
    """Start a part of a scenario, or wait for one."""
    if "wait" in request:
        return os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
    pid = os.fork()
    if pid == 0:
        child(request)
    return pid


if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        print(answer(json.loads(line)), flush=True)
