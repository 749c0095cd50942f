"""Faults inside the jobs of a test: Python imports this as it starts, where PYTHONPATH names this folder.

A file ``arms-2`` in the folder that FAULTS names strikes task 2 of the arms' job array as it is about to write its
results; ``prepare-0`` strikes the preparation between its texts, which are stored by then, and its questions. What is
written in the file happens: ``exit``, ``grow``, or ``wait`` until the file is gone. ``arms-2.0`` then says that the
first start came there, ``arms-2.1`` the second. Vectors that are stored are listed in ``stored``.
"""

import os
import sys
import time
from pathlib import Path

MOMENTS = {"arms": "os.mkdir", "prepare": "os.listdir"}
"""What Python tells its audit hooks as a job comes there."""


def strike(name: str, start: object, faults: Path) -> None:
    """Do what is asked of this job, if anything."""
    asked = faults / name
    try:
        what = asked.read_text()
    except FileNotFoundError:
        return
    (faults / f"{name}.{start}").touch()
    if what == "exit":
        os._exit(3)
    if what == "grow":
        held = bytearray(700_000_000)
        time.sleep(20)  # SLURM looks every second where the kernel does not
        del held
    end = time.monotonic() + 900  # nothing is left behind by a test that failed
    while asked.exists() and time.monotonic() < end:
        time.sleep(0.05)


def watch(faults: Path) -> None:
    """Strike at the moments that this module describes."""
    does, start = os.environ["SLURM_JOB_NAME"].split()[-1], int(os.environ.get("SLURM_RESTART_COUNT", 0))
    name = f"{does}-{os.environ.get('SLURM_ARRAY_TASK_ID', 0)}"
    stored: list[str] = []
    struck: list[str] = []

    def hook(event: str, told: tuple) -> None:
        if event == "os.rename" and "/vectors/" in str(told[1]) and str(told[1]).endswith(".segment"):
            stored.append(str(told[1]))
            with (faults / "stored").open("a") as out:
                out.write(f"{name}.{start} {told[1]}\n")
        if struck or event != MOMENTS.get(does):
            return
        place = str(told[0])
        if {"arms": "/runs/" in place and place.endswith(".tmp"), "prepare": "/vectors/" in place and stored}[does]:
            struck.append(event)
            strike(name, start, faults)

    sys.addaudithook(hook)


if "FAULTS" in os.environ and "SUBMITIT_EXECUTOR" in os.environ:
    watch(Path(os.environ["FAULTS"]))
