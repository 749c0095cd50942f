"""Reading of a file in a process of its own: its outcome, its seconds, and how far its memory grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SECONDS = 10.0
"""Longest time for any file."""

MOST_MB = 1000
"""Largest growth over the process that has imported everything, for a file of less than 10 MB."""

_PROGRAM = """
import resource, sys, time
from pathlib import Path
from memlab.errors import MemlabError
{imports}
path = Path(sys.argv[1])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, start = peak(), time.monotonic()
try:
    {read}
    print("read")
except MemlabError as error:
    print(error)
print(peak() - before, time.monotonic() - start)
"""


def outcome(imports: str, read: str, path: Path) -> str:
    """Read ``path`` by the statement ``read``; return "read" or the message of its MemlabError.

    Raises AssertionError where the memory grows by more than ``MOST_MB`` or it takes more than ``SECONDS``.
    """
    program = _PROGRAM.format(imports=imports, read=read)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True,
                          timeout=SECONDS + 30, check=False)  # 30 s: the imports
    assert done.returncode == 0, done.stderr[-2000:]
    *message, measured = done.stdout.strip().splitlines()
    grown, seconds = map(float, measured.split())
    assert grown < MOST_MB, f"{grown:.0f} MB"
    assert seconds < SECONDS, f"{seconds:.0f} s"
    return "\n".join(message)
