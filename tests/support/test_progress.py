"""Progress: a bar on a terminal, a line now and then elsewhere, silence for short work."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from memlab.support import progress as module
from memlab.support.progress import Pace, progress, say


@pytest.mark.parametrize(("done", "seconds", "told"), [(1, 1.0, False), (19, 9.9, False), (19, 10.0, True),
                                                       (20, 1.0, True), (1000, 50.0, False)])
def test_an_estimate_is_told_when_there_is_something_to_go_by(
        done: int, seconds: float, told: bool, clock: list[float]) -> None:
    pace = Pace(1000)
    clock[0] = seconds
    pace.step(done)
    assert (" left" in pace.describe("texts", "")) == told


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment, in seconds; a test moves it."""
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_time_left_goes_by_cost(clock: list[float]) -> None:
    pace = Pace(10, cost=100.0)
    clock[0] = 8.0
    pace.step(1, 40.0)  # the longest text
    assert pace.seconds_left() == pytest.approx(8.0 * 60 / 40)
    clock[0] = 20.0
    pace.step(9, 60.0)
    assert pace.seconds_left() is None


def test_the_loading_of_a_model_is_left_out_of_the_pace(clock: list[float]) -> None:
    pace = Pace(100, loads=True)
    clock[0] = 30.0
    pace.step(10)
    assert pace.seconds_left() is None  # nothing to go by: a part of the 30 s was the model
    clock[0] = 32.0
    pace.step(10)
    assert pace.seconds_left() == pytest.approx(80 * 2.0 / 10)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "told"), [(Terminal(), "loading ...\n"), (io.StringIO(), "")])
def test_a_line_is_said_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, told: str) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    say("loading ...")
    assert stream.getvalue() == told


def test_off_a_terminal_a_line_now_and_then() -> None:
    out = io.StringIO()
    with progress("encode", 3, "texts", stream=out) as step:
        step(3)
    assert out.getvalue() == ""  # short work
    with progress("encode", 4, "texts", stream=out, every=0) as step:
        step(1)
        step(3, note="12 % padding")
    first, second = out.getvalue().splitlines()
    assert first.startswith("encode: 1/4 texts, ")
    assert first.endswith(" left")
    assert second.startswith("encode: 4/4 texts, ")
    assert second.endswith(" texts/s, 12 % padding")


def test_an_inner_bar_is_silent_and_a_failed_one_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.support.progress._WAIT", 0.0)
    inner = Terminal()

    def work() -> None:
        with (progress("outer", 4, "texts", stream=Terminal()),
              progress("inner", 4, "texts", stream=inner) as step):
            step(1)
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        work()
    assert inner.getvalue() == ""
    later, short = Terminal(), Terminal()
    with progress("later", 4, "texts", stream=later) as step:
        step(2)
    assert "later" in later.getvalue()
    assert "2/4 texts" in later.getvalue()
    monkeypatch.undo()
    with progress("short", 4, "texts", stream=short) as step:
        step(4)
    assert short.getvalue() == ""
