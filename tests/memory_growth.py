"""Reading of a file in a process of its own: its outcome, its seconds, and how far its memory grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SECONDS = 10.0
"""Longest time of the processor for any file: a busy machine is no failure."""

WAIT = 90.0
"""Seconds of the clock after which a reader counts as hung; its imports are among them."""

MOST_MB = 1000
"""Largest growth over the process that has imported everything, for a file of less than 10 MB."""

_PROGRAM = """
import sys, time
from pathlib import Path
from memlab.errors import MemlabError
{imports}
path = Path(sys.argv[1])
def peak():  # of this program alone: ru_maxrss begins with what the process was before
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
before, start = peak(), time.process_time()
try:
    {read}
    print("read")
except MemlabError as error:
    print(error)
print(peak() - before, time.process_time() - start)
"""


def outcome(imports: str, read: str, path: Path) -> str:
    """Read ``path`` by the statement ``read``; return "read" or the message of its MemlabError.

    Raises AssertionError where the memory grows by more than ``MOST_MB``, or it takes more than ``SECONDS``.
    """
    message, grown, seconds = measured(imports, read, path)
    assert grown < MOST_MB, f"{grown:.0f} MB"
    assert seconds < SECONDS, f"{seconds:.0f} s"
    return message


def measured(imports: str, read: str, path: Path) -> tuple[str, float, float]:
    """Read ``path`` as ``outcome`` does; return its outcome, the growth of the memory in MB, and processor seconds."""
    program = _PROGRAM.format(imports=imports, read=read)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True,
                          timeout=WAIT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *message, figures = done.stdout.strip().splitlines()
    grown, seconds = map(float, figures.split())
    return "\n".join(message), grown, seconds
