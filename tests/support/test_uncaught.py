"""Ctrl-C and faults of a disk that nothing catches: one sentence and an exit status, no traceback."""

import signal
import subprocess
import sys

import pytest

from memlab.support.uncaught import INTERRUPTED

SENTENCE = "interrupted; finished work is kept"


def ended(start: str, end: str) -> subprocess.CompletedProcess[str]:
    """A process that was started so and imports memlab before it ends."""
    program = f"import errno, sys; sys.argv[0] = {start!r}; import memlab; {end}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("start", ["-m", "/usr/bin/memlab"])
@pytest.mark.parametrize("end", ["raise KeyboardInterrupt", "import signal; signal.raise_signal(signal.SIGINT)", (
    "exec('try:\\n raise KeyboardInterrupt\\nexcept KeyboardInterrupt as e:\\n raise ImportError(\"numpy\") from e')")])
def test_ctrl_c_that_nothing_catches_is_a_sentence_and_a_status(start: str, end: str) -> None:
    done = ended(start, end)
    assert (done.returncode, done.stderr.strip()) == (INTERRUPTED, SENTENCE)


def test_other_errors_keep_their_traceback_and_scripts_their_hook() -> None:
    for start, end in (("-m", "raise ValueError('x')"), ("mine.py", "raise KeyboardInterrupt")):
        done = ended(start, end)
        assert "Traceback" in done.stderr
        assert SENTENCE not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("form", "module"), [(("-m", "memlab.run"), "torch._C"), (("-m", "memlab", "run"), "numpy")])
def test_a_real_ctrl_c_during_imports(form: tuple[str, ...], module: str) -> None:
    started = subprocess.Popen([sys.executable, "-X", "importtime", *form, "+exp=adaptive_k", "plan=true"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    assert any(line.split("|")[-1].strip() == module for line in started.stderr)  # a line for each import that is done
    started.send_signal(signal.SIGINT)
    out, errors = started.communicate(timeout=60)
    assert "Traceback" not in out + errors
    assert "interrupted" in out + errors
    assert started.returncode in (INTERRUPTED, -signal.SIGINT)  # which a shell gives as 130


def test_an_output_that_cannot_be_written_is_a_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "memlab", "--version"], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("memlab: the output, or a file: the disk is full. Fix: free some space there")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("error", [
    "OSError(errno.ENOSPC, 'x', 'runs/a')", "OSError('runs/a: No space left on device (os error 28)')",
    "RuntimeError('I/O error: No space left on device')", "OSError(errno.EDQUOT, 'x', 'runs/a')",
    "PermissionError(errno.EACCES, 'x', 'runs/\\x1b[2Ja')", "OSError(errno.EROFS, 'x', b'runs/a')",
    "__import__('memlab.support.errors').support.errors.DiskFault('x', fix='; finished work is kept')"])
def test_a_fault_of_a_disk_that_nothing_catches_is_a_sentence(error: str) -> None:
    done = ended("-m", f"raise {error}")
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("memlab: ")
    assert line.endswith("; finished work is kept")
    assert line.isprintable()
