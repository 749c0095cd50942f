"""A serving environment whose Python runs ``fake_vllm.py``, and a model folder to serve with it.

    memlab serve MODEL --env ENV --device cpu        # ENV = fake_vllm_env(folder), MODEL = model_folder(...)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def fake_vllm_env(folder: Path) -> Path:
    """Make the environment: its interpreter drops ``-m vllm...`` and runs the stand-in by this very Python.

    As ``$MEMLAB_HOME/serving-env`` it is found without ``--env``. What it does is said by variables of the process
    that starts the server (``fake_vllm.py``), such as FAKE_VLLM_DELAY and FAKE_VLLM_ASKED.
    """
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
