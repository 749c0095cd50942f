"""Removal of keys, tokens and passwords from text that leaves the machine or stays in a run folder."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SECRETS = (
    re.compile(r"(?i)(\bbearer\s+)[^\s,;'\")}]+"),
    re.compile(r"(?i)((?:[\w-]*(?:key|token|secret|passw(?:or)?d)|authorization)['\"]?\s*[=:]\s*)(?!bearer\b)[^\s,;)}]+"),
    re.compile(r"(://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"()\b(?:sk|pk|hf|ghp|gho|glpat|xox[abp])[-_][\w-]{8,}"),
    re.compile(r"()\b[0-9a-fA-F]{40,}\b"),
)


def redact(text: str, environment: Mapping[str, str]) -> str:
    """Replace keys: values of environment variables that are named like one, and text in the form of one.

    >>> redact("Authorization: Bearer abc.def, api_key=hello99 at https://me:pw@host/v1", {})
    'Authorization: Bearer ***, api_key=*** at https://***@host/v1'
    >>> redact("rejected 'opensesame'", {"MY_API_KEY": "opensesame"})
    "rejected '***'"
    """
    for name, value in environment.items():
        if _NAMES.search(name) and len(value) >= 6:  # noqa: PLR2004  (shorter ones would replace common words)
            text = text.replace(value, "***")
    for form in _SECRETS:
        text = form.sub(r"\1***", text)
    return text
