"""The command ``memlab``: its subcommands, what it says of a wrong one, and how soon it answers."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import memlab
from memlab import __main__ as cli
from tests.test_structure import ROOT

HEAVY = ("numpy", "polars", "torch", "scipy", "hydra", "omegaconf", "pydantic", "rich", "transformers")


def test_the_command_on_the_path_is_this_one() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["memlab"].partition(":")
    assert getattr(importlib.import_module(module), name) is cli.main


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_each_command_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    page = capsys.readouterr().out
    for name, (_, text) in cli.COMMANDS.items():
        assert any(line.split(maxsplit=1) == [name, text] for line in page.splitlines()), name
    assert max(map(len, page.splitlines())) <= 120


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["run", "--version"]])
def test_the_version_is_printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    assert capsys.readouterr().out == f"memlab {memlab.__version__}\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_has_a_module_with_a_main_and_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = cli.main(["help", name])
    except SystemExit as ended:  # argparse
        status = ended.code
    assert status == 0
    assert "python -m memlab" in (page := capsys.readouterr().out) or f"memlab {name}" in page


@pytest.mark.parametrize(("word", "answer"), [
    ("reprot", "there is no command 'reprot'; did you mean 'report'?"),
    ("xyzzy", "there is no command 'xyzzy'; known: ask, completion, data"),
    ("+exp=adaptive_k", "write memlab run +exp=adaptive_k"),
    ("rank.select.k=5", "write memlab run rank.select.k=5")])
def test_a_wrong_command_is_answered_with_the_nearest(word: str, answer: str, capsys: pytest.CaptureFixture[str]
                                                      ) -> None:
    assert cli.main([word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert answer in err


@pytest.mark.parametrize("word", ["--help", "--version", "rnu"])
def test_help_and_version_take_less_than_a_second_of_processor_time(word: str) -> None:
    code = (f"import resource, sys; sys.argv = ['memlab', {word!r}]; from memlab.__main__ import main; main();"
            f"print(*{{*{HEAVY}}} & {{*sys.modules}}, resource.getrusage(resource.RUSAGE_SELF)[0], sep='\\n')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    *heavy, seconds = done.stdout.splitlines()
    assert float(seconds) < 1
    assert not {*heavy} & {*HEAVY}


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")   # runpy, of what is imported already
@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_a_module_that_ends_with_its_status(
        name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--no-such-flag"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(cli.COMMANDS[name][0], run_name="__main__")
    said = "".join(capsys.readouterr())
    assert ended.value.code == 2
    assert f"memlab {name}: error" in said or "--no-such-flag: " in said


def test_public_names_are_imported_on_first_use() -> None:
    code = ("import sys, memlab; print('polars' in sys.modules); from memlab import Session; "
            "print('polars' in sys.modules, 'memlab.memory.memory' in sys.modules); "
            "from memlab import Memory, Pipeline, Store, Turn, compare, load; print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False", "False", "False"]
    assert {*memlab.__all__} <= {*dir(memlab)}
    assert all(getattr(memlab, name) is not None for name in memlab.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Memroy'"):
        getattr(memlab, "Memroy")  # noqa: B009 (the name is the point)


def test_a_terminal_shows_a_line_before_a_slow_command_is_imported(monkeypatch: pytest.MonkeyPatch,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(cli.importlib, "import_module", lambda name: print(f"importing {name}", file=sys.stderr))
    with pytest.raises(AttributeError):  # nothing was imported
        cli.main(["run", "seed=1"])
    shown = capsys.readouterr().err.splitlines()
    assert shown == [f"memlab {memlab.__version__} run is starting", "importing memlab.run"]
