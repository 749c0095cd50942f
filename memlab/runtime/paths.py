"""Paths that people give, and why the operating system refuses one."""

from __future__ import annotations

import argparse
from pathlib import Path

from memlab.errors import MemlabError

SHOWN = 80
"""Characters of a path in a message; one that is refused may have thousands."""


def path_refusal(path: str | Path) -> str:
    """Return why the system refuses to look for a path; empty if it looks, whether or not something is there.

    >>> path_refusal("/no/such/file"), path_refusal("a" * 300).partition(":")[0]
    ('', 'File name too long')
    """
    try:
        Path(path).expanduser().stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except RuntimeError:  # of expanduser
        return f"there is no such user: {str(path)[:SHOWN]}"
    except (OSError, ValueError) as error:  # the second for a null character
        return refusal_message(error)
    return ""


def refusal_message(error: OSError | ValueError) -> str:
    """Return the system's reason and the path, shortened."""
    reason = getattr(error, "strerror", None) or str(error)
    name = str(getattr(error, "filename", None) or "")
    return f"{reason}: {name[:SHOWN]}{'...' if len(name) > SHOWN else ''}" if name else reason


def expand(path: str | Path) -> Path:
    """Return a path with ``~`` replaced by the user's folder.

    Raises:
        MemlabError: There is no such user, or the system refuses to look for the path.
    """
    if refusal := path_refusal(path):
        raise MemlabError(refusal)
    return Path(path).expanduser()


def path_argument(text: str) -> Path:
    """Return the path that a command is given.

    Raises:
        argparse.ArgumentTypeError: The system refuses to look for it.
    """
    if fault := path_refusal(text):
        raise argparse.ArgumentTypeError(fault)
    return Path(text)
