"""Removal of keys, tokens and passwords from all that leaves the process: files of a run, reports, W&B, the terminal.

Three kinds of text are replaced by ``***``: text in the form of a key, the values of environment variables that are
named like one, and values that were remembered, which are those of the variables that a configuration interpolates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from memlab.support.errors import HIDDEN

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_KEY = r"(?:api|access|secret|private|auth|account)[_-]?key|token|secret|passw(?:or)?d|credentials?"
_FIELD = re.compile(rf"(?:{_KEY}|authorization)$", re.IGNORECASE)
_COMMIT_FIELDS = ("commit", "revision", "code_revision")
_HEX = re.compile(r"[0-9a-f]+")
_COMMIT = 40
"""Digits of the hash of a commit, and of some keys."""
_SECRETS = (
    re.compile(r"(?i)(\bbearer\s+)[^\s,;'\")}]+"),
    re.compile(r"(?i)([?&](?=[\w.-]*(?:key|token|secret|passw|auth|sig|credential))[\w.-]*+=)[^\s&#'\"]+"),
    re.compile(rf"(?i)((?:{_KEY})=)(?![$.<*])[^\s,;)}}&]+"),
    re.compile(r"(://)[^/\s]+(?=@)"),
    re.compile(r"()\b(?:sk|pk|hf|ghp|gho|ghs|github_pat|glpat|gsk|nvapi|pplx|pypi|xox[abp])[-_][\w-]{8,}"),
    re.compile(r"()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"()\bAIza[\w-]{30,}"),
    re.compile(r"((?<![\w-])(?:(?!\beyJ)[\w-])*+)eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*"),
)
_SECRETS_IN_FILES = (  # in prose these are a sentence about a password, and the hash of a file
    re.compile(rf"(?i)((?:{_KEY}|authorization)['\"]?\s*[=:]\s*)(?!bearer\b)[^\s,;)}}]+"),
    re.compile(r"()(?<!snapshots/)\b[0-9a-fA-F]{40,}\b"),
)
"""The time of each form grows with the length of a text, not with its square: none looks from each letter of a long
word for what may stand at its end."""
_SHORTEST = 6
"""Length from which a value is replaced everywhere: a shorter one would replace common words."""


def remember(values: Iterable[str]) -> None:
    """Have values replaced wherever they stand from now on, in this process; short ones and paths are left out."""
    HIDDEN.update(value for value in values if len(value) >= _SHORTEST and not _is_path(value))


def redact(text: str, environment: Mapping[str, str] | None = None, *, prose: bool = False) -> str:
    """Return a text without keys; ``environment`` is this process's own unless one is given.

    In ``prose``, which may quote a memory, "password: ..." stays, and so does the hash of a file.

    >>> redact("Authorization: Bearer abc.def, api_key=hello99 at https://me:pw@host/v1", {})
    'Authorization: Bearer ***, api_key=*** at https://***@host/v1'
    >>> redact("rejected 'opensesame'", {"MY_API_KEY": "opensesame"})
    "rejected '***'"
    """
    return _without(_values(os.environ if environment is None else environment), text, prose)


def redact_tree(value: Any) -> Any:
    """Return plain JSON values without keys: in texts, in names, and under a field that is named like a key.

    The digest of a file stays. The hash of a commit has the form of a key, and stays under its own name.

    >>> redact_tree({"url": "http://me:pw@host/v1", "api_key": "hello", "revision": "0" * 40, "k": 5})["api_key"]
    '***'
    """
    values = _values(os.environ)

    def clean(value: Any, field: str) -> Any:
        if isinstance(value, Mapping):
            return {_without(values, k) if isinstance(k, str) else k: clean(v, str(k)) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item, field) for item in value]
        if not isinstance(value, str):
            return value
        if _FIELD.search(field) and value:
            return "***"
        is_digest = _HEX.fullmatch(value) and (len(value) != _COMMIT or field in _COMMIT_FIELDS)
        return _without(values, value, prose=bool(is_digest))

    return clean(value, "")


def _values(variables: Mapping[str, str]) -> list[str]:
    """Return the values to replace: those of variables that are named like a key, and those remembered."""
    named = {value for name in variables if _names_a_secret(name)
             and len(value := variables[name]) >= _SHORTEST and not _is_path(value)}
    return sorted(HIDDEN | named, key=lambda value: (-len(value), value))  # a part after the whole


def _without(values: Iterable[str], text: str, prose: bool = False) -> str:
    for value in values:
        text = text.replace(value, "***")
    for form in _SECRETS if prose else _SECRETS + _SECRETS_IN_FILES:
        text = form.sub(r"\1***", text)
    return text


@lru_cache
def _names_a_secret(variable: str) -> bool:
    return bool(_NAMES.search(variable))


def _is_path(value: str) -> bool:
    """Return whether a value is a path: it begins with a folder that exists at the root."""
    parts = Path(value).parts[:2]
    return len(parts) > 1 and parts[0] == "/" and "\0" not in value and Path(*parts).is_dir()
