"""The part of a plan about GPUs: what lies where, what is searched where, and the lines that start servers and the run.

``gpus=auto`` takes the cards of this machine; ``gpus=24`` and ``gpus=[80,80]`` name cards of so many GB.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.markup import escape
from rich.table import Column, Table

from memlab.errors import Faults, MemlabError
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
)
from memlab.harness.gpu_searches import Search, gigabytes, searches
from memlab.models.local.backend import gpu_count
from memlab.runtime.console import Console
from memlab.serving import environment
from memlab.serving.settings import short_name
from memlab.tables import Tables


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
    for card, size in enumerate(layout.cards):
        rows = [(what, "size unknown" if gb is None else f"{gb:.2f}") for at, what, gb in layout.rows if at == card]
        for i, (what, gb) in enumerate([*rows, ("free", f"{layout.left(card):.2f}")]):
            table.add_row("" if i else f"{card}: {size:.1f} GB", escape(what), gb, end_section=not rows[i:])
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
    words = [word for word in shlex.split(arm.command)[3:] if not word.startswith(("plan=", "gpus="))]
    keys = [word.partition("=")[0] for word in extra]
    words = [*(word for word in words if word.partition("=")[0] not in keys), *extra]
    on = f"CUDA_VISIBLE_DEVICES={','.join(names[card] for card in layout.run)} " * (several and bool(layout.run))
    return [*lines, f"{on}memlab run {shlex.join(words)}".rstrip()]


def _places(server: Placed, arm: Arm) -> list[str]:
    """Return the settings that name a server's model."""
    config = OmegaConf.create(arm.config)
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
