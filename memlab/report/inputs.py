"""Digest of what a report is made from, so that a report that is up to date is not built again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from memlab.evaluate.contrast import Contrast
from memlab.harness.manifest import source_digest
from memlab.judge.calibration.trust import CALIBRATION_FILE
from memlab.runtime.files import read_json

KEY = "inputs"
"""Name of the digest in comparison.json."""


def inputs_digest(folder: Path, contrasts: Sequence[Contrast], expected: Sequence[str],
                  exact: Mapping[str, str]) -> str:
    """Return the digest of the arguments of a report and of the files that it is made from.

    These are memlab's source, the manifests below ``runs/<exp>/<data>``, sizes and times of the other files of their
    run folders, and the calibration of judges.
    """
    total = hashlib.blake2b(digest_size=16)
    arguments = [source_digest(), [asdict(contrast) for contrast in contrasts], list(expected), dict(exact)]
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
    files = [folder / name for name in ("comparison.json", "report.html", "report.md")]
    try:
        return all(path.is_file() for path in files) and read_json(files[0]).get(KEY) == digest
    except (OSError, ValueError, AttributeError):  # damaged: it is built again
        return False
