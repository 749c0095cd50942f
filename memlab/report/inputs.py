"""Record of what the last report in a folder was made from: a report that is up to date is not built again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from memlab.evaluate.contrast import Contrast
from memlab.judge.accuracy import CALIBRATION_FILE
from memlab.runtime.files import atomic_write, sweep_leftovers
from memlab.runtime.foreign import read_json
from memlab.runtime.source import own_source

RECORD = "report_inputs.json"
"""File beside a report with the digest. It is none of comparison.json's figures, which are equal on every machine."""


def inputs_digest(folder: Path, contrasts: Sequence[Contrast], expected: Sequence[str],
                  exact: Mapping[str, str]) -> str:
    """Return the digest of the arguments of a report and of the files that it is made from.

    These are memlab's source, the manifests below ``runs/<exp>/<data>``, sizes and times of the other files of their
    run folders, and the calibration of judges.
    """
    total = hashlib.blake2b(digest_size=16)
    source = own_source().digest(f"{__package__}.build")
    arguments = [source, [asdict(contrast) for contrast in contrasts], list(expected), dict(exact)]
    total.update(json.dumps(arguments, sort_keys=True, default=str).encode())
    for path in [*sorted(folder.glob("*/manifest.json")), folder.resolve().parents[1] / CALIBRATION_FILE]:
        if path.is_file():
            total.update(b"\0" + str(path.relative_to(path.parents[1])).encode() + b"\0" + path.read_bytes())
    for path in sorted(path for manifest in folder.glob("*/manifest.json") for path in manifest.parent.iterdir()):
        about = path.stat()
        total.update(f"\0{path.relative_to(folder)}\0{about.st_size}\0{about.st_mtime_ns}".encode())
    return total.hexdigest()


def up_to_date(folder: Path, digest: str) -> bool:
    """Return whether the three files of a report are there and were made from these inputs."""
    try:
        recorded = read_json(folder / RECORD).get("inputs")
    except (OSError, ValueError, AttributeError):  # missing or damaged: the report is built again
        return False
    return recorded == digest and bool(reported_runs(folder)) and all(
        (folder / name).is_file() for name in ("report.html", "report.md"))


def record_inputs(folder: Path, digest: str) -> None:
    """Record the inputs of the report in a folder; on a full disk there is no record, and it is built again."""
    with suppress(OSError):
        sweep_leftovers(folder / RECORD)
        atomic_write(folder / RECORD, json.dumps({"inputs": digest}) + "\n")


def reported_runs(folder: Path) -> dict[str, str]:
    """Return arm -> run folder of the folder's comparison.json, in its order; none where it cannot be read."""
    try:
        return {name: arm["folder"] for name, arm in read_json(folder / "comparison.json")["arms"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
