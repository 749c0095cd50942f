"""The build of PyTorch on this machine, known without importing it: that costs a second, and a plan needs no model."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from memlab.runtime.files import write_json
from memlab.runtime.foreign import read_json
from memlab.runtime.paths import home

GPU_BUILD = re.compile(r"^(?:cuda|hip|rocm)\b[^=]*=\s*(?!None\b)\S", re.MULTILINE)
"""A line of ``torch/version.py`` that names a GPU toolkit."""

VARIABLES = ("ATEN_", "DNNL_", "ONEDNN_", "TORCH_")
"""Beginnings of environment variables that change what oneDNN does."""


def gpu_count() -> int:
    """Return the number of GPUs that this process sees; PyTorch is imported unless it is built for CPUs alone."""
    text = _version_file()
    if "torch" not in sys.modules and text and not GPU_BUILD.search(text):
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def onednn_usable() -> bool:
    """Return whether this PyTorch has oneDNN's linear layers and this processor runs them.

    The answer is kept in ``$MEMLAB_HOME`` for this build, processor and environment.
    """
    record, key = home() / "onednn.json", _key()
    if "torch" not in sys.modules and isinstance(known := _answers(record).get(key), bool):
        return known
    from memlab.models.local.onednn import usable

    answer = usable()
    with suppress(OSError):
        answers = _answers(record)
        if answers.get(key) is not answer:
            write_json(record, {**answers, key: answer})
    return answer


def _answers(record: Path) -> dict[str, Any]:
    try:
        answers = read_json(record)
    except (OSError, ValueError):
        return {}
    return answers if isinstance(answers, dict) else {}


@cache
def _version_file() -> str:
    """Return the text of ``torch/version.py``; empty if there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return ""
    try:
        return Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return ""


def _key() -> str:
    """Return the digest of all that the answer depends on."""
    try:
        flags = re.search(r"^flags.*$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        flags = None
    parts = [_version_file(), sys.version, platform.machine(), flags.group() if flags else "",
             *(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES))]
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=16).hexdigest()
