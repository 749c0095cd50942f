"""Publish finished run folders to W&B after the fact: ``python -m memlab.track RUNS [--mode online]``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from memlab.track.wandb import WandbTrack


def main(argv: Sequence[str] | None = None) -> int:
    """Publish every finished arm under a folder; exit status 1 if one failed or none was found."""
    parser = argparse.ArgumentParser(prog="python -m memlab.track", description=__doc__)
    parser.add_argument("runs", type=Path, help="a folder with finished runs below it, such as runs/adaptive_k")
    parser.add_argument("--mode", choices=("offline", "online"), default="offline")
    parser.add_argument("--project", default="memlab")
    parser.add_argument("--entity")
    parser.add_argument("--tag", action="append", default=[], dest="tags")
    given = parser.parse_args(argv)
    folders = sorted(p.parent for p in given.runs.rglob("manifest.json"))
    track = WandbTrack(mode=given.mode, project=given.project, entity=given.entity, tags=tuple(given.tags))
    places = [track.publish(folder) for folder in folders]
    for folder, where in zip(folders, places):
        print(f"{folder}: {where or 'failed'}")
    if not folders:
        print(f"no finished run under {given.runs} (a finished run has a manifest.json)")
    return 0 if folders and all(places) else 1


if __name__ == "__main__":
    raise SystemExit(main())
