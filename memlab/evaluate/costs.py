"""Costs of an arm in money and in time, from the replies and seconds that its manifest records and dated prices.

A reply of the store counts as if it was asked now, so that an arm costs the same whoever asked first. Judges and
attributions are no part of a system and cost nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.pipeline.slots import AFTER_ANSWERS, SLOTS
from memlab.support.errors import MemlabError
from memlab.support.foreign import load_yaml
from memlab.support.paths import home, shipped_path
from memlab.support.text.display import is_number

PRICES = "prices.yaml"
"""File of ``conf``, and of ``$MEMLAB_HOME`` for prices of one's own."""

WRITTEN = tuple(slot.name for slot in SLOTS if slot.phase == "write")
"""Slots that are paid once for the sessions; all others are paid for each question."""

STAGES = {"classification": ("query", "classify"), "expansion": ("decompose", "expand", "time"),
          "search": ("dense", "lexical", "late", "iterate", "score"), "relations": ("neighbours",),
          "time and boosts": ("boost", "fuse", "window"), "rerank": ("rerank",),
          "context": ("rollup", "measure", "select", "pack", "graph"), "answer": ("answer",)}
"""Stage of a published latency table -> slots."""

COMPLETE = ("selected/turn/recall_all", "selected/session/recall_all")
"""The share of questions with complete evidence: of turns, or where turns are not known of sessions."""


@dataclass(frozen=True)
class Price:
    """The price of a chat model: US dollars per million tokens read and written, the date, and who prints it."""

    input: float
    output: float
    date: str
    source: str

    def dollars(self, read: float, written: float) -> float:
        """Return the price of so many tokens.

        >>> Price(2.5, 10.0, "2024-12", "").dollars(2760, 100)
        0.0079
        """
        return round((read * self.input + written * self.output) / 1e6, 12)


@dataclass(frozen=True)
class Spending:
    """Replies and dollars of an arm: writing in all, one question; dollars are None where a model has no price."""

    replies: int
    read: int
    written: int
    writing: float | None
    question: float | None
    unpriced: tuple[str, ...]


def price_table(own: Path | None = None) -> tuple[dict[str, Price], Price, int]:
    """Return model -> price, and the price and reply tokens of the reader that stands in for one not asked.

    Prices of ``own`` (``$MEMLAB_HOME/prices.yaml``) come first; raises MemlabError if that file cannot be read.
    """
    content: Any = load_yaml((shipped_path("conf") / PRICES).read_text(encoding="utf-8"))
    rows: dict[str, Any] = dict(content["models"])
    own = own or home() / PRICES
    try:
        if own.is_file():
            rows |= load_yaml(own.read_text(encoding="utf-8"))["models"]
        known = {name: Price(float(row["input"]), float(row["output"]), str(row["date"]), str(row["source"]))
                 for name, row in rows.items() if row["input"] is not None and row["output"] is not None}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise MemlabError(f"the prices cannot be read ({type(error).__name__})", where=str(own),
                          fix="models: {NAME: {input: 2.5, output: 10.0, date: 2024-12, source: WHO}}") from error
    return known, known[content["reader"]["model"]], content["reader"]["reply_tokens"]


def spending(manifest: Mapping[str, Any], prices: Mapping[str, Price]) -> Spending:
    """Return what the replies of an arm cost; an arm that asked no model costs 0."""
    asked = [(slot, model, of) for slot, model, of in replies(manifest) if slot not in AFTER_ANSWERS]
    unpriced = sorted({model for _, model, _ in asked} - prices.keys())
    sums = {True: 0.0, False: 0.0}
    for slot, model, of in asked:
        if model in prices:
            sums[slot in WRITTEN] += prices[model].dollars(of["prompt_tokens"], of["completion_tokens"])
    missing = {writes: any(model not in prices for slot, model, _ in asked if (slot in WRITTEN) == writes)
               for writes in sums}
    questions = max(int(manifest["questions"]), 1)
    total = {name: int(sum(of[name] for *_, of in asked)) for name in ("replies", "prompt_tokens", "completion_tokens")}
    return Spending(total["replies"], total["prompt_tokens"], total["completion_tokens"],
                    None if missing[True] else sums[True], None if missing[False] else sums[False] / questions,
                    tuple(unpriced))


def latency(manifest: Mapping[str, Any]) -> dict[str, float]:
    """Return stage -> mean milliseconds of a question: its slots' own seconds and its replies, one after another.

    Encodings of questions and approximate indexes, which the store keeps, are not in it. Stages without a slot that ran
    are left out.
    """
    questions, costs = max(int(manifest["questions"]), 1), manifest["costs"]
    waits: dict[str, float] = {}
    for slot, _, of in replies(manifest):
        waits[slot] = waits.get(slot, 0.0) + of["seconds"]
    means = {stage: 1000 * sum(max(0.0, costs.get(slot, 0.0)) + waits.get(slot, 0.0) for slot in slots) / questions
             for stage, slots in STAGES.items() if any(slot in costs for slot in slots)}
    return means | ({"total": sum(means.values())} if means else {})


def replies(manifest: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, float]]]:
    """Return (slot, chat model, totals) of the replies of an arm, judges included."""
    return [(slot, model, of) for slot, models in manifest["replies"].items() for model, of in models.items()]


def per(dollars: float | None, share: Any) -> float | None:
    """Return the dollars for one success, of which there is a share of questions; None where there is none.

    >>> per(0.002, 0.5), per(0.0, 0.5), per(0.002, 0.0), per(None, 0.5)
    (0.004, 0.0, None, None)
    """
    return dollars / share if dollars is not None and is_number(share) and share > 0 else None
