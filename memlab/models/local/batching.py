"""Texts to batches of tokens: tokenised once, sorted by token length, packed to a token budget.

A batch costs its padded size (longest text x number of texts), so texts of one length belong together. If the whole
list is sorted, one or two percent of the tokens are padding, for any texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.protocols import Ints

CHUNK = 8192
"""Texts per call of the tokenizer: enough for its threads, and small beside the texts themselves."""

Job = TypeVar("Job")
Result = TypeVar("Result")
Model = TypeVar("Model")

_ROOM: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
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

    def padded(self, positions: Ints, pad: int) -> tuple[Ints, Ints]:
        """Return ids (b, length) filled with ``pad`` on the right, and the mask (b, length) of real tokens."""
        lengths = self.lengths[positions]
        columns = np.arange(int(lengths.max(initial=0)))
        mask = columns < lengths[:, None]
        ids = np.full(mask.shape, pad, np.int64)
        ids[mask] = self.ids[(self.starts[positions, None] + columns)[mask]]
        return ids, mask.astype(np.int64)


def join(rows: Iterable[Sequence[int]]) -> TokenRows:
    """Return rows of token ids, end to end.

    >>> join([[5, 6], [7]]).padded(np.array([0, 1]), pad=0)[0].tolist()
    [[5, 6], [7, 0]]
    """
    parts = [np.asarray(row, np.int32) for row in rows]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]).astype(np.int64)
    return TokenRows(np.concatenate([*parts, np.zeros(0, np.int32)]), starts)


def tokenise(tokenizer: Any, texts: Sequence[str], max_length: int, *, special: bool = True) -> TokenRows:
    """Tokenise texts with a transformers tokenizer, each cut to ``max_length`` tokens."""
    def rows() -> Iterator[list[int]]:
        for start in range(0, len(texts), CHUNK):
            yield from tokenizer(list(texts[start:start + CHUNK]), truncation=True, max_length=max_length,
                                 padding=False, add_special_tokens=special, return_attention_mask=False,
                                 return_token_type_ids=False)["input_ids"]

    return join(rows())


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


def padding_share(lengths: Ints, batches: Sequence[Ints]) -> float:
    """Return the share of the padded tokens that is padding; 0 when there are none.

    >>> padding_share(np.array([4, 2]), [np.array([0, 1])])
    0.25
    """
    padded = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1.0 - int(lengths.sum()) / padded if padded else 0.0


def spread(jobs: Iterable[Job], workers: Sequence[Callable[[Job], Result]]) -> Iterator[tuple[Job, Result]]:
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
    except torch.OutOfMemoryError:
        pass  # the error holds the tensors of the call until it is gone, so nothing is freed before this line
    torch.cuda.empty_cache()
    return None


def run_batches(batches: Iterable[Ints], lengths: Ints, models: Sequence[Model], work: Callable[[Model, Ints], Result],
                *, lanes: int = 1) -> Iterator[tuple[Ints, Result]]:
    """Run batches of positions on whichever model is free; yield (batch, result) as they come.

    A batch that does not fit into a device's memory is halved, and the size that fits is remembered for the model.
    With two lanes per model, one prepares and sends a batch while the device computes the other's.
    Raises MemlabError if one text alone does not fit.
    """
    def run(model: Model, batch: Ints) -> list[tuple[Ints, Result]]:
        tokens = max(1, int(lengths[batch].max(initial=0)))
        size = max(1, _ROOM.get(model, len(batch) * tokens) // tokens)
        if len(batch) > size:
            return [pair for at in range(0, len(batch), size) for pair in run(model, batch[at:at + size])]
        result = attempt(partial(work, model, batch))
        if result is not None:
            return [(batch, result)]
        if len(batch) == 1:
            raise MemlabError(f"a text of {tokens} tokens does not fit into the device's memory",
                              fix="a smaller max_length, or device=cpu")
        _ROOM[model] = min(_ROOM.get(model, len(batch) * tokens), len(batch) // 2 * tokens)
        return run(model, batch)

    for _, results in spread(batches, [partial(run, model) for _ in range(lanes) for model in models]):
        yield from results
