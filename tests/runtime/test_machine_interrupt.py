"""One Ctrl-C interrupts once, whoever else raises for it; two interrupt twice."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from memlab.runtime.machine import one_interrupt


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    """As in a terminal, also where tests run in the background, which ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_echo_of_an_interrupt_is_dropped_and_a_further_one_counts() -> None:
    with one_interrupt():
        try:
            raise KeyboardInterrupt  # as polars raises it, before Python has told its own handler
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)  # the same Ctrl-C, as Python tells it
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)


def test_an_echo_is_known_in_what_cleans_up_behind_other_errors() -> None:
    with one_interrupt():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupted:
            try:
                raise OSError("the disk is full") from interrupted
            except OSError:
                signal.raise_signal(signal.SIGINT)  # dropped, or it would be raised here


def test_an_interrupt_is_raised_as_ever() -> None:
    with one_interrupt():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        try:
            raise ValueError
        except ValueError:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_press_counts_while_the_first_is_handled() -> None:
    with one_interrupt():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)


def test_handlers_of_others_and_other_threads_are_left_alone() -> None:
    told = []
    before = signal.signal(signal.SIGINT, lambda *_: told.append("other"))
    try:
        with one_interrupt():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == ["other"]

    def elsewhere() -> None:
        with one_interrupt():
            told.append("thread")

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert told == ["other", "thread"]
