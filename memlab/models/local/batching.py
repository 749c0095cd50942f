"""Texts to batches of tokens: tokenised once, sorted by token length, packed to a token budget.

A batch costs its padded size (longest text x number of texts), so texts of one length belong together. Up to 16,384
texts are sorted as a whole. More are sorted window by window, and the next window is tokenised while the model
computes this one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from memlab.models.protocols import Ints
from memlab.support.errors import MemlabError
from memlab.support.machine import is_lack

CHUNK = 1024
"""Texts per call of the tokenizer: enough for its threads, and short enough for another thread to wait for."""

WHOLE, FIRST, MOST = 16_384, 2048, 65_536
"""Texts of a window: up to ``WHOLE`` are one; of more the first window has ``FIRST``, so that the model starts within a
second or so, and each one after it twice as many up to ``MOST``, so that little of a GPU's large batches is padding."""

_TOKENISING = Lock()
"""A tokenizer keeps the length that it cuts at as its state, so two threads may not call it at once."""

Job = TypeVar("Job")
Result = TypeVar("Result")
Model = TypeVar("Model")
Inputs = TypeVar("Inputs")

Block = tuple[Ints, Any, Any, Ints | None]
"""Positions (b,), token vectors (b, length, dim) as a tensor, which of them count (b, length) as a tensor, and the
vocabulary ids of the tokens (b, length), where each stands for a word."""

Room = dict[Any, int]
"""Padded tokens per batch of each model whose device ran out of memory."""


@dataclass(frozen=True)
class TokenRows:
    """Token ids of n texts, end to end: text i has ``ids[starts[i]:starts[i + 1]]``."""

    ids: NDArray[np.int32]
    starts: Ints

    @property
    def lengths(self) -> Ints:
        """Tokens per text, shape (n,)."""
        return np.diff(self.starts)

    def row(self, i: int) -> NDArray[np.int32]:
        """Return the token ids of text i."""
        return self.ids[self.starts[i]:self.starts[i + 1]]

    def pad_batch(self, positions: Ints, pad: int) -> tuple[Ints, Ints]:
        """Return ids (b, length) filled with ``pad`` on the right, and the mask (b, length) of real tokens."""
        lengths = self.lengths[positions]
        columns = np.arange(int(lengths.max(initial=0)))
        mask = columns < lengths[:, None]
        ids = np.full(mask.shape, pad, np.int64)
        ids[mask] = self.ids[(self.starts[positions, None] + columns)[mask]]
        return ids, mask.astype(np.int64)


def join(rows: Iterable[Sequence[int]]) -> TokenRows:
    """Return rows of token ids, end to end.

    >>> join([[5, 6], [7]]).pad_batch(np.array([0, 1]), pad=0)[0].tolist()
    [[5, 6], [7, 0]]
    """
    parts = [np.asarray(row, np.int32) for row in rows]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]).astype(np.int64)
    return TokenRows(np.concatenate([*parts, np.zeros(0, np.int32)]), starts)


def tokenise(tokenizer: Any, texts: Sequence[str], max_length: int, *, special: bool = True) -> TokenRows:
    """Tokenise texts with a transformers tokenizer, each cut to ``max_length`` tokens."""
    def rows() -> Iterator[list[int]]:
        for start in range(0, len(texts), CHUNK):
            with _TOKENISING:
                chunk = tokenizer(list(texts[start:start + CHUNK]), truncation=True, max_length=max_length,
                                  padding=False, add_special_tokens=special, return_attention_mask=False,
                                  return_token_type_ids=False)["input_ids"]
            yield from chunk

    return join(rows())


@dataclass(frozen=True)
class InputWindow(Generic[Inputs]):
    """Inputs of a model that are sorted and packed together.

    positions: (n,) their places among all inputs. lengths: (n,) their tokens, or what is proportional to them.
    batch: From rows of the window (b,) to what a model takes.
    """

    positions: Ints
    lengths: Ints
    batch: Callable[[Ints], Inputs]


def window_slices(count: int) -> list[slice]:
    """Return the windows of ``count`` texts, in order.

    >>> window_slices(20_000)
    [slice(0, 2048, None), slice(2048, 6144, None), slice(6144, 14336, None), slice(14336, 20000, None)]
    """
    slices, start, size = list[slice](), 0, count if count <= WHOLE else FIRST
    while start < count:
        slices.append(slice(start, min(start + size, count)))
        start, size = start + size, min(2 * size, MOST)
    return slices


def pack(lengths: Ints, budget: int) -> list[Ints]:
    """Group positions into batches of at most ``budget`` padded tokens, longest first.

    A text longer than the budget is a batch of its own. Equal lengths keep their order.

    >>> [batch.tolist() for batch in pack(np.array([2, 9, 2, 3]), budget=8)]
    [[1], [3, 0], [2]]
    """
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        batches.append(order[start:start + size])
        start += size
    return batches


def spread(jobs: Iterable[Job], workers: Sequence[Callable[[Job], Result]]) -> Generator[tuple[Job, Result]]:
    """Run each job on whichever worker is free, one thread per worker; yield (job, result) as they come.

    One worker runs in the calling thread. Workers are devices: with several, each holds its own copy of a model.
    """
    if len(workers) == 1:
        for job in jobs:
            yield job, workers[0](job)
        return
    stream = iter(jobs)
    with ThreadPoolExecutor(len(workers)) as pool:
        running: dict[Future[Result], tuple[Job, Callable[[Job], Result]]] = {}
        for worker, job in zip(workers, stream, strict=False):
            running[pool.submit(worker, job)] = (job, worker)
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                job, worker = running.pop(future)
                for following in stream:
                    running[pool.submit(worker, following)] = (following, worker)
                    break
                yield job, future.result()


def attempt(call: Callable[[], Result]) -> Result | None:
    """Return the result of a call; None if its device ran out of memory, which is freed for a smaller one."""
    import torch

    try:
        return call()
    except Exception as error:
        if not is_lack(error):
            raise
    torch.cuda.empty_cache()  # the error held the tensors of the call, so nothing was freed before this line
    return None


def by_characters(texts: Sequence[str]) -> InputWindow[list[str]]:
    """Return all texts as one window, by their characters: for models that tokenise each batch themselves."""
    return InputWindow(np.arange(len(texts)), np.array([len(text) for text in texts], np.int64),
                       lambda batch: [texts[i] for i in batch])


def run_batches(jobs: Sequence[Job], prepare: Callable[[Job], InputWindow[Inputs]], budget: int,
                models: Sequence[Model], work: Callable[[Model, Inputs], Result], room: Room, *, lanes: int = 1
                ) -> Iterator[tuple[Ints, Result]]:
    """Prepare windows and run their batches on whichever model is free; yield (positions, result) as they come.

    The next window is prepared in a thread while the models compute this one. A batch has at most ``budget`` padded
    tokens. One that does not fit into a device's memory is halved, and the size that fits is remembered in ``room``.
    With two lanes per model, one prepares and sends a batch while the device computes the other's.
    Raises MemlabError if one text alone does not fit.
    """
    def run(model: Model, window: InputWindow[Inputs], batch: Ints) -> list[tuple[Ints, Result]]:
        tokens = max(1, int(window.lengths[batch].max(initial=0)))
        size = max(1, room.get(model, len(batch) * tokens) // tokens)
        if len(batch) > size:
            return [pair for at in range(0, len(batch), size) for pair in run(model, window, batch[at:at + size])]
        result = attempt(lambda: work(model, window.batch(batch)))
        if result is not None:
            return [(window.positions[batch], result)]
        if len(batch) == 1:
            raise MemlabError(f"a text of {tokens} tokens does not fit into the device's memory",
                              fix="a smaller max_length, or device=cpu")
        room[model] = min(room.get(model, len(batch) * tokens), len(batch) // 2 * tokens)
        return run(model, window, batch)

    def worker(model: Model, job: tuple[InputWindow[Inputs], Ints]) -> list[tuple[Ints, Result]]:
        return run(model, *job)

    with ThreadPoolExecutor(1) as thread:  # it ends with this generator, also with one that is closed early
        batches = ((window, batch) for window in _ahead(jobs, prepare, thread)
                   for batch in pack(window.lengths, budget))
        with closing(spread(batches, [partial(worker, model) for _ in range(lanes) for model in models])) as done:
            for _, results in done:
                yield from results


def _ahead(jobs: Sequence[Job], prepare: Callable[[Job], Result], thread: ThreadPoolExecutor) -> Iterator[Result]:
    """Yield ``prepare(job)`` of each job in order; the next is under way while the caller uses this one."""
    if not jobs:
        return
    result = prepare(jobs[0])
    for job in jobs[1:]:
        following = thread.submit(prepare, job)
        yield result
        result = following.result()
    yield result
