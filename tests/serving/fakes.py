"""A serving environment whose Python runs ``fake_vllm.py``, and a model folder to serve with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def fake_environment(folder: Path) -> Path:
    """Make the environment: its interpreter drops ``-m vllm...`` and runs the stand-in by this very Python."""
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    script = Path(__file__).with_name("fake_vllm.py")
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{script}" "$@"\n')
    python.chmod(0o755)
    return folder


def model_folder(folder: Path, size: int = 1000) -> Path:
    """Make a folder that looks like a model's, with ``size`` bytes of weights."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"dtype": "bfloat16"}))
    with (folder / "model.safetensors").open("wb") as handle:
        handle.truncate(size)
    return folder
