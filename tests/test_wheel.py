"""The wheel: it holds all that memlab ships, and runs in an empty folder without reading the clone."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.test_structure import ROOT

pytestmark = pytest.mark.slow
CLONE = tuple(str(ROOT / name) for name in ("memlab", "conf", "slurm", "experiments", "pyproject.toml"))
WATCHED = f"""
import runpy, sys
opened = []
def note(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith({CLONE!r}):
        opened.append(str(arguments[0]))
sys.addaudithook(note)
module, sys.argv = sys.argv[1], sys.argv[1:]
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    print("read from the clone:", opened)
"""


def pip(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)], check=True,
                   capture_output=True, cwd=ROOT)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    (file,) = folder.glob("memlab-*.whl")
    return file


def run(wheel: Path, folder: Path, *words: str) -> str:
    """The output of a command of the installed wheel, in an empty folder."""
    site = wheel.parent / "site"
    if not site.is_dir():
        pip("install", "-q", "--no-deps", "--no-compile", "--target", site, wheel)
    env = {**os.environ, "PYTHONPATH": str(site), "MEMLAB_HOME": str(folder / "home"), "COLUMNS": "200"}
    done = subprocess.run([sys.executable, "-c", WATCHED, *words], cwd=folder, env=env, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_all_that_memlab_ships(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = {f"memlab/{file.relative_to(ROOT / 'memlab').as_posix()}" for file in (ROOT / "memlab").rglob("*")
              if file.is_file() and file.suffix != ".pyc"}
    conf = {f"memlab/{file.relative_to(ROOT).as_posix()}" for file in (ROOT / "conf").rglob("*.yaml")}
    expected = source | conf | {"memlab/slurm/serve.sbatch", "memlab/models/local/minilm_memory.md",
                                "memlab/learn/ranker/shipped.md"}
    assert len(conf) > 100
    assert expected <= names
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_a_plan_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    output = run(wheel, tmp_path, "memlab.run", "rank/select=gap", "plan=true")
    assert "all arms: " in output
    assert output.endswith("read from the clone: []\n")


def test_data_sets_and_models_are_listed_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    output = run(wheel, tmp_path, "memlab", "data", "list")
    assert "longmemeval_s" in output
    assert output.endswith("read from the clone: []\n")
