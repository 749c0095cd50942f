"""Facts about PyTorch that are known without importing it agree with PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from memlab.models.local import backend
from memlab.models.local.onednn import usable
from tests.test_structure import ROOT

CODE = """
import sys
from memlab.models.local.backend import resolve
print(resolve("auto", "auto", "auto") == resolve("cpu", "auto", "auto"), "torch" in sys.modules)
"""


def fresh() -> list[str]:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.skipif(bool(torch.version.cuda or torch.version.hip), reason="this PyTorch is built for GPUs")
def test_a_cpu_build_is_imported_once_to_ask_for_onednn_and_not_again(memlab_home: Path) -> None:
    assert fresh() == ["True", "True"]
    assert json.loads((memlab_home / "onednn.json").read_text()) == {backend._key(): usable()}
    assert fresh() == ["True", "False"]
    (memlab_home / "onednn.json").write_text("[1")
    assert fresh() == ["True", "True"]


@pytest.mark.parametrize(("text", "gpu"), [
    ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", False),
    ("cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n", True),
    ("cuda = None\nhip = '6.4'\n", True), ("cuda = '12.1'", True)])
def test_builds_for_gpus_are_told_by_their_version_file(text: str, gpu: bool) -> None:
    assert bool(backend.GPU_BUILD.search(text)) is gpu


def test_the_version_file_is_that_of_the_installed_pytorch() -> None:
    assert bool(backend.GPU_BUILD.search(backend._version_file())) is bool(
        torch.version.cuda or torch.version.hip)


