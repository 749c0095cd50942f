"""Code that comes with a model: it runs only if it is in the model's folder or pinned to a commit of the hub."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from memlab.errors import MemlabError, MissingFiles

_COMMIT = re.compile(r"[0-9a-f]{40}")


def check_pinned(field: str, value: str | None, path: str, option: str) -> None:
    """Raise MissingFiles unless a field holds the hash of a commit: a branch is what its owner puts there later."""
    if value is None or not _COMMIT.fullmatch(value):
        given = "null, the newest" if value is None else repr(value)
        raise MissingFiles(f"trust_remote_code runs code of {path} here, and {field} is {given}",
                           fix=f"read that code, then {option.rpartition('.')[0]}.{field}=COMMIT, the 40 digits that "
                               f"https://huggingface.co/{path}/commits shows; or give a local folder, {option}=FOLDER")


def trusted_code(folder: Path, code_revision: str | None, option: str) -> str:
    """Return the commit that the code of a model is taken from: "" if all of it is in the model's folder.

    Raise MemlabError if its files name code of another repository and ``code_revision`` is None.
    """
    others = sorted({name.partition("--")[0] for file in folder.rglob("*.json") for name in _references(file)
                     if "--" in name})
    if others and code_revision is not None:
        check_pinned("code_revision", code_revision, others[0], option)
    elif others:
        raise MemlabError(
            f"this model runs code of {', '.join(others)}, which its revision does not pin", where=str(folder),
            fix=f"read that code, then {option.rpartition('.')[0]}.code_revision=COMMIT, the 40 digits that "
                f"https://huggingface.co/{others[0]}/commits shows")
    return code_revision or ""


def _references(file: Path) -> list[str]:
    """Return the classes that a file of a model names in ``auto_map``, as REPOSITORY--MODULE.CLASS or MODULE.CLASS."""
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    classes = content.get("auto_map") if isinstance(content, dict) else None
    values = list(classes.values()) if isinstance(classes, dict) else []
    return [name for value in values for name in (value if isinstance(value, list) else [value])
            if isinstance(name, str)]
