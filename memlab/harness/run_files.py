"""Digests of the files of a run folder: recorded in its manifest, which is written last, and compared before use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from memlab.errors import MemlabError
from memlab.runtime.plain_yaml import loads

FORMAT = 2
"""Format of run folders; one of another format is refused."""

MANIFEST = "manifest.json"
SEAL = "seal"
"""Name of the manifest's digest of itself."""


def describe_files(folder: Path) -> dict[str, Any]:
    """Return the entries of a manifest that describe a run folder's other files: format, and name -> BLAKE2b."""
    return {"format": FORMAT, "files": {path.name: file_digest(path) for path in sorted(folder.iterdir())
                                        if path.is_file() and path.name != MANIFEST}}


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the digest of its own content under ``seal``."""
    plain = {name: value for name, value in content.items() if name != SEAL}
    text = json.dumps(json.loads(json.dumps(plain, default=str)), sort_keys=True)  # as write_json writes it
    return {**plain, SEAL: hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}


def verify_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise MemlabError if a file that the manifest lists is missing or changed, or its format is another one."""
    version, listed = manifest.get("format", "unknown"), manifest.get("files")
    fix = f"delete the folder {folder} and run the arm again"
    if version != FORMAT:
        raise MemlabError(f"the format of this run is {str(version)[:20]}, and this memlab reads format {FORMAT} alone",
                          where=str(folder), fix="read it with the memlab that wrote it, or run the arm again")
    if sealed(manifest)[SEAL] != manifest.get(SEAL):
        raise MemlabError("it has changed since the run: its content does not match its own digest",
                          where=str(folder / MANIFEST), fix=fix)
    if not isinstance(listed, dict) or not listed:
        raise MemlabError("its list of files cannot be read", where=str(folder / MANIFEST), fix=fix)
    for name, digest in listed.items():
        path = folder / name
        try:
            if path.parent != folder or file_digest(path) != digest:
                raise MemlabError("it has changed since the run: its content does not match the digest in the manifest",
                                  where=str(path), fix=fix)
        except OSError as error:
            raise MemlabError(f"cannot be read ({error.strerror})", where=str(path), fix=fix) from error


def file_digest(path: Path) -> str:
    """Return the BLAKE2b of a file's content, 16 bytes in hexadecimal; raise OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def plain_yaml(text: str, path: Path) -> Any:
    """Return the value of YAML text without aliases and tags; raise MemlabError naming its file if it is none.

    >>> plain_yaml("a: [1, x]", Path("config.yaml"))
    {'a': [1, 'x']}
    """
    try:
        return loads(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise MemlabError(f"cannot be read as a configuration ({' '.join(str(error).split())[:120]})", where=str(path),
                          fix="delete the run folder and run the arm again") from error
