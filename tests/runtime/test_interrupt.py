"""Ctrl-C before a command can catch it: one sentence, exit status 130, no traceback."""

import signal
import subprocess
import sys

import pytest

from memlab import __main__ as command
from memlab.runtime.interrupt import INTERRUPTED, is_interrupt

SENTENCE = "interrupted; finished work is kept"


@pytest.mark.parametrize("start", ["-m", "/usr/bin/memlab"])
@pytest.mark.parametrize("end", ["raise KeyboardInterrupt", "import signal; signal.raise_signal(signal.SIGINT)", (
    "exec('try:\\n raise KeyboardInterrupt\\nexcept KeyboardInterrupt as e:\\n raise ImportError(\"numpy\") from e')")])
def test_ctrl_c_that_nothing_catches_is_a_sentence_and_a_status(start: str, end: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.argv[0] = {start!r}; import memlab; {end}"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (INTERRUPTED, SENTENCE)


def test_other_errors_keep_their_traceback_and_scripts_their_hook() -> None:
    for start, end in (("-m", "raise ValueError('x')"), ("mine.py", "raise KeyboardInterrupt")):
        done = subprocess.run([sys.executable, "-c", f"import sys; sys.argv[0] = {start!r}; import memlab; {end}"],
                              capture_output=True, text=True, check=False)
        assert "Traceback" in done.stderr
        assert SENTENCE not in done.stderr


def test_ctrl_c_while_a_command_is_imported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
                                            ) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.importlib, "import_module", interrupted)
    assert command.main(["run"]) == INTERRUPTED
    assert capsys.readouterr().err.strip() == SENTENCE


def test_an_exception_that_follows_an_interrupt_is_one() -> None:
    error = ValueError()
    error.__context__ = KeyboardInterrupt()
    assert is_interrupt(error)
    assert not is_interrupt(ValueError())
    assert not is_interrupt(None)


@pytest.mark.slow
@pytest.mark.parametrize("form", [["-m", "memlab.run"], ["-m", "memlab", "run"]])
def test_a_real_ctrl_c_in_the_first_seconds(form: list[str]) -> None:
    started = subprocess.Popen([sys.executable, *form, "+exp=adaptive_k", "plan=true"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        started.wait(0.3)
    started.send_signal(signal.SIGINT)
    out, errors = started.communicate(timeout=30)
    assert "Traceback" not in out + errors
    assert "interrupted" in out + errors
    assert started.returncode in (INTERRUPTED, -signal.SIGINT)  # which a shell gives as 130
