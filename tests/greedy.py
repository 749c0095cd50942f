"""A plug-in whose rules take more than a process has."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

SOURCE = """
import os, signal
import numpy as np
from memlab.stages.rank.select import Fixed
from memlab.pipeline.stage import stage

@stage
class Greedy(Fixed):
    def run(self, tables, store):
        if self.k == 4:
            np.empty(1 << 57)
        if self.k == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(tables, store)
"""
"""With k=4 the stage asks for more memory than there is; with k=9 it ends as a process that the system ends."""


def plug_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write the plug-in into a folder that becomes the working folder; return the words that choose its rule."""
    name = f"greedy_{uuid4().hex}"
    (folder / f"{name}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(folder)
    return [f"plugins=[{name}]", f"rank.select._target_={name}.Greedy"]
