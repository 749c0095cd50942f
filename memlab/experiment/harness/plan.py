"""The plan of a sweep (``plan=true``): what would run, what is cached, and the cost of the rest.

Making a plan asks no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from rich.markup import escape
from rich.table import Column, Table

from memlab.data.dataset import Dataset, groups
from memlab.evaluate.attribution import Attribution
from memlab.evaluate.contrast import ALPHA, PLANNED, Contrast
from memlab.evaluate.statistics import Assumptions, planned_detectable, planned_power
from memlab.evaluate.summary import COSTS, view
from memlab.evaluate.verbalise import grouping_in_words
from memlab.evaluate.whole import fits, whole
from memlab.experiment.harness.arm import Arm, haystack, load
from memlab.experiment.harness.sweep import Sweep
from memlab.models.protocols import Chat, PairScorer, Role, embedders_in, models_in
from memlab.pipeline.pipeline import apply
from memlab.pipeline.question_types import VOCABULARY
from memlab.pipeline.slots import SLOTS
from memlab.pipeline.stage import spec, spec_digest
from memlab.pipeline.tables import Tables
from memlab.stages.read.reader import Reader
from memlab.stages.search.late_interaction import WeightedLate
from memlab.store import Store
from memlab.support.console import Console
from memlab.support.text.display import plural


def print_contrasts(contrasts: Sequence[Contrast], dataset: Dataset, out: Console) -> None:
    """Print for each contrast its questions and groups, and the power of its test under ``Assumptions``."""
    tables, given = load(dataset), Assumptions()
    questions = tables["questions"].join(tables["gold"], on="question", how="left").join(
        groups(tables["questions"], tables["evidence"], tables["turns"], dataset.grouping()), on="question", how="left")
    alpha = ALPHA / max(len(contrasts), 1)
    table = Table(Column("contrast", overflow="fold"), Column("questions\nin groups", justify="right"),
                  Column("power", justify="right"), Column("80 % power\nfrom", justify="right"), show_edge=False)
    for contrast in contrasts:
        rows, metric = view(questions, contrast.metric)
        sizes = rows.filter("scored").group_by("group").agg(pl.len())["len"].to_numpy().astype(np.float64)
        table.add_row(contrast.claim, f"{int(sizes.sum()):,} in {len(sizes):,}",
                      *_power(contrast, metric, sizes, alpha))
    out.print(grouping_in_words(questions.filter("scored")))
    out.print(table)
    out.print(f"power: the chance of p <= {alpha:.4f}, the first step of Holm's correction over {len(contrasts)}, if "
              f"two arms differ on {100 * given.discordance:.0f} % of the questions and the effect varies between "
              f"groups of several questions with a standard deviation of {100 * given.between:g} points. Fewer "
              "differing questions give more power.")


def _power(contrast: Contrast, metric: str, sizes: np.ndarray, alpha: float) -> tuple[str, str]:
    if len(sizes) < 2:
        return "cannot be\nshown", ""
    if metric in COSTS:
        return "an amount:\nnot planned", ""
    planned = PLANNED if contrast.planned is None else contrast.planned
    power, smallest = planned_power(sizes, planned, alpha), planned_detectable(sizes, alpha)
    return (f"{100 * (power or 0.0):.0f} % for {100 * planned:g} points",
            "cannot be shown" if smallest is None else f"{100 * smallest:.1f} points")


CHEAP = tuple(slot.name for slot in SLOTS if slot.scope == "session" or slot.phase == "query")
"""Slots that a plan runs, unless they ask a model, to know which texts would be encoded."""


OWN_WORK, PAIR, REPLY = 100_000.0, 100.0, 20_000.0
"""Characters whose encoding takes about as long as an arm's loading and searching, a pair's score, and a reply."""


@dataclass(frozen=True)
class Cost:
    """The remaining cost of one arm."""

    texts: int = 0
    characters: int = 0
    pairs: int = 0
    replies: int = 0

    def weight(self) -> float:
        """Return the time of an arm in any unit, for the share of a run that is done."""
        return OWN_WORK + self.characters + PAIR * self.pairs + REPLY * self.replies

    def and_then(self, other: Cost) -> Cost:
        """Return the cost of both: the pairs of one reranker are scored once, and count as most of either."""
        return Cost(self.texts + other.texts, self.characters + other.characters, max(self.pairs, other.pairs),
                    self.replies + other.replies)


def before_search(arm: Arm, store: Store) -> Tables:
    """Return the tables that an arm's searches see, but for what models add to them."""
    tables = load(arm.dataset)
    for slot, stage in arm.pipeline.stages():
        if slot in CHEAP and not any(models_in(stage)):
            tables = tables.updated(apply(stage, tables, store))
    return tables


def cost(arm: Arm, store: Store, counted: set[tuple[str, str]]) -> Cost:
    """Count the texts and pairs that are not in the store; texts counted for an earlier arm count once."""
    tables = before_search(arm, store)
    if chats(arm.pipeline.context) or chats(arm.pipeline.extract):  # the model's replies decide the keys
        return replace(_cost(arm, tables, store, set()), texts=int(tables["memories"].height))
    return _cost(arm, tables, store, counted)


def remaining_costs(arms: Iterable[Arm], store: Store) -> dict[tuple[str, str], Cost | None]:
    """Return (arm, data set) -> the cost of each unfinished arm; None where a model splits the sessions first."""
    counted = set[tuple[str, str]]()
    return {(arm.name, arm.dataset.name): None if any(models_in(arm.pipeline.chunk)) else cost(arm, store, counted)
            for arm in arms if not arm.is_finished()}


def in_all(costs: Iterable[Cost]) -> str:
    """Return what all arms together have to make; empty if that is nothing.

    >>> in_all([Cost(1200, 90_000, 500), Cost(600, 10_000, 500)])
    'all arms: 1,800 texts to encode (100,000 characters), at most 500 pairs to score'
    """
    total = Cost()
    for one in costs:
        total = total.and_then(one)
    parts = [f"{plural(total.texts, 'text')} to encode ({total.characters:,} characters)"] * (total.texts > 0)
    parts += [f"at most {plural(total.pairs, 'pair')} to score"] * (total.pairs > 0)
    parts += [f"at most {plural(total.replies, 'reply', 'replies')}"] * (total.replies > 0)
    return f"all arms: {', '.join(parts)}" if parts else ""


def _cost(arm: Arm, tables: Tables, store: Store, counted: set[tuple[str, str]]) -> Cost:
    texts = characters = pairs = replies = 0
    roles: tuple[tuple[Role, pl.Series], ...] = (
        ("document", tables["memories"]["key_id"]), ("query", tables["queries"]["text_id"]))
    for slot, stage in arm.pipeline.stages():
        for embedder in embedders_in(stage):
            for role, ids in roles:
                key = (spec_digest(embedder) + role, spec_digest(sorted(ids.unique().to_list())))
                if key in counted:
                    continue
                counted.add(key)
                rows = tables["texts"].filter(pl.col("text_id").is_in(ids.implode()))
                missing = store.missing(embedder, rows, role)
                texts += missing
                if rows.height:
                    characters += round(missing / rows.height * int(rows["text"].str.len_chars().sum()))
        if isinstance(stage, WeightedLate):
            missing, length = stage.to_encode(tables, store)
            texts += missing
            characters += length
        elif any(isinstance(model, PairScorer) for model in models_in(stage)):
            pairs += _pairs(stage, tables)
        replies += _replies(slot, stage, tables)
    return Cost(texts, characters, pairs, replies)


def chats(stage: Any) -> int:
    """Count the chat models that a stage asks; a panel of judges asks one for each judge."""
    return sum(isinstance(model, Chat) for model in models_in(stage))


def _replies(slot: str, stage: Any, tables: Tables) -> int:
    """Return the maximum number of replies that a stage asks for; some may be in the store."""
    if not chats(stage):
        return 0
    questions = int(tables["questions"].height)
    if slot == "context":
        return int(tables["memories"].height)
    if slot == "extract":  # fewer where haystacks share sessions
        return int(tables["sessions"].height)
    if slot == "rerank":
        return questions * (int(stage.pool) if getattr(stage, "mode", "") == "pointwise" else 1)
    if isinstance(stage, Attribution):  # answers and judges each sampled question four times, and judges it once more
        replies = 4 * (_per_question(stage.reader) + _per_question(stage.judge)) + _per_question(stage.second)
        return min(questions, stage.wrong + stage.right) * replies
    return questions * _per_question(stage)


def _per_question(stage: Any) -> int:
    if isinstance(stage, Reader):
        return max(len(stage.vote.schedule(kind)) for kind in VOCABULARY)
    return chats(stage) * int(getattr(stage, "rounds", 1))


def _pairs(stage: Any, tables: Tables) -> int:
    """Return the maximum number of pairs that a stage scores: the pools of a reranker."""
    reranker = getattr(stage, "reranker", stage)  # learned fusion has one of its own
    return tables["questions"].height * int(getattr(reranker, "pool", 0))


def print_whole(arms: Sequence[Arm], out: Console) -> None:
    """Print for each data set whether a memory fits whole into what most arms show, and what to set then."""
    for name in dict.fromkeys(arm.dataset.name for arm in arms):
        systems = [arm for arm in arms if arm.dataset.name == name
                   and not (arm.pipeline.uses_oracle() or arm.pipeline.tainted())]
        if systems and (found := whole([spec(arm.pipeline.select) for arm in systems],
                                       haystack(load(systems[0].dataset), systems[0].pipeline.tokens))):
            out.print(f"[bold yellow]{escape(fits(found))}[/bold yellow]")


def print_left_out(sweep: Sweep, out: Console) -> None:
    """Print in one line for each reason what is not run or not tested."""
    for why in dict.fromkeys(sweep.left_out.values()):
        names = ", ".join(name for name, reason in sweep.left_out.items() if reason == why)
        out.print(f"  [dim]left out: {escape(names)} ({escape(why)})[/dim]")


def print_plan(sweep: Sweep, store: Store, out: Console) -> None:
    """Print the cost of each arm and of all arms together, and first whether there is anything to choose."""
    print_left_out(sweep, out)
    print_whole(sweep.arms, out)
    numbers = ("texts to\nencode", "characters", "pairs,\nat most", "replies,\nat most")
    table = Table(Column("arm", overflow="fold"), Column("state", no_wrap=True),
                  *(Column(name, justify="right", no_wrap=True) for name in numbers), show_edge=False)
    total = Cost()
    made = remaining_costs([arm for arm in sweep.arms if arm.name not in sweep.unready], store)
    for arm in sweep.arms:
        state = "no model" if arm.name in sweep.unready else "finished" if arm.is_finished() else "to run"
        if one := made.get((arm.name, arm.dataset.name)):
            total = total.and_then(one)
            cells = [f"{number:,}" for number in (one.texts, one.characters, one.pairs, one.replies)]
        else:
            cells = ["" if state == "finished" else "?"] * 4
        table.add_row(arm.name, state, *cells)
    out.print(table)
    for why in dict.fromkeys(sweep.unready.values()):
        out.print(f"no model: {escape(why)}")
    if any(any(models_in(arm.pipeline.chunk)) for arm in sweep.arms
           if arm.name not in sweep.unready and not arm.is_finished()):
        out.print("?: not known before a model has split the sessions (write/chunk); not counted below")
    out.print(f"folders: {', '.join(dict.fromkeys(str(arm.arms_folder()) for arm in sweep.arms))}/<arm>-<hash>")
    if sweep.unready:
        out.print("not counted below: the arms whose models are not here")
    out.print(in_all([total]) or "all arms: nothing to make")
    if sweep.contrasts:
        for dataset in {arm.dataset.name: arm.dataset for arm in sweep.arms}.values():
            print_contrasts(sweep.contrasts, dataset, out)
