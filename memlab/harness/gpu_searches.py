"""Searches on GPUs: where each search of an arm runs, and the part of a plan about GPUs.

``gpus=auto`` takes the cards of this machine; ``gpus=24`` and ``gpus=[80,80]`` name cards of so many GB.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape
from rich.table import Column, Table

from memlab.errors import Faults, MemlabError, MissingFiles
from memlab.harness.arm import Arm
from memlab.harness.gpu_plan import (
    UNKNOWN_GB,
    CardLayout,
    Loaded,
    Placed,
    Served,
    forms,
    lay_out,
    least_gb,
    on_card,
    run_models,
    server_models,
    size,
)
from memlab.models.local.backend import gpu_count
from memlab.models.local.base import ModelFiles
from memlab.models.local.late_interaction import GPU_CELLS
from memlab.models.protocols import CHARACTERS, parts, tokens_read
from memlab.pipeline import Pipeline
from memlab.runtime.console import Console
from memlab.search import faiss_gpu
from memlab.search.dense import Dense
from memlab.search.exact import CELLS, Flat, gpu_pays, least_products
from memlab.search.faiss_index import IVFPQ, Approximate
from memlab.search.hits import VisiblePool, memory_pools, of_kinds, pools
from memlab.search.late_interaction import WeightedLate
from memlab.serving import environment
from memlab.serving.settings import short_name
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
    """Return the dimension of an embedder's vectors; None if only its weights state it."""
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


def cards_of_setting(settings: DictConfig) -> list[float] | None:
    """Return the GB of the cards that the setting ``gpus`` names; None for auto."""
    value: Any = OmegaConf.select(settings, "gpus")
    if value is None or value == "auto":
        return None
    return [float(one) for one in ([value] if isinstance(value, int | float) else value)]


def visible_cards() -> list[float]:
    """Return the GB of the cards of this machine, also where this memlab's PyTorch cannot use them."""
    if count := gpu_count():
        import torch

        return [torch.cuda.get_device_properties(number).total_memory / 1e9 for number in range(count)]
    return [mib * 2**20 / 1e9 for mib in environment.gpus()]


def print_cards(settings: DictConfig, arms: Sequence[tuple[Arm, Tables | None]], out: Console) -> None:
    """Print the plan for the cards; raise Faults if it does not fit. Tables of None are not known before a run.

    Without a card it is printed for a profile alone, with the cards that it needs.
    """
    models, servers = run_models([arm for arm, _ in arms]), server_models([arm for arm, _ in arms])
    if not (models or servers):
        return
    given = cards_of_setting(settings)
    cards = visible_cards() if given is None else given
    usable = given is not None or bool(gpu_count())
    if not cards and not OmegaConf.select(settings, "hydra.runtime.choices.profile"):
        return
    found = [one for arm, tables in arms if tables is not None for one in searches(arm.pipeline, tables, usable)]
    if cards:
        if not usable:
            out.print("this memlab's PyTorch is a build for CPUs: its own models run there, and servers have the cards")
            models = []
        layout = _lay_out(models, servers, cards, found if usable else [])
        out.print(_table(layout))
    else:
        out.print(f"cards: none is seen here, so models run on the CPU. {_needs(models, servers)}. gpus=24 (GB of a "
                  "card; or 80, 141, [80,80]) plans for cards")
    for text in dict.fromkeys(one.text for one in found):
        out.print(escape(text))
    if any(tables is None for _, tables in arms):
        out.print("the searches of some arms are not known before a model has made their memories")
    if cards:
        out.print("to type, in this order:")
        names = environment.visible_names(len(cards)) if given is None else [str(card) for card in range(len(cards))]
        for line in commands(layout, arms[0][0], names):
            out.print(f"  {escape(line)}")


def _lay_out(models: Sequence[Loaded], servers: Sequence[Served], cards: Sequence[float], found: Sequence[Search]
              ) -> CardLayout:
    held = {what: gb for what, gb in sorted(one.held for one in found if one.held)}  # the largest of each
    try:
        return lay_out(models, servers, cards, max((one.working_gb for one in found), default=0.0), [*held.items()])
    except MemlabError as error:
        raise Faults([str(error)]) from None


def _needs(models: Sequence[Loaded], servers: Sequence[Served]) -> str:
    batches = max((model.batch_gb for model in models), default=0.0)
    own = least_gb(models) + batches - max((model.least_gb for model in models), default=0.0)
    unknown = [model.label for model in models if model.gb is None]
    text = f"On a card the run takes {own:.1f} GB" + (
        f", with {UNKNOWN_GB:g} for {', '.join(unknown)} (size unknown)" if unknown else "")
    for one in servers:
        whole, smallest = one.settings.needed_gb(), min(form.needed_gb() for form, _ in forms(one))
        text += (f", and a server of {short_name(one.settings.model)} on the same or another card "
                 + (f"{whole:.1f} GB ({smallest:.1f} GB in its smallest form)" if whole else "(size unknown)"))
    return text


def _table(layout: CardLayout) -> Table:
    table = Table(Column("card", no_wrap=True), Column("what it holds", overflow="fold"),
                  Column("GB", justify="right", no_wrap=True), show_edge=False)
    for card, memory in enumerate(layout.cards):
        rows = [(what, "size unknown" if gb is None else f"{gb:.2f}") for at, what, gb in layout.rows if at == card]
        for i, (what, gb) in enumerate([*rows, ("free", f"{layout.left(card):.2f}")]):
            table.add_row("" if i else f"{card}: {memory:.1f} GB", escape(what), gb, end_section=not rows[i:])
    return table


def commands(layout: CardLayout, arm: Arm, names: Sequence[str]) -> list[str]:
    """Return the lines that start the servers, and then the run; ``names`` are those of the cards."""
    several = len(layout.cards) > 1
    lines = []
    extra: list[str] = []
    for server in layout.servers:
        on = f"CUDA_VISIBLE_DEVICES={','.join(names[card] for card in server.cards)} " * several
        lines.append(f"{on}memlab serve {short_name(server.settings.model)} --detach --gpu-memory {server.share:g}"
                     + "".join(f" {option}" for option in server.options))
        if server.settings.model != server.served.settings.model:  # a published form of its own name
            extra += [f"{place}.model={server.settings.model}" for place in _places(server, arm)]
    words = [word for word in shlex.split(arm.command)[2:] if not word.startswith(("plan=", "gpus="))]
    keys = [word.partition("=")[0] for word in extra]
    words = [*(word for word in words if word.partition("=")[0] not in keys), *extra]
    on = f"CUDA_VISIBLE_DEVICES={','.join(names[card] for card in layout.run)} " * (several and bool(layout.run))
    return [*lines, f"{on}memlab run {shlex.join(words)}".rstrip()]


def _places(server: Placed, arm: Arm) -> list[str]:
    """Return the settings that name a server's model."""
    config = OmegaConf.create({**arm.settings})
    return [place for place in ("chat", "judge_chat", "embedder", "cross_encoder")
            if OmegaConf.select(config, f"{place}.model") == server.served.settings.model]


def check_cards(settings: DictConfig, arms: Sequence[Arm]) -> None:
    """Raise Faults, before a model is loaded, if the models of a run cannot fit the cards.

    Cards that are named must hold its servers too. On the cards of this machine that are free in part, a server may
    run already: the models need their weights and one text at a time, since larger batches are halved.
    """
    models = run_models(arms)
    if (cards := cards_of_setting(settings)) is not None:
        _lay_out(models, server_models(arms), cards, [])
        return
    free = environment.free_memory() if models and gpu_count() else []
    if not free or len(free) != gpu_count():  # a card cut in parts does not say how much of each is free
        return
    faults = []
    for number, mib in enumerate(free):
        here = on_card(models, number)
        needed, gb = least_gb(here), mib * 2**20 / 1e9
        if here and needed > gb:
            faults.append(
                f"card {number}: {gigabytes(gb)} are free, and the models of this run need {gigabytes(needed)} or more "
                f"there ({', '.join(model.label for model in here)}). Fix: end what holds the card (nvidia-smi), start "
                "its server with less (memlab serve MODEL --gpu-memory SHARE), or choose another card "
                "(CUDA_VISIBLE_DEVICES=N)")
    if faults:
        raise Faults(faults)
