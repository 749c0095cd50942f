"""An arm that failed: what its ``<folder>.failed.txt`` tells, without what looks like a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

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


def failure_file(folder: Path) -> Path:
    """Name the file that tells why the arm of this run folder failed.

    >>> failure_file(Path("runs/adaptive_k/locomo/gap-1f2e")).name
    'gap-1f2e.failed.txt'
    """
    return folder.with_name(f"{folder.name}.failed.txt")


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
