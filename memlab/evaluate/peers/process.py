"""The process of a peer, from outside: started without a network, asked with a time limit, and ended.

Where the system allows it (``unshare``), the process has a network of its own with nothing but the loopback address,
and a database that it starts in the background ends with it and is in its seconds of the processor.
Else its environment names proxies that lead nowhere, which most libraries respect.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from memlab.models.serving.process import end, tail
from memlab.support.text.display import safe_line

WORKER = Path(__file__).with_name("worker.py")
ALONE = ("--net", "--pid", "--fork", "--kill-child", "--mount-proc")
WAYS = (("unshare", *ALONE), ("unshare", "--map-root-user", *ALONE))
"""Words before a command that take its network away and end with it what it has started, the first for root."""

ALARM = re.compile(r"warn|error|exception|fail|denied|refused", re.IGNORECASE)
NUMBERS = re.compile(r"0x[0-9a-f]+|[0-9a-f-]{12,}|\d+")


class PeerFailure(Exception):
    """Why a peer has no figures, for its row."""


@cache
def isolation() -> tuple[str, ...]:
    """Return the words before a command that take its network away; empty if this system has none."""
    for way in WAYS:
        with suppress(OSError):
            if subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0:  # noqa: S603
                return way
    return ()


class PeerProcess:
    """A running peer.

    Args:
        place: Its folder, in which it finds a home and writes its log.
        variables: What it declares for its environment.
        limit: Seconds within which it must answer each request.
        python: Interpreter of its environment.
        words: Its adapter, and the socket of memlab's models.
    """

    def __init__(self, place: Path, variables: Mapping[str, str], limit: float, python: str, *words: str) -> None:
        self._log, self._limit = place / "log.txt", limit
        proxies = () if isolation() else ("http_proxy", "https_proxy", "all_proxy")
        environment = {
            **dict.fromkeys(proxies, "http://127.0.0.1:9"),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost"), "HOME": str(place), "TMPDIR": str(place),
            "PATH": f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}", "LC_ALL": "C.UTF-8",
            "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            "OPENAI_API_KEY": "none", **variables}
        with self._log.open("wb") as log:
            self._process: Any = subprocess.Popen(  # noqa: S603
                [*isolation(), python, "-I", str(WORKER), *words], env=environment, cwd=place, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True)

    def ask(self, do: str, *given: Any) -> Any:
        """Return the answer to a request; raise PeerFailure if the peer raises, dies or does not answer in time."""
        with suppress(OSError):  # of one that has died, as the answer tells
            self._process.stdin.write(json.dumps([do, *given]).encode() + b"\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], self._limit)[0]:
            raise PeerFailure(f"{do} gave no answer within {self._limit:g} seconds")
        if not (answer := self._process.stdout.readline()):
            last = tail(self._log)[-1:] or ["it said nothing"]
            raise PeerFailure(f"the process ended in {do} (status {self._process.wait()}): {safe_line(last[0], 200)}")
        reply = json.loads(answer)
        if "error" in reply:
            raise PeerFailure(f"{do} raised {safe_line(reply['error'], 400)}")
        return reply["value"]

    def processor_seconds(self) -> float:
        """Return the seconds of the processor that it and its descendants have used so far."""
        process = psutil.Process(self._process.pid)
        return sum(sum(one.cpu_times()[:4]) for one in (process, *process.children(recursive=True)))

    def warnings(self) -> list[str]:
        """Return the most frequent lines of its log that look like a warning or an error, with their number."""
        log = self._log.read_text(encoding="utf-8", errors="replace")
        counts = Counter(NUMBERS.sub("#", line.strip()) for line in log.splitlines() if ALARM.search(line))
        return [f"{safe_line(form, 160)} ({number:,} times)" for form, number in counts.most_common(5)]

    def close(self) -> None:
        """End it and all that it started."""
        with suppress(OSError), self._process:
            end(self._process.pid, grace=2.0)
