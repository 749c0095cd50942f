"""Run folders that a test has changed: a manifest whose digests fit the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memlab.experiment.harness.run_files import describe_files


def seal(folder: Path, **changes: Any) -> None:
    """Write the manifest of a run folder with other content, and digests that fit."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**manifest, **changes, **describe_files(folder)}))
