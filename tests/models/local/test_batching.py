from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.local import batching
from memlab.models.local.batching import InputWindow, join, pack, run_batches, spread, window_slices
from memlab.support.errors import MemlabError

OUT = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
LENGTHS = st.lists(st.integers(0, 40), max_size=60).map(lambda x: np.array(x, np.int64))


@given(LENGTHS, st.integers(1, 100))
def test_pack_covers_every_text_once_within_budget(lengths: np.ndarray, budget: int) -> None:
    batches = pack(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(1, lengths[batch].max()) <= budget
    longest = [lengths[batch].max() for batch in batches]
    assert longest == sorted(longest, reverse=True)


@given(st.lists(st.lists(st.integers(1, 99), max_size=6), min_size=1, max_size=8), st.data())
def test_padded_rows_are_the_texts(rows: list[list[int]], data: st.DataObject) -> None:
    positions = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8)))
    tokens = join(rows)
    ids, mask = tokens.pad_batch(positions, pad=0)
    assert [list(tokens.row(i)) for i in range(len(rows))] == rows
    assert ids.shape == mask.shape == (len(positions), max(len(rows[i]) for i in positions))
    assert [list(row[keep == 1]) for row, keep in zip(ids, mask)] == [rows[i] for i in positions]
    assert (ids[mask == 0] == 0).all()


def test_spread_uses_all_workers_and_keeps_job_with_result() -> None:
    both = threading.Barrier(2, timeout=60)  # passes only if two jobs run at the same time

    def worker(job: int) -> int:
        both.wait()
        return job * job

    assert sorted(spread(range(6), [worker, worker])) == [(i, i * i) for i in range(6)]


class Model:
    """A device that holds so many padded tokens, and forgets what it was asked beyond that."""

    def __init__(self, room: int, error: Exception = OUT) -> None:
        self.room, self.error = room, error
        self.tried: list[int] = []


LONG = np.array([8, 8, 8, 8, 4, 4, 4, 4])


def batches_of(lengths: np.ndarray, budget: int, models: list, work: Callable[..., Any], lanes: int = 1,
               room: dict | None = None) -> list:
    """Run the batches of one window, whose rows a model takes as they are."""
    window = InputWindow(np.arange(len(lengths)), lengths, lambda batch: batch)
    return list(run_batches([window], lambda job: job, budget, models, work, {} if room is None else room,
                            lanes=lanes))


def run(model: Model, batch: np.ndarray) -> np.ndarray:
    size = len(batch) * int(LONG[batch].max())
    model.tried.append(size)
    if size > model.room:
        raise model.error
    return LONG[batch] * 10


@pytest.mark.parametrize("error", [
    OUT, RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:128] . DefaultCPUAllocator: can't allocate memory: you tried to")])
def test_a_batch_that_does_not_fit_is_halved_and_the_size_is_remembered(error: Exception) -> None:
    model, room = Model(room=17, error=error), {}
    results = batches_of(LONG, 32, [model], run, room=room)
    assert sorted(i for batch, _ in results for i in batch) == list(range(8))
    assert all((result == LONG[batch] * 10).all() for batch, result in results)
    assert model.tried == [32, 16, 16, 16]  # the second batch, 16, fits: nothing else is tried in vain
    model.tried.clear()
    assert len(batches_of(LONG[:4], 32, [model], run, room=room)) == 2
    assert model.tried == [16, 16]


def test_one_text_that_does_not_fit_is_an_error_with_a_remedy() -> None:
    with pytest.raises(MemlabError, match=r"(?s)8 tokens does not fit.*max_length"):
        batches_of(LONG[:4], 32, [Model(room=5)], run)


def test_the_device_is_emptied_before_the_halves_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    model, freed = Model(room=17), []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: freed.append(len(model.tried)))
    batches_of(LONG[:4], 32, [model], run)
    assert freed == [1]


@pytest.mark.parametrize("devices", [1, 2])
def test_other_errors_are_not_taken_for_a_lack_of_memory(devices: int) -> None:
    models = [Model(1, RuntimeError("CUDA error: an illegal memory access")) for _ in range(devices)]
    with pytest.raises(RuntimeError, match="illegal"):
        batches_of(LONG, 32, models, run)


@given(st.integers(0, 70), st.integers(1, 9), st.integers(1, 9))
def test_windows_hold_every_text_once_in_order(count: int, first: int, budget: int) -> None:
    with mock.patch.multiple(batching, WHOLE=10, FIRST=first, MOST=20):
        windows = [np.arange(count)[at] for at in window_slices(count)]
        lengths = np.arange(count) * 7 % 11

        def prepare(at: slice) -> InputWindow:
            positions = np.arange(at.start, at.stop)
            return InputWindow(positions, lengths[at], lambda rows: positions[rows])

        results = run_batches(window_slices(count), prepare, budget, [Model(99)], lambda model, texts: texts, {})
        assert all(at.tolist() == result.tolist() for at, result in results)
    assert [i for window in windows for i in window] == list(range(count))
    assert len(windows) == 1 or not 0 < count <= 10


class Tokeniser:
    """Prepares windows of one text each, and tells when the second one is begun."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at = fails_at
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []

    def __call__(self, job: int) -> InputWindow:
        self.threads.append(threading.current_thread())
        if job == self.fails_at:
            raise ValueError(f"text {job} is no text")
        if job == 1:
            self.begun.set()
            assert self.may_end.wait(60)
        return InputWindow(np.array([job]), np.array([3]), lambda rows: job)


@pytest.mark.parametrize("lanes", [1, 2])
def test_the_next_window_is_tokenised_while_a_model_computes(lanes: int) -> None:
    tokeniser = Tokeniser()

    def work(model: Model, job: int) -> int:
        if job == 0:
            assert tokeniser.begun.wait(60)  # passes only if window 1 is begun before this batch ends
            tokeniser.may_end.set()
        return job

    results = run_batches(range(3), tokeniser, 9, [Model(9)], work, {}, lanes=lanes)
    assert sorted((int(at[0]), job) for at, job in results) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("fails_at", [0, 2])
def test_an_error_of_the_tokeniser_reaches_the_caller(fails_at: int) -> None:
    tokeniser = Tokeniser(fails_at)
    tokeniser.may_end.set()
    with pytest.raises(ValueError, match=f"text {fails_at} is no text"):
        list(run_batches(range(4), tokeniser, 9, [Model(9)], lambda model, job: job, {}))
    assert not any(thread.is_alive() for thread in tokeniser.threads if thread is not threading.current_thread())


@pytest.mark.parametrize("lanes", [1, 2])
def test_batches_that_are_not_wanted_leave_no_thread(lanes: int) -> None:
    before, tokeniser = set(threading.enumerate()), Tokeniser()
    results = run_batches(range(20), tokeniser, 9, [Model(9)], lambda model, job: tokeniser.may_end.set() or job, {},
                          lanes=lanes)
    next(results)
    assert tokeniser.begun.wait(60)
    results.close()
    assert set(threading.enumerate()) == before
    assert len(tokeniser.threads) <= 4  # no window is read far ahead of its turn
