"""Publish run folders to W&B after the fact, and send what was published offline.

``python -m memlab.track RUNS [--mode online]`` publishes every finished and failed arm under a folder, offline unless
told otherwise; ``python -m memlab.track sync [RUNS]`` sends to the server what was published offline, each arm once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from memlab.track.record import records
from memlab.track.sync import pending, sync, without_key
from memlab.track.wandb import WandbTrack


def main(argv: Sequence[str] | None = None) -> int:
    """Publish or sync; exit status 1 if an arm could not be, or if there is none."""
    words = list(sys.argv[1:] if argv is None else argv)
    return _sync(words[1:]) if words[:1] == ["sync"] else _publish(words)


def _publish(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m memlab.track", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="a folder with runs below it, such as runs/adaptive_k")
    parser.add_argument("--mode", choices=("offline", "online"), default="offline")
    parser.add_argument("--project", default="memlab")
    parser.add_argument("--entity")
    parser.add_argument("--tag", action="append", default=[], dest="tags")
    given = parser.parse_args(words)
    track = WandbTrack(mode=given.mode, project=given.project, entity=given.entity, tags=tuple(given.tags))
    found, failed = records(given.runs), 0
    for one in found:
        where = track.publish(one.folder)
        failed += where is None
        print(f"{one.folder}: {where or 'not published'}{' (the arm failed)' if one.failed else ''}", flush=True)
    if not found:
        print(f"no finished run under {given.runs} (a finished run has a manifest.json)")
    return 0 if found and not failed else 1


def _sync(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m memlab.track sync", description=sync.__doc__)
    parser.add_argument("runs", type=Path, nargs="?", default=Path("runs"), help="default: runs")
    parser.add_argument("--project", help="default: that of the offline run")
    parser.add_argument("--entity", help="default: that of the offline run, else your own account")
    given = parser.parse_args(words)
    if not given.runs.is_dir():
        print(f"memlab: there is no folder {given.runs}", file=sys.stderr)
        return 1
    found, start, sent = pending(given.runs), time.perf_counter(), 0
    if found and (missing := without_key()):
        print(f"memlab: {missing}", file=sys.stderr)
        return 1
    for one in sync(found, given.project, given.entity):
        sent += one.where is not None
        print(f"{one.folder}: {one.where or ('not sent' if one.tried else 'left, the server does not answer')}",
              flush=True)
    print(f"{sent} of {len(found)} offline runs sent in {time.perf_counter() - start:.1f} s" if found
          else f"nothing to send: no offline run under {given.runs} that is not on a server")
    return 0 if sent == len(found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
