"""Cost of publishing many arms to W&B.

    python experiments/speed/publish.py RUN_FOLDER [--arms 200] [--mode offline]

RUN_FOLDER is a finished run folder (``runs/<exp>/<data>/<arm>-<hash>``). It is copied once per arm, each copy with its
own name, and published arm by arm; ``--mode online`` needs a server and a key. Prints the seconds per arm. For offline
runs, reads the last one back with W&B's own reader and compares it with metrics.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memlab.experiment.track.wandb import WandbTrack


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arms", type=int, default=200)
    parser.add_argument("--mode", choices=("offline", "online"), default="offline")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "runs" / "publishing" / args.folder.resolve().parent.name
        folders = [Path(shutil.copytree(args.folder, data / f"arm{i:03d}-{i:08x}",
                                        ignore=shutil.ignore_patterns("published.json"))) for i in range(args.arms)]
        size = sum(p.stat().st_size for p in folders[0].iterdir())
        track, spent = WandbTrack(mode=args.mode), []
        start = time.perf_counter()
        for folder in folders:
            before = time.perf_counter()
            where = track.publish(folder)
            spent.append(time.perf_counter() - before)
            if where is None:
                return 1
        total = time.perf_counter() - start
        second_call = time.perf_counter()
        for folder in folders:
            track.publish(folder)
        second_call = time.perf_counter() - second_call
        files = [p for p in (Path(place) / "runs" / "wandb").rglob("*") if p.is_file() and not p.is_symlink()]
        print(f"{args.arms} arms of {size / 1e6:.2f} MB, {args.mode}: {total:.1f} s, {total / args.arms:.2f} s "
              f"per arm (median {statistics.median(spent):.2f}, longest {max(spent):.2f}, first {spent[0]:.2f}); "
              f"second call, all published: {second_call:.2f} s; "
              f"W&B's files: {sum(p.stat().st_size for p in files) / 1e6:.0f} MB")
        if args.mode == "offline":
            (file,) = Path(str(where)).glob("*.wandb")
            tool = Path(sys.executable).with_name("wandb")
            output = subprocess.run([tool, "leet", "inspect", "--summary", "--json", file], capture_output=True,
                                    check=True, text=True).stdout
            summary, metrics = json.loads(output)["summary"], json.loads((folders[-1] / "metrics.json").read_text())
            print(f"read back: {sum(summary.get(k) == v for k, v in metrics.items())} of {len(metrics)} metrics equal")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
