"""Layout of the models of a sweep and of its servers on GPUs, and a refusal of what does not fit.

Sizes are in GB (1e9 bytes). Weights and widths are read from the models' files, or for models that are not on this
machine from ``conf/serve``; the rest of a process's memory is estimated from the constants below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from memlab.errors import MemlabError, MissingFiles
from memlab.harness.arm import Arm
from memlab.models.local.backend import GPU_BUDGET
from memlab.models.local.base import ModelFiles
from memlab.models.protocols import Embedder, PairScorer, models_in, parts
from memlab.models.server import AUTO
from memlab.serving.settings import (
    EIGHT_BITS,
    MOST_SHARE,
    OWN_GB,
    Settings,
    served_names,
    settings,
    short_name,
    smaller_forms,
)

CUDA_GB = 0.6
"""What CUDA, its libraries and PyTorch take of a card in each process, without any tensor. Estimated, not measured."""

ACTIVATIONS, BATCHES = 11.5, 2
"""Arrays of (padded tokens, width) that a batch has in memory at its peak, and batches under way on a card. An encoder
in fp16 with the inner layer 4 times as wide holds its input, that layer before and after its function, and one more.
Measured on an H200 at the size of bge-m3, two batches of 65,536 tokens: 2.2 GB with turns, 3.1 GB with whole sessions,
which are 8 and 11.4 such arrays."""

UNKNOWN_GB = 2.0
"""What a model counts for whose size neither its files nor ``conf/serve`` tell: a billion weights in fp16."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

PARALLEL = (1, 2, 4, 8)
"""Numbers of cards that may share a model's weights."""


@dataclass(frozen=True)
class Loaded:
    """A model that the process of a run loads.

    gb: Its weights on a GPU; None: unknown. batch_gb, least_gb: Working memory of its largest batches, and of one text.
    device: As it is configured. smaller: The override that makes its batches a quarter of the usual ones.
    """

    label: str
    gb: float | None
    batch_gb: float
    least_gb: float
    device: str
    smaller: str


@dataclass(frozen=True)
class Served:
    """A model that a server on this machine answers for; ``slots``: where the configuration names it."""

    settings: Settings
    slots: tuple[str, ...] = ()
    window: int | None = None


@dataclass(frozen=True)
class Placed:
    """A server with its cards, its share of each, and the options of ``memlab serve`` that make it fit."""

    served: Served
    settings: Settings
    cards: tuple[int, ...]
    share: float
    options: tuple[str, ...]

    def contents(self, card: float) -> str:
        """Return what the server does with its part of a card of so many GB."""
        name = f"server of {short_name(self.settings.model)}"
        if not self.settings.weights_gb:
            return f"{name} (size unknown)"
        weights = self.settings.loaded_gb() / self.settings.tensor_parallel
        rest = max(0.0, self.share * card - weights - OWN_GB)
        return f"{name}: weights {weights:.1f}, vLLM itself {OWN_GB}, attention cache {rest:.1f}"


@dataclass(frozen=True)
class CardLayout:
    """The assignment of models to cards. rows: (card, what, GB or None if unknown)."""

    cards: tuple[float, ...]
    run: tuple[int, ...]
    servers: tuple[Placed, ...]
    rows: tuple[tuple[int, str, float | None], ...]

    def left(self, card: int) -> float:
        """Return the GB of a card that nothing takes."""
        return self.cards[card] - sum(gb or 0.0 for at, _, gb in self.rows if at == card)


def setting_fault(value: Any) -> str:
    """Return why a value of the setting ``gpus`` is none; empty if it is one.

    >>> setting_fault("auto"), setting_fault(24), setting_fault([80, 80])
    ('', '', '')
    >>> setting_fault([80, -1])
    'gpus: [80, -1] is neither auto nor the GB of a card (24) or of several ([80,80])'
    """
    numbers = value if isinstance(value, list) else [value]
    good = value == "auto" or (numbers and all(type(one) in (int, float) and 0 < one < 10_000 for one in numbers))
    return "" if good else f"gpus: {value!r:.60} is neither auto nor the GB of a card (24) or of several ([80,80])"


def run_models(arms: Sequence[Arm]) -> list[Loaded]:
    """Return the models that the arms load in their own process and may put on a GPU, each once."""
    found: dict[tuple[Any, ...], Loaded] = {}
    for arm in arms:
        for _, stage in arm.pipeline.stages():
            for model in parts(stage, ModelFiles):
                key = (type(model), str(model.path), model.revision, model.dtype, model.device)
                if model.device != "cpu" and key not in found:
                    found[key] = _run_model(model)
    return list(found.values())


def _run_model(model: ModelFiles) -> Loaded:
    kind = "encoder" if isinstance(model, Embedder) else "reranker" if isinstance(model, PairScorer) else "model"
    gb, width = size(model)
    itemsize, longest = (4 if model.dtype == "fp32" else 2), int(getattr(model, "max_length", None) or 512)
    place = model.path_option.removesuffix(".path")
    smaller = f"{place}.token_budget={GPU_BUDGET // 4}"
    if texts := getattr(model, "batch", None):  # FlagEmbedding counts texts, and has one batch under way
        most, smaller = texts * longest, f"{place}.batch={max(1, texts // 4)}"
    else:
        most = BATCHES * int(getattr(model, "token_budget", None) or GPU_BUDGET)
    per_token = ACTIVATIONS * (width or 0) * itemsize / 1e9
    return Loaded(f"{kind} {model.name}", gb, most * per_token, longest * per_token, model.device, smaller)


@lru_cache(maxsize=64)
def size(model: ModelFiles) -> tuple[float | None, int | None]:
    """Return the GB of a model's weights on a GPU, and the numbers of a token's vector; None where unknown."""
    itemsize = 4 if model.dtype == "fp32" else 2
    try:
        weights, width = model.size()
    except MissingFiles:
        known = next((one for one in map(settings, served_names()) if one.model == str(model.path)), None)
        return (known.weights_gb and known.weights_gb * itemsize / 2, known.width) if known else (None, None)
    return (None if weights is None else weights * itemsize / 1e9), width


def server_models(arms: Sequence[Arm]) -> list[Served]:
    """Return the models that the arms ask of servers on this machine, each once."""
    found: dict[str, Served] = {}
    for arm in arms:
        for slot, stage in arm.pipeline.stages():
            for model in models_in(stage):
                url = getattr(model, "url", None)
                if not url or (url != AUTO and urlsplit(str(url)).hostname not in LOOPBACK):
                    continue
                name = str(getattr(model, "model", ""))
                one = found.get(name) or Served(_settings(name))
                window = max(one.window or 0, getattr(model, "window", None) or 0) or None
                found[name] = replace(one, slots=tuple(dict.fromkeys((*one.slots, slot))), window=window)
    return list(found.values())


def _settings(name: str) -> Settings:
    try:
        return settings(name)
    except MemlabError:  # a name that only its server knows
        return Settings(model=name)


def forms(one: Served) -> Iterator[tuple[Settings, tuple[str, ...]]]:
    """Yield the forms in which a model can be served, with the options for each, the one that changes least first."""
    published = [one.settings]
    eight_bits = [replace(one.settings, quantization=EIGHT_BITS)] if one.settings.can_be_quantised() else []
    for form in (*published, *eight_bits, *smaller_forms(one.settings.model).values()):
        options = ("--quantization", EIGHT_BITS) if form.quantization == EIGHT_BITS else ()
        yield form, options
        if one.window and form.max_len and one.window < form.max_len:
            yield form.with_window(one.window), (*options, "--max-len", str(one.window))


def lay_out(models: Sequence[Loaded], servers: Sequence[Served], cards: Sequence[float], search_gb: float = 0.0,
            held: Sequence[tuple[str, float]] = ()) -> CardLayout:
    """Place the models of a run and its servers on cards of so many GB.

    The run has the first card, and those that no server needs. A server has cards of its own where there are enough,
    and else the rest of those of the run. Raises MemlabError if that does not fit.

    Args:
        models: What the run loads itself.
        servers: What servers load.
        cards: GB of each.
        search_gb: Working memory of the searches.
        held: What searches keep on the first card if there is room for it without a smaller form of a server; else it
            is sent there piece by piece for each search.
    """
    plain = _lay_out(models, servers, cards, search_gb, ())
    if not held:
        return plain
    with suppress(MemlabError):
        roomy = _lay_out(models, servers, cards, search_gb, held)
        if [one.options for one in roomy.servers] == [one.options for one in plain.servers]:
            return roomy
    return replace(plain, rows=(*plain.rows, *((0, f"{what}, sent in pieces", 0.0) for what, _ in held)))


def _lay_out(models: Sequence[Loaded], servers: Sequence[Served], cards: Sequence[float], search_gb: float,
             held: Sequence[tuple[str, float]]) -> CardLayout:
    used = bool(models or search_gb or held)
    rows, own = _process(on_card(models, 0), search_gb, held) if used else ([], 0.0)
    placed: list[Placed] = []
    taken = [0.0] * len(cards)
    for number, one in enumerate(servers):
        found = _place(one, cards, taken, own, len(servers) - number)
        if found is None:
            least = min(form.needed_gb() for form, _ in forms(one))
            beside = f", the models of the run {own:.1f} GB ({_list_rows(rows)})" if own else ""
            for other in placed:
                beside += f", the server of {short_name(other.settings.model)} {other.settings.needed_gb():.1f} GB"
            apart = "run the arms of each server by themselves, " if placed else ""
            smaller = _smaller_batches(models, max(cards) - sum(taken) - least)
            raise MemlabError(
                f"the server of {short_name(one.settings.model)} needs {least:.1f} GB in its smallest form{beside}; "
                f"{_cards(cards)} cannot hold that",
                where="gpus", fix=f"{apart}a smaller model (chat=NAME), its server on another machine (chat.url=URL), "
                                  f"or more cards (gpus=[80,80]){smaller}")
        placed.append(found)
        for card in found.cards:
            taken[card] += found.share * cards[card]
    shared = {card for server in placed for card in server.cards}
    run = tuple(card for card in range(len(cards)) if card == 0 or card not in shared) if used else ()
    where: list[tuple[int, str, float | None]] = []
    for position, card in enumerate(run):
        first = position == 0
        rows, needed = _process(on_card(models, position), search_gb * first, held if first else ())
        if needed + taken[card] > cards[card]:
            raise MemlabError(f"the models of the run need {needed:.1f} GB ({_list_rows(rows)}), and have a card of "
                              f"{cards[card]:g} GB", where="gpus",
                              fix=f"a larger card{_smaller_batches(models, cards[card] - taken[card])}")
        where += [(card, what, gb) for what, gb in rows]
    for model in models:
        if (number := int(model.device.partition(":")[2] or 0)) >= len(run):
            raise MemlabError(f"{model.label} is to run on cuda:{number}, and the run has {len(run)} of "
                              f"{len(cards)} card(s)", where="gpus", fix="device=auto, or more cards")
    where += [(card, server.contents(cards[card]), server.share * cards[card])
              for server in placed for card in server.cards]
    return CardLayout(tuple(cards), run, tuple(placed), tuple(where))


def on_card(models: Sequence[Loaded], position: int) -> list[Loaded]:
    """Return the models that are loaded on one of the cards that a run sees."""
    return [model for model in models if model.device in ("auto", f"cuda:{position}")
            or (model.device == "cuda" and not position)]


def _process(models: Sequence[Loaded], search_gb: float, held: Sequence[tuple[str, float]]
             ) -> tuple[list[tuple[str, float | None]], float]:
    """Return what the process of a run has on a card, and what it needs there; models work one after the other.

    What is held takes at most half of what is free, and the memory of batches is free while it is searched.
    """
    working = max([search_gb, *(model.batch_gb for model in models)])
    rows: list[tuple[str, float | None]] = [*map(_weights, models), *held,
                                            ("largest batches", working), ("CUDA of the run", CUDA_GB)]
    return rows, sum(gb or 0.0 for _, gb in rows) + sum(max(0.0, gb - working) for _, gb in held)


def _weights(model: Loaded) -> tuple[str, float]:
    """Return what a model's weights are called and count."""
    return (model.label, model.gb) if model.gb is not None else (f"{model.label} (size unknown, a guess)", UNKNOWN_GB)


def least_gb(models: Sequence[Loaded]) -> float:
    """Return the GB without which a run cannot work: weights, CUDA, and a batch of one text."""
    weights = sum(_weights(model)[1] for model in models)
    return CUDA_GB + weights + max((model.least_gb for model in models), default=0.0)


def _place(one: Served, cards: Sequence[float], taken: Sequence[float], own: float, waiting: int) -> Placed | None:
    """Return the first form of a model that fits, on as few cards as hold it; ``waiting`` servers have no card yet."""
    for form, options in forms(one):
        for number in (n for n in PARALLEL if n <= len(cards)):
            shape = replace(form, tensor_parallel=number, data_parallel=1)
            free = [card for card in range(len(cards)) if not taken[card] and (card or not own)]
            alone = len(free) >= number
            group = free[-number:] if alone else list(range(len(cards)))[-number:]
            room = [min(MOST_SHARE * cards[card], cards[card] - taken[card] - own * (card == 0)) for card in group]
            most, smallest = min(gb / cards[card] for gb, card in zip(room, group)), min(cards[card] for card in group)
            least = shape.needed_gb() / number / smallest
            if most <= 0 or least > most:
                continue
            if not alone:
                most = max(least, most / waiting)
            if form.gpu_memory is not None:
                most = min(most, max(least, form.gpu_memory))
            parallel = ("--tensor-parallel", str(number)) if number != form.tensor_parallel else ()
            return Placed(one, shape, tuple(group), _down(most, least), (*options, *parallel))
    return None


def _down(share: float, least: float) -> float:
    """Return a share rounded down to hundredths, or to thousandths where that would be too little."""
    rounded = int(share * 100 + 1e-9) / 100
    return rounded if rounded >= least else int(share * 1000 + 1e-9) / 1000


def _list_rows(rows: Sequence[tuple[str, float | None]]) -> str:
    return ", ".join(f"{what} {'of unknown size' if gb is None else f'{gb:.1f}'}" for what, gb in rows)


def _cards(cards: Sequence[float]) -> str:
    sizes = ", ".join(f"{card:g}" for card in cards)
    return f"{'a card' if len(cards) == 1 else 'cards'} of {sizes} GB"


def _smaller_batches(models: Sequence[Loaded], room: float) -> str:
    """Return words for batches a quarter as large, where the models of a run then fit into so many GB."""
    working = max((model.batch_gb for model in models), default=0.0) / 4
    if not models or CUDA_GB + sum(_weights(model)[1] for model in models) + working > room:
        return ""
    return f", or smaller batches ({' '.join(dict.fromkeys(model.smaller for model in models))})"
