"""The folder in which memlab keeps what it makes: ``$MEMLAB_HOME``."""

from __future__ import annotations

import os
from pathlib import Path


def default_root() -> Path:
    """Return where the store lies unless told: ``$MEMLAB_HOME/store``."""
    return Path(os.environ.get("MEMLAB_HOME") or "~/.cache/memlab").expanduser() / "store"
