"""Record of what was published from a run folder: a marker beside the result, so that nothing is published twice.

A finished arm's marker lies in its folder, a failed one's beside the folder that it would have had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.harness.results import failure_file
from memlab.runtime.files import read_json, write_json
from memlab.runtime.redaction import redact

MARKER = "published.json"
"""Lies in a run folder that was published; delete it to publish again."""

FAILED = ".failed.published.json"
"""Suffix of the marker of a failed arm, after the name of its run folder."""

LINES, LETTERS = 30, 4_000
"""Length of a traceback's end that is published; all of it lies beside the run folder."""

@dataclass(frozen=True)
class PublishRecord:
    """A run folder that can be published: where it is (or would be), and whether its arm failed."""

    folder: Path
    failed: bool

    @property
    def source(self) -> Path:
        """The file whose content identifies the state of the arm."""
        return failure_file(self.folder) if self.failed else self.folder / "manifest.json"

    @property
    def marker(self) -> Path:
        """The file that records what was published."""
        return self.folder.with_name(self.folder.name + FAILED) if self.failed else self.folder / MARKER

    def digest(self) -> str:
        """Return a digest of the source; raise OSError where it is gone."""
        return hashlib.blake2b(self.source.read_bytes(), digest_size=16).hexdigest()

    def published(self) -> dict[str, Any]:
        """Return the content of the marker; empty where there is none or it is damaged."""
        try:
            content = read_json(self.marker)
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) and content.get("where") else {}

    def is_online(self, entity: str, project: str) -> bool:
        """Return whether the arm, in its present state, is in a project on a server."""
        before = self.published()
        wanted = {"mode": "online", "entity": entity, "project": project, "manifest": self.digest()}
        return {k: before.get(k) for k in wanted} == wanted

    def write(self, value: dict[str, Any]) -> None:
        """Write the marker."""
        write_json(self.marker, value)
        if not self.failed:  # an arm that failed before and is now finished is one run
            PublishRecord(self.folder, failed=True).marker.unlink(missing_ok=True)


def find_record(folder: Path) -> PublishRecord:
    """Return the record of a run folder; one without manifest and failure counts as finished and unreadable."""
    return PublishRecord(folder, failed=not (folder / "manifest.json").is_file() and failure_file(folder).is_file())


def find_records(root: Path) -> list[PublishRecord]:
    """Return the records of all finished and failed arms under a folder, in the order of their names."""
    finished = {path.parent for path in root.rglob("manifest.json")}
    failed = {path.with_name(path.name.removesuffix(".failed.txt")) for path in root.rglob("*.failed.txt")}
    if failure_file(root).is_file():  # root is the run folder of a failed arm
        failed.add(root)
    return [PublishRecord(folder, failed=folder not in finished) for folder in sorted(finished | failed)]


def failure_tail(folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return the last lines of a failure without secrets; raise OSError where there is no such file."""
    text = failure_file(folder).read_text(encoding="utf-8", errors="replace")
    lines = redact(text, environment).strip().splitlines()
    return "\n".join(lines[-LINES:])[-LETTERS:]
