"""What of a run folder was published: a marker beside the result, so that nothing is published twice.

A finished arm's marker lies in its folder, a failed one's beside the folder that it would have had.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.harness.results import failure_file
from memlab.runtime.files import write_json

LINES, LETTERS = 30, 4_000
"""Of the traceback's end; the whole of it lies beside the run folder."""

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SECRETS = (
    re.compile(r"(?i)(\bbearer\s+)[^\s,;'\")}]+"),
    re.compile(r"(?i)((?:[\w-]*(?:key|token|secret|passw(?:or)?d)|authorization)['\"]?\s*[=:]\s*)(?!bearer\b)[^\s,;)}]+"),
    re.compile(r"(://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"()\b(?:sk|pk|hf|ghp|gho|glpat|xox[abp])[-_][\w-]{8,}"),
    re.compile(r"()\b[0-9a-fA-F]{40,}\b"),
)


def told(folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return the last lines of a failure, secrets blotted out; raises OSError where there is no such file."""
    text = failure_file(folder).read_text(encoding="utf-8", errors="replace")
    lines = redacted(text, os.environ if environment is None else environment).strip().splitlines()
    return "\n".join(lines[-LINES:])[-LETTERS:]


def redacted(text: str, environment: Mapping[str, str]) -> str:
    """Blot out keys: values of variables that are named like one, and what has the form of one.

    >>> redacted("Authorization: Bearer abc.def, api_key=hello99 at https://me:pw@host/v1", {})
    'Authorization: Bearer ***, api_key=*** at https://***@host/v1'
    >>> redacted("rejected 'opensesame'", {"MY_API_KEY": "opensesame"})
    "rejected '***'"
    """
    for name, value in environment.items():
        if _NAMES.search(name) and len(value) >= 6:  # noqa: PLR2004  (shorter ones would blot out common words)
            text = text.replace(value, "***")
    for form in _SECRETS:
        text = form.sub(r"\1***", text)
    return text


MARKER = "published.json"
"""Lies in a run folder that was published; delete it to publish again."""

FAILED = ".failed.published.json"
"""Ends the name of the marker of an arm that failed; the folder's name stands before it."""


@dataclass(frozen=True)
class Record:
    """A run folder as far as publishing goes: where it is (or would be) and whether its arm failed."""

    folder: Path
    failed: bool

    @property
    def source(self) -> Path:
        """The file whose content decides whether the arm was published in its present state."""
        return failure_file(self.folder) if self.failed else self.folder / "manifest.json"

    @property
    def marker(self) -> Path:
        """The file that tells what was published."""
        return self.folder.with_name(self.folder.name + FAILED) if self.failed else self.folder / MARKER

    def digest(self) -> str:
        """Digest the source; raises OSError where it is gone."""
        return hashlib.blake2b(self.source.read_bytes(), digest_size=16).hexdigest()

    def published(self) -> dict[str, Any]:
        """What the marker says; empty where there is none or it is damaged."""
        return read(self.marker)

    def there(self, entity: str, project: str) -> bool:
        """Whether the arm, in its present state, is in a project on a server."""
        before = self.published()
        wanted = {"mode": "online", "entity": entity, "project": project, "manifest": self.digest()}
        return {k: before.get(k) for k in wanted} == wanted

    def publish(self, value: dict[str, Any]) -> None:
        """Write the marker."""
        write_json(self.marker, value)
        if not self.failed:  # an arm that failed before and is finished now is one run, finished
            Record(self.folder, failed=True).marker.unlink(missing_ok=True)


def record(folder: Path) -> Record:
    """Tell a finished arm from a failed one; a folder with neither is taken for a finished one that cannot be read."""
    return Record(folder, failed=not (folder / "manifest.json").is_file() and failure_file(folder).is_file())


def records(root: Path) -> list[Record]:
    """Find every finished and every failed arm under a folder, in the order of their names."""
    finished = {path.parent for path in root.rglob("manifest.json")}
    failed = {path.with_name(path.name.removesuffix(".failed.txt")) for path in root.rglob("*.failed.txt")}
    if failure_file(root).is_file():  # the folder of an arm that failed was named itself
        failed.add(root)
    return [Record(folder, failed=folder not in finished) for folder in sorted(finished | failed)]


def read(path: Path) -> dict[str, Any]:
    """Read a marker; empty where it is missing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) and value.get("where") else {}
