"""Places of the searches of an arm, on a GPU or on the CPU: the number that decides, and their memory and disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memlab.errors import MissingFiles
from memlab.harness.gpu_plan import parts, size
from memlab.models.local.base import ModelFiles
from memlab.models.local.late_interaction import GPU_CELLS
from memlab.models.protocols import CHARACTERS, tokens_read
from memlab.pipeline import Pipeline
from memlab.search import faiss_gpu
from memlab.search.as_of import VisiblePool, memory_pools, of_kinds, pools
from memlab.search.dense import Dense
from memlab.search.exact import CELLS, Flat, gpu_pays, least_products
from memlab.search.faiss_index import IVFPQ, Approximate
from memlab.search.late_interaction import WeightedLate
from memlab.store.token_vectors import Precision, bytes_per_token, usual_precision
from memlab.tables import Tables, distinct_texts

CPU_RATE, CPU_START = 1e10, 1e-4
"""Multiply-adds a second of exact search on two cores, and seconds of each question beside them: 100 questions in
20,000 vectors of 1,024 numbers took 130 ms, 200 in 600 vectors 39 ms."""


PRODUCT_BYTES = 9
"""Bytes for each product of an exact search on a card: itself in fp32, the mask of days, what the choice of the best
takes. Measured on an H200: 2.2 GB beside the vectors for 2.7e8 products at a time, which is 8.1."""


@dataclass(frozen=True)
class Search:
    """One search.

    text: What happens where, and why. held: What it keeps on a card, and its GB. working_gb: What its products take.
    """

    text: str
    held: tuple[str, float] | None = None
    working_gb: float = 0.0


def searches(pipeline: Pipeline, tables: Tables, cards: bool) -> Iterator[Search]:
    """Yield the searches by vectors of an arm; ``tables`` hold its memories and queries, ``cards``: there are GPUs."""
    for slot, stage in pipeline.stages():
        for dense in parts(stage, Dense):
            yield _dense(slot, dense, tables, cards)
        for late in parts(stage, WeightedLate):
            yield _late(slot, late, tables, cards)


def _dense(slot: str, stage: Dense, tables: Tables, cards: bool) -> Search:
    index, dim = stage.index, dimensions(stage.embedder)
    name = f"{slot} ({type(index).__name__})"
    found = [pool for pool in pools(tables["queries"], tables["questions"], tables["memories"], stage.kinds)
             if len(pool.queries)]
    if not found:
        return Search(f"{name}: nothing to search")
    largest = max(len(pool.memories) for pool in found)
    head = f"{name}: {len(found):,} pool{'s' * (len(found) > 1)} of up to {largest:,} vectors"
    if dim is None:
        return Search(f"{head}; how many numbers a vector has is not known here, so where it is searched is not either")
    on_card = cards and getattr(index, "device", "auto") == "auto"
    indexed = [pool for pool in found if len(pool.memories) >= index.exact_below] if isinstance(
        index, Approximate) else []
    exact = _exact([pool for pool in found if len(pool.memories) < index.exact_below] if isinstance(index, Approximate)
                   else found, dim, on_card)
    if not isinstance(index, Approximate):
        text = f"{head} x {dim:,}; {exact.text}" if isinstance(index, Flat) else head
        return Search(text, exact.held, exact.working_gb)
    rule = f"FAISS from {index.exact_below:,} vectors a pool (exact_below), the largest has {largest:,}"
    texts = [f"{head} x {dim:,}; {rule}", *([_faiss(index, indexed, on_card)] if indexed else []),
             *([exact.text] if exact.text else [])]
    if indexed and on_card and index.gpu_obstacle() is None:
        gb = largest * (index.m + 8 if isinstance(index, IVFPQ) else 4 * dim + 8) / 1e9
        return Search("; ".join(texts), ("FAISS index", gb), faiss_gpu.SCRATCH / 1e9)
    return Search("; ".join(texts), exact.held, exact.working_gb)


def _exact(found: Sequence[VisiblePool], dim: int, on_card: bool) -> Search:
    """Return where pools are searched exactly; an empty text for none."""
    if not found:
        return Search("")
    products = [float(pool.visible.sum()) * dim for pool in found]
    sent = [len(pool.memories) * dim for pool in found]
    there = [on_card and gpu_pays(number, numbers) for number, numbers in zip(products, sent)]
    most = int(np.argmax(products))
    number, numbers, asked = products[most], sent[most], len(found[most].queries)
    milliseconds = 1000 * (number / CPU_RATE / asked + CPU_START)
    rule = f"exact on the card from {least_products(numbers):.1e} multiply-adds, the largest search has {number:.1e}"
    cpu = f"left to the CPU, which takes about {milliseconds:.1f} ms a question"
    if not on_card:
        return Search(f"exact on the CPU, about {milliseconds:.1f} ms a question")
    if not any(there):
        return Search(f"{rule}: {cpu}")
    where = "on the card" if all(there) else f"{sum(there):,} on the card, {len(there) - sum(there):,} on the CPU"
    held = max(numbers for numbers, yes in zip(sent, there) if yes) * 4 / 1e9
    cells = min(CELLS, max(len(pool.queries) * len(pool.memories) for pool in found))
    return Search(f"{rule}: {where}", ("vectors searched exactly", held), PRODUCT_BYTES * cells / 1e9)


def _faiss(index: Approximate, found: Sequence[VisiblePool], on_card: bool) -> str:
    """Return where pools are searched by an index."""
    obstacle = index.gpu_obstacle()
    if not on_card or obstacle is not None:
        return "FAISS on the CPU" + (f" ({obstacle or 'FAISS has no such index for GPUs'})" if on_card else "")
    filtered = sum(int((pool.visible < len(pool.memories)).sum()) for pool in found)
    asked = sum(len(pool.queries) for pool in found)
    dated = f"; {filtered:,} of {asked:,} questions are filtered by date, and stay on the CPU" if filtered else ""
    return f"FAISS on the card, if its build is one for GPUs{dated}"


def _late(slot: str, stage: WeightedLate, tables: Tables, cards: bool) -> Search:
    model = next(parts(stage.matcher, ModelFiles), None)
    width = size(model)[1] if model else None
    keys, _ = distinct_texts(tables["texts"], of_kinds(tables["memories"], stage.kinds)["key_id"])
    limit = getattr(model, "max_length", None)
    tokens = {text: tokens for text, tokens in zip(keys["text_id"], tokens_read(
        keys["text"].str.len_chars().to_numpy().astype(np.int64), limit))}
    total, text_of = sum(tokens.values()), tables["memories"]["key_id"].to_list()
    name = f"{slot} ({type(stage).__name__}): about {total:,.0f} token vectors"
    if width is None:
        return Search(f"{name}; how many numbers they have is not known here")
    precision = _precision(stage, width)
    disk = total * bytes_per_token(width, precision) / 1e9
    largest = max((sum(tokens[text] for text in {text_of[row] for row in pool.memories.tolist()})
                   for pool in memory_pools(tables["memories"], stage.kinds)), default=0.0)
    on_card = cards and model is not None and model.device != "cpu"
    held = largest * bytes_per_token(width, precision) / 1e9
    text = (f"{name} x {width:,} numbers in {precision}: {gigabytes(disk)} of disk in the store (tokens estimated, "
            f"{CHARACTERS} characters each); matched on {'the card' if on_card else 'the CPU'}")
    return Search(text, ("token vectors matched", held) if on_card else None, on_card * 4 * GPU_CELLS / 1e9)


def _precision(stage: WeightedLate, width: int) -> Precision:
    try:
        return stage.number_format()
    except MissingFiles:
        return usual_precision(width)


def dimensions(embedder: Any) -> int | None:
    """Return how many numbers a vector of an embedder has; None if that is not known without its weights."""
    if stated := getattr(embedder, "dimensions", None):
        return int(stated)
    return size(embedder)[1] if isinstance(embedder, ModelFiles) else None


def gigabytes(gb: float) -> str:
    """Return a size in GB, or in MB if it is small.

    >>> gigabytes(12.34), gigabytes(0.0567), gigabytes(1e-5)
    ('12.3 GB', '57 MB', 'under 1 MB')
    """
    if gb < 0.001:
        return "under 1 MB"
    return f"{gb:,.1f} GB" if gb >= 1 else f"{1000 * gb:,.0f} MB"
