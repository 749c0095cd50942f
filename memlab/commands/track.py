"""Publish finished run folders to W&B, and send to the server what was published offline.

``memlab track RUNS [--mode online]`` publishes every finished and failed arm under a folder, offline by
default; ``memlab track sync [RUNS]`` sends to the server what was published offline, each arm once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from memlab.experiment.track.record import find_records
from memlab.experiment.track.wandb import WandbTrack, missing_key, pending_records, sync
from memlab.support.help_text import Parser
from memlab.support.paths import no_runs, path_argument
from memlab.support.terminal import clean_logs, print


def main(argv: Sequence[str] | None = None) -> int:
    """Publish or sync; exit status 1 if that fails for an arm, or if there is none."""
    clean_logs()
    words = list(sys.argv[1:] if argv is None else argv)
    return _sync(words[1:]) if words[:1] == ["sync"] else _publish(words)


def _publish(words: Sequence[str]) -> int:
    parser = Parser(prog="memlab track", description=__doc__)
    parser.add_argument("runs", type=path_argument, help="a folder with runs below it, such as runs/adaptive_k")
    parser.add_argument("--mode", choices=("offline", "online"), default="offline",
                        help="offline (default): files here, for memlab track sync; online: sent at once")
    parser.add_argument("--project", default="memlab", help="of W&B (default memlab)")
    parser.add_argument("--entity", help="your team; your own account unless given")
    parser.add_argument("--texts", action="store_true", help="questions, answers and names of sessions too")
    parser.add_argument("--tag", action="append", default=[], dest="tags", metavar="TAG",
                        help="beside experiment and data; may be given several times")
    options = parser.parse_args(words)
    track = WandbTrack(mode=options.mode, project=options.project, entity=options.entity, tags=tuple(options.tags),
                       texts=options.texts)
    records, failed = find_records(options.runs), 0
    for record in records:
        where = track.publish(record.folder)
        failed += where is None
        print(f"{record.folder}: {where or 'not published'}{' (the arm failed)' if record.failed else ''}", flush=True)
    if not records:
        print(f"memlab: {no_runs(options.runs)}", file=sys.stderr)
    return 0 if records and not failed else 1


def _sync(words: Sequence[str]) -> int:
    parser = Parser(prog="memlab track sync", description=sync.__doc__)
    parser.add_argument("runs", type=path_argument, nargs="?", default=Path("runs"), help="default: runs")
    parser.add_argument("--project", help="default: that of the offline run")
    parser.add_argument("--entity", help="default: that of the offline run, else your own account")
    options = parser.parse_args(words)
    if not options.runs.is_dir():
        print(f"memlab: {no_runs(options.runs)}", file=sys.stderr)
        return 1
    records, start, sent = pending_records(options.runs), time.perf_counter(), 0
    if records and (missing := missing_key()):
        print(f"memlab: {missing}", file=sys.stderr)
        return 1
    for folder, where in sync(records, options.project, options.entity):
        sent += where is not None
        print(f"{folder}: {where or 'not sent'}", flush=True)
    print(f"{sent} of {len(records)} offline runs sent in {time.perf_counter() - start:.1f} s" if records
          else f"nothing to send: no offline run under {options.runs} that is not on a server")
    return 0 if sent == len(records) else 1


if __name__ == "__main__":
    raise SystemExit(main())
