"""``plan=true``: what would run, what is cached, and what the rest would cost; nothing expensive is run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Column, Table

from memlab.harness.arm import Arm, load
from memlab.harness.sweep import Sweep
from memlab.models.protocols import Role
from memlab.pipeline import SLOTS, apply
from memlab.stage import spec_digest
from memlab.store import Store
from memlab.tables import Tables

CHEAP = tuple(slot.name for slot in SLOTS if slot.scope == "session" or slot.phase == "query")
"""Slots that cost little, so that a plan runs them, unless they ask a chat model, to know what would be encoded."""


@dataclass(frozen=True)
class Cost:
    """What one arm still has to make."""

    texts: int = 0
    characters: int = 0
    pairs: int = 0
    replies: int = 0


def cost(arm: Arm, store: Store, counted: set[tuple[str, str]]) -> Cost:
    """Count the texts and pairs that are not in the store; texts counted for an earlier arm count once."""
    tables = load(arm.dataset)
    for slot, stage in arm.pipeline.stages():
        if slot in CHEAP and not chats(stage) and getattr(stage, "embedder", None) is None:
            tables = tables.updated(apply(stage, tables, store))
    if chats(arm.pipeline.context) or chats(arm.pipeline.extract):  # their keys are not known before they are asked for
        return replace(_cost(arm, tables, store, set()), texts=int(tables["memories"].height))
    return _cost(arm, tables, store, counted)


def _cost(arm: Arm, tables: Tables, store: Store, counted: set[tuple[str, str]]) -> Cost:
    texts = characters = pairs = replies = 0
    for slot, stage in arm.pipeline.stages():
        embedder: Any = getattr(stage, "embedder", None)
        if embedder is not None:
            asks: tuple[tuple[Role, pl.Series], ...] = (
                ("document", tables["memories"]["key"]), ("query", tables["queries"]["text"]))
            for role, hashes in asks:
                key = (spec_digest(embedder) + role, spec_digest(sorted(hashes.unique().to_list())))
                if key in counted:
                    continue
                counted.add(key)
                asked = tables["texts"].filter(pl.col("hash").is_in(hashes.implode()))
                missing = store.missing(embedder, asked, role)
                texts += missing
                if asked.height:
                    share = missing / asked.height
                    characters += round(share * int(asked["text"].str.len_chars().sum()))
        if getattr(stage, "scorer", None) is not None or getattr(stage, "matcher", None) is not None:
            pairs += _pairs(slot, stage, tables)
        if chats(stage):
            replies += _replies(slot, stage, tables)
    return Cost(texts, characters, pairs, replies)


def chats(stage: Any) -> int:
    """Count the chat models that a stage asks; a bench of judges asks one each."""
    several = getattr(stage, "judges", None)
    return sum(chats(judge) for judge in several) if several else int(getattr(stage, "chat", None) is not None)


def _replies(slot: str, stage: Any, tables: Tables) -> int:
    """Count the replies that a stage asks for, at most: what the store holds is not looked up."""
    questions = int(tables["questions"].height)
    if slot == "context":
        return int(tables["memories"].height)
    if slot == "extract":  # fewer where haystacks share sessions
        return int(tables["sessions"].height)
    if slot == "rerank":
        return questions * (int(stage.pool) if stage.mode == "pointwise" else 1)
    return questions * chats(stage) * int(getattr(getattr(stage, "vote", None), "samples", 1))


def _pairs(slot: str, stage: Any, tables: Tables) -> int:
    """Count the pairs that a scorer is asked for, at most: a lane's whole corpora, a reranker's pools."""
    if slot == "rerank":
        return tables["queries"].height * int(stage.pool)
    kinds = getattr(stage, "kinds", None)
    memories = tables["memories"] if kinds is None else tables["memories"].filter(pl.col("kind").is_in(list(kinds)))
    sizes = memories.group_by("corpus").len()
    asked = tables["queries"].join(tables["questions"], on="question").group_by("corpus").len(name="queries")
    joined = sizes.join(asked, on="corpus").select((pl.col("len").cast(pl.Int64) * pl.col("queries")).sum())
    return int(joined.item() or 0)


def worded(made: Mapping[str, int]) -> Counter[str]:
    """Name what a store made as a plan names it: a matcher's and a scorer's pairs are pairs.

    >>> worded({"pairs": 2, "matches": 3, "completions": 1})
    Counter({'pairs': 5, 'replies': 1})
    """
    out: Counter[str] = Counter()
    for what, number in made.items():
        out[{"matches": "pairs", "completions": "replies"}.get(what, what)] += number
    return out


def rates(out: Path) -> dict[str, float]:
    """Read from finished runs how many vectors and pair scores this machine made in a second, the best of each."""
    found: dict[str, float] = {}
    for path in sorted(out.glob("*/*/*/manifest.json")):
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            continue
        spent = manifest.get("seconds", {})
        for what, slots in (("vectors", ("dense",)), ("pairs", ("late", "rerank"))):
            made, seconds = worded(manifest.get("made", {}))[what], sum(spent.get(slot, 0) for slot in slots)
            if made >= 500 and seconds > 1:
                found[what] = max(found.get(what, 0.0), made / seconds)
    return found


def print_plan(sweep: Sweep, store: Store, out: Console) -> None:
    """Print a row an arm, and what all of them would take."""
    numbers = ("texts to\nencode", "characters", "pairs,\nat most", "replies,\nat most")
    table = Table(Column("arm", overflow="fold"), Column("state", no_wrap=True),
                  *(Column(name, justify="right", no_wrap=True) for name in numbers), show_edge=False)
    total, counted = Cost(), set[tuple[str, str]]()
    for arm in sweep.arms:
        if arm.finished():
            table.add_row(arm.name, "finished", "", "", "", "")
            continue
        one = cost(arm, store, counted)
        total = Cost(total.texts + one.texts, total.characters + one.characters, max(total.pairs, one.pairs),
                     total.replies + one.replies)
        table.add_row(arm.name, "to run", f"{one.texts:,}", f"{one.characters:,}", f"{one.pairs:,}",
                      f"{one.replies:,}")
    out.print(table)
    out.print(f"folders: {', '.join(dict.fromkeys(str(arm.beside()) for arm in sweep.arms))}/<arm>-<hash>")
    out.print(f"in all: {total.texts:,} texts ({total.characters:,} characters, about "
              f"{total.characters // 4:,} tokens), at most {total.pairs:,} pairs and {total.replies:,} replies")
    out.print(_time(total, rates(Path(str(sweep.settings.out)))))


def _time(total: Cost, speed: dict[str, float]) -> str:
    asked: Iterable[tuple[str, int]] = (("vectors", total.texts), ("pairs", total.pairs))
    parts = [(what, n / speed[what]) for what, n in asked if n and what in speed]
    unknown = [what for what, n in asked if n and what not in speed]
    told = " + ".join(f"{seconds / 60:.1f} min ({what})" for what, seconds in parts)
    if unknown:
        told += ("; " if told else "") + f"no finished run here tells the rate of: {', '.join(unknown)}"
    return f"estimated time, at the rates of finished runs: {told or 'seconds'}"
