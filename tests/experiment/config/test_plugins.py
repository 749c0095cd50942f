"""Plug-ins: what is imported and when, which classes may be made, and what is said of those that cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from memlab.commands.explain import overview
from memlab.experiment.cluster.snapshot import Snapshot, take_snapshot
from memlab.experiment.config import plugins
from memlab.experiment.config.compose import compose
from memlab.experiment.harness import manifest
from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.staleness import source_digest
from memlab.experiment.harness.sweep import read
from memlab.pipeline.stage import spec, spec_digest
from tests.experiment.config.files import faults_of, put
from tests.small import LIVES, words
from tests.test_structure import ROOT

SOURCE = """
import dataclasses
from pathlib import Path
from typing import ClassVar
from memlab.stages.rank.select import Fixed
from memlab.pipeline.stage import stage

Path(__file__).with_suffix(".imported").touch()
__version__ = "2.5"

@stage
class Mine(Fixed):
    k: int = 4  # few

@stage
class SeesGold(Fixed):
    reads: ClassVar = ("ranking", "evidence")

@stage(sees=("gold",))
class SaysSo(SeesGold):
    pass

@dataclasses.dataclass
class Raises:
    k: int = 1
    def __post_init__(self):
        raise KeyError("no\\nluck")

class Plain:
    pass

{more}
"""


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the working folder, which no other test has imported."""
    monkeypatch.chdir(tmp_path)
    module = f"lab{uuid4().hex[:8]}"
    write(tmp_path, module)
    yield module
    compose([], False)


def write(folder: Path, module: str, more: str = "") -> None:
    (folder / f"{module}.py").write_text(SOURCE.format(more=more), encoding="utf-8")


def offer(folder: Path, point: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package, as pip leaves it: its modules and a folder of its metadata on Python's path."""
    about = folder / f"{module}-1.4.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.4\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[memlab.techniques]\n{point} = {module}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))


def conf(folder: Path, module: str, cls: str = "Mine") -> str:
    return f"conf_dir={put(folder / 'conf', rank__select__mine=f'_target_: {module}.{cls}')}"


def mine(folder: Path, module: str, *more: str) -> Arm:
    """An arm with the plug-in's selection."""
    return read([*words(folder, f"plugins={module}", conf(folder, module), "rank/select=mine", *more)]).arms[0]


def test_a_named_module_is_imported_and_its_class_made(tmp_path: Path, name: str) -> None:
    arm = mine(tmp_path, name)
    assert type(arm.pipeline.select).__module__ == name
    assert arm.pipeline.select.k == 4
    assert arm.plugins() == {name: {"version": "2.5", "digest": plugins.source_digest(tmp_path / f"{name}.py")}}
    assert "is outside memlab" in faults_of(f"conf_dir={tmp_path}/conf", "rank/select=mine")[0]  # not named any more


def test_a_module_that_is_not_named_is_neither_imported_nor_used(tmp_path: Path, name: str) -> None:
    (fault,) = faults_of(conf(tmp_path, name), "rank/select=mine")
    assert f"'{name}.Mine' is outside memlab; only classes of memlab and of the plug-ins" in fault
    assert name not in sys.modules
    assert not (tmp_path / f"{name}.imported").exists()


def test_an_entry_point_is_suggested_and_imported_only_when_named(
        tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, "handy", name, monkeypatch)
    monkeypatch.chdir(ROOT)
    assert "packages (plugins=[NAME]): handy\n" in overview()
    assert f"experiments (plugins=[NAME]): {', '.join(plugins.experiments())}\n" in overview()
    read([])
    (fault,) = faults_of("plugins=[hndy]")
    assert "there is no module or installed plug-in 'hndy'; did you mean 'handy'? (known: " in fault
    assert not (tmp_path / f"{name}.imported").exists()
    read(["plugins=[handy]"])
    assert [(one.package, one.version) for one in plugins.active()] == [(name, "1.4")]
    read([f"plugins=[{name}]"])
    assert plugins.active()[0].version == "1.4"  # by its module as well


def test_the_folder_of_a_package_is_read_and_offered_without_importing_it(
        tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / f"{name}p"
    package.mkdir()
    (package / "__init__.py").write_text(SOURCE.format(more=""), encoding="utf-8")
    conf(package, package.name)
    offer(tmp_path, "handy", package.name, monkeypatch)
    (fault,) = faults_of("rank/select=mine")
    assert fault == "rank/select=mine: there is no 'mine' here; a plug-in has it: add plugins=[handy]"
    assert package.name not in sys.modules
    assert read(["plugins=[handy]", "rank/select=mine"]).arms[0].pipeline.select.k == 4


@pytest.mark.parametrize(("cls", "expected"), [
    ("Plain", "is not a class of"), ("Nobody", "cannot be found"), ("Fixed", "is not a class of"),
    ("Path", "is not a class of"), ("Raises", "Raises cannot be made (KeyError: 'no\\nluck')"),
    ("SeesGold", "SeesGold reads evidence; before the answers only those stages of memlab may"),
    ("SaysSo", "SaysSo reads evidence; before the answers only those stages of memlab may"),
])
def test_only_its_own_configured_classes_are_made_and_gold_stays_hidden(
        tmp_path: Path, name: str, cls: str, expected: str) -> None:
    (fault,) = faults_of(f"plugins=[{name}]", conf(tmp_path, name, cls), "rank/select=mine")
    assert expected.replace("\\n", "\\\\n") in fault or expected in fault


@pytest.mark.parametrize(("code", "expected"), [
    ("raise RuntimeError('no\\nluck')", "RuntimeError: no luck"), ("raise SystemExit(3)", "SystemExit: 3"),
    ("import nowhere_at_all", "No module named 'nowhere_at_all'"), ("1 +", "SyntaxError: "),
])
def test_a_plugin_that_cannot_be_imported_is_one_line_beside_all_other_faults(
        tmp_path: Path, name: str, code: str, expected: str) -> None:
    write(tmp_path, name, code)
    first, second, *rest = faults_of(f"plugins=[{name}]", conf(tmp_path, name), "rank/select=mine",
                                     "read.measure.value=all", "rank.rerank.kk=1")
    assert f"plugins=[{name}]: the plug-in '{name}' cannot be imported (" in first
    assert expected in first
    assert "rank.rerank.kk" in second
    assert f"rank.select._target_: '{name}.Mine' is of a plug-in that cannot be used" in rest
    assert any(fault.startswith("read.measure.value: ") for fault in rest)
    assert name not in sys.modules


@pytest.mark.parametrize(("word", "expected"), [
    ("plugins=[os]", "'os' is a part of Python, no plug-in"), ("plugins=[memlab]", "is memlab itself"),
    ("plugins=[memlab.stages.rank]", "is memlab itself"),
    ("plugins=['../evil']", "there is no module or installed plug-in"),
    ("plugins=[__main__]", "there is no module"), ("plugins=[empty]", "is neither a file nor a folder with an "),
    ("plugins=7", "expected a name or a list of names"), ("plugins=a,b", "expected a name or a list of names"),
    ("conf_dir=[a]", "expected a folder"),
])
def test_a_name_that_can_be_no_plugin_is_refused(tmp_path: Path, name: str, word: str, expected: str) -> None:
    (tmp_path / "empty").mkdir()
    (fault,) = faults_of(word)
    assert expected in fault


def test_the_digest_of_an_arm_without_a_plugin_class_is_the_old_one(tmp_path: Path, name: str) -> None:
    (plain,) = read(words(tmp_path, f"plugins=[{name}]")).arms
    old = {"seed": None, "pipeline": spec(plain.pipeline), "data": plain.dataset.identity(),
           "source": source_digest()}
    assert plain.digest() == spec_digest(old) == read(words(tmp_path)).arms[0].digest()
    arm = mine(tmp_path, name)
    changed = old | {"pipeline": spec(arm.pipeline)}
    digest = plugins.source_digest(tmp_path / f"{name}.py")
    assert arm.digest() == spec_digest(changed | {"plugins": {name: digest}}) != spec_digest(changed)
    write(tmp_path, name, "# edited")
    assert plugins.source_digest(tmp_path / f"{name}.py") != digest


def snapshot_of(arm: Arm) -> Snapshot:
    return take_snapshot([arm], list(LIVES), None, 1)


def test_jobs_of_a_snapshot_run_the_source_and_the_plugins_of_the_submission(tmp_path: Path, name: str) -> None:
    arm = mine(tmp_path, name)
    snapshot = snapshot_of(arm)
    write(tmp_path, name, "raise RuntimeError('edited after submission')")
    assert (snapshot.source / "more_conf" / "rank" / "select" / "mine.yaml").is_file()
    code = ("import sys\nfrom pathlib import Path\nfrom memlab.experiment.cluster.snapshot import Snapshot\n"
            "import memlab.experiment.config.instantiate as c, memlab.experiment.harness.manifest as m\n"
            "print(c.CONF, m.commit()['commit'])\n"
            "one = Snapshot(Path(sys.argv[1])); one.activate_plugins(); arm = one.arm(0)\n"
            "print(arm.digest(), sys.modules[type(arm.pipeline.select).__module__].__file__, arm.plugins())")
    done = subprocess.run([sys.executable, "-c", code, str(snapshot.folder)], cwd=tmp_path, check=True, text=True,
                          capture_output=True, env={**os.environ, "PATH": "", "PYTHONPATH": str(snapshot.source)})
    conf_folder, commit, digest, file, described = done.stdout.split(maxsplit=4)
    assert (conf_folder, commit) == (str(snapshot.source / "conf"), str(manifest.commit()["commit"]))
    assert digest == arm.digest()  # of the source as well
    assert Path(file) == snapshot.source / f"{name}.py"
    assert described.strip() == str(arm.plugins())
