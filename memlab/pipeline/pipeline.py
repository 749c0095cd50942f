"""The pipeline: the only file that wires stages together.

Sessions are written to memories, questions become queries, lanes search, scores are fused, reranked and rolled up, and
the selected units are packed; then a reader answers and a judge judges, if there is one. Each slot holds one stage; the
constructor checks all stages before a model loads. Usable without Hydra::

    tables = Pipeline(select=Fixed(k=5)).run(LoCoMo(path="locomo10.json").load(), Store())
"""

from __future__ import annotations

import dataclasses
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import polars as pl
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from memlab.data.numbering import Numbering
from memlab.models.local.embedder import SentenceEmbedder
from memlab.pipeline.slots import AFTER_ANSWERS, LANES, SLOTS
from memlab.pipeline.stage import (
    STRICT,
    EmptyStage,
    Hidden,
    Stage,
    brief_repr,
    declaration,
    label_free,
    name_of,
    spec_digest,
)
from memlab.pipeline.tables import GOLD, OPTIONAL, SCHEMAS, Tables, as_of, empty
from memlab.pipeline.token_counter import TokenCounter, Words, counter, counting
from memlab.stages.query.classify import Rules
from memlab.stages.query.original import Original
from memlab.stages.rank.boost import TimeWindowBoost
from memlab.stages.rank.score import Score
from memlab.stages.rank.select import Fixed
from memlab.stages.read.pack import ByRank
from memlab.stages.read.tokens import TokenCost
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.dense import Dense
from memlab.stages.write.chunk import TurnChunker
from memlab.store import Store
from memlab.store.completions import Totals, totals
from memlab.support.errors import MemlabError, did_you_mean

HIDDEN: dict[Hidden, frozenset[str]] = {"gold": GOLD - {"ids"}, "ids": frozenset({"ids"})}
"""What a stage declares to see -> the tables that it may then read."""

_EMPTY = {slot.name: slot.empty for slot in SLOTS}


def slot(name: str, default: Callable[[], Stage] | None = None) -> Any:
    """Declare a field of ``Pipeline`` that is a slot, empty by default."""
    return dataclasses.field(default_factory=default or partial(nothing, name))


def nothing(name: str) -> EmptyStage:
    """Return the stage of a slot that is empty."""
    return EmptyStage(writes=_EMPTY[name])


@dataclass(frozen=True, config=STRICT)
class Pipeline:
    """A stage for each slot, in the order in which they run, and the token counter that all of them share.

    >>> Pipeline(select=Fixed(k=5))
    Pipeline(select=Fixed(k=5))
    """

    where: Stage = slot("where")
    chunk: Stage = slot("chunk", TurnChunker)
    extract: Stage = slot("extract")
    anchor: Stage = slot("anchor")
    context: Stage = slot("context")
    relate: Stage = slot("relate")
    prune: Stage = slot("prune")
    query: Stage = slot("query", Original)
    classify: Stage = slot("classify", Rules)
    decompose: Stage = slot("decompose")
    expand: Stage = slot("expand")
    time: Stage = slot("time")
    dense: Stage = slot("dense", lambda: Dense(embedder=SentenceEmbedder(max_length=256)))
    lexical: Stage = slot("lexical", BM25)
    late: Stage = slot("late")
    iterate: Stage = slot("iterate")
    neighbours: Stage = slot("neighbours")
    score: Stage = slot("score", Score)
    boost: Stage = slot("boost")
    rerank: Stage = slot("rerank")
    fuse: Stage = slot("fuse")
    window: Stage = slot("window", TimeWindowBoost)
    rollup: Stage = slot("rollup")
    measure: Stage = slot("measure", TokenCost)
    select: Stage = slot("select", Fixed)
    pack: Stage = slot("pack", ByRank)
    graph: Stage = slot("graph")
    answer: Stage = slot("answer")
    judge: Stage = slot("judge")
    attribute: Stage = slot("attribute")
    tokens: TokenCounter = Field(default_factory=Words)

    __repr__ = brief_repr

    @model_validator(mode="after")
    def _stages_fit_their_slots(self) -> Pipeline:
        for slot, stage in self.stages():
            name = type(stage).__name__
            for table in (*stage.reads, *stage.writes):
                if table not in SCHEMAS:
                    raise ValueError(f"{slot}: {name} names a table '{table}', which is none; "
                                     f"{did_you_mean(table, SCHEMAS)}")
            own = name_of(type(stage)).startswith("memlab.")  # a plug-in has nothing to declare
            declared = declaration(stage).sees if own else ()
            gold = GOLD.intersection(stage.reads).difference(*(HIDDEN[what] for what in declared))
            if gold and slot not in AFTER_ANSWERS:
                raise ValueError(f"{slot}: {name} reads {', '.join(sorted(gold))}; before the answers only those "
                                 "stages of memlab may that declare it: learned ones, and oracles")
        return self

    @model_validator(mode="after")
    def _weighted_lanes_are_searched(self) -> Pipeline:
        for key in ("weights", "fill", "floors", "factors"):
            for name in getattr(self.score, key, None) or {}:
                slot = "late" if name.startswith("late") else name.partition(":")[0]
                if slot in LANES and isinstance(getattr(self, slot), EmptyStage):
                    raise ValueError(f"score: {key} name '{name}', but search/{slot} is none; choose a search there, "
                                     "or a score that names other lanes")
        return self

    def stages(self) -> Iterator[tuple[str, Stage]]:
        """Yield (slot, stage) in the order in which they run."""
        for slot in SLOTS:
            yield slot.name, getattr(self, slot.name)

    def uses_oracle(self) -> bool:
        """Return whether a stage reads gold while it ranks, so that the arm is not a system."""
        return any("gold" in declaration(stage).sees and not declaration(stage).fits for _, stage in self.stages())

    def tainted(self) -> bool:
        """Return whether a stage shows the benchmark's own ids, so that the arm's figures are invalid."""
        return any("ids" in declaration(stage).sees for _, stage in self.stages())

    def looks_at_gold(self) -> list[str]:
        """Return the slots of stages that see gold or ids without being fitted: upper bounds and leaks."""
        return [slot for slot, stage in self.stages() if declaration(stage).sees and not declaration(stage).fits]

    def replace(self, **slots: Any) -> Pipeline:
        """Return this pipeline with other stages in these slots, or with other ``tokens``."""
        return dataclasses.replace(self, **slots)

    def without(self, *slots: str) -> Pipeline:
        """Return this pipeline with these slots empty."""
        return self.replace(**{name: nothing(name) for name in slots})

    def without_judges(self) -> Pipeline:
        """Return this pipeline without judges, for questions without labels.

        A stage that is fitted on labels is replaced by its shipped form (``without_labels``). Raises MemlabError if a
        stage before the answer reads gold and has none.
        """
        pipeline = self
        for slot, stage in self.stages():
            gold = sorted(GOLD & set(stage.reads))
            if not gold or slot in AFTER_ANSWERS:
                continue
            if not hasattr(stage, "without_labels"):
                ways = filter(None, (label_free(stage), "choose a technique there that needs no labels"))
                raise MemlabError(f"{type(stage).__name__} reads {', '.join(gold)}, which a question of your own has "
                                  "not", where=slot, fix="; or ".join(ways))
            pipeline = pipeline.replace(**{slot: stage.without_labels()})
        return pipeline.without(*AFTER_ANSWERS)

    def run(self, tables: Tables, store: Store, watch: Callable[[str, float], None] | None = None, *,
            after: str | None = None, until: str | None = None, costs: dict[str, float] | None = None,
            replies: dict[str, Totals] | None = None) -> Tables:
        """Run every stage and return all tables. ``watch(slot, seconds)`` is called after each slot.

        ``costs`` gets the seconds that each slot's stage took when it ran, perhaps for another arm, without what the
        store keeps for later (calls to models, indexes): what an arm alone would spend that has all of that.
        ``replies`` gets the totals of the replies of chat models to each slot's stage, of slots that asked one.

        ``until`` names the last slot to run. ``after`` names the last slot that an earlier call on the same data has
        run; ``tables`` are then its result. The stages see questions and corpora under other numbers, which tell
        nothing (``memlab.data.numbering``); the result has the numbers of ``tables``. With ``where``, sessions, turns
        and questions of the result are those that were searched.
        """
        stages = self.between(after, until)
        run = _Run(store, watch, {} if costs is None else costs, {} if replies is None else replies)
        with counting(self.tokens):
            if after is None:  # before the numbers, since questions with filters of their own get corpora of their own
                tables = run.through(stages[:1], tables)
                stages = stages[1:]
            if tables["questions"].height < 2:  # there is no order to hide
                return run.through(stages, tables)
            numbering = Numbering.of(tables)
            hidden = numbering.hide(tables)
            return numbering.show(run.through(stages, hidden), hidden, tables)

    def between(self, after: str | None, until: str | None) -> list[tuple[str, Stage]]:
        """Return (slot, stage) of the slots after ``after`` up to and including ``until``."""
        slots = [slot for slot, _ in self.stages()]
        first = slots.index(after) + 1 if after else 0
        last = slots.index(until) + 1 if until else len(slots)
        return list(self.stages())[first:last]


@dataclasses.dataclass(frozen=True)
class _Run:
    """What the stages of one run share: their store, and what the caller is told of each (``Pipeline.run``)."""

    store: Store
    watch: Callable[[str, float], None] | None
    costs: dict[str, float]
    replies: dict[str, Totals]

    def through(self, stages: Sequence[tuple[str, Stage]], tables: Tables) -> Tables:
        """Run these stages one after another; return the tables with those that they write."""
        tables = tables.updated({name: empty(name) for name in OPTIONAL if name not in tables})
        lanes: list[Tables] = []
        notes = [tables["notes"]]
        for slot, stage in stages:
            start = time.perf_counter()
            new, cost = _result_and_cost(stage, tables, self.store)
            self.costs[slot] = cost.seconds
            if cost.replies:
                self.replies[slot] = cost.replies
            notes += [new["notes"]] if "notes" in new else []
            if slot in LANES:
                lanes.append(new)
                new = concat_hits(lanes, tables, self.store)
            tables = tables.updated(new)
            if self.watch:
                self.watch(slot, time.perf_counter() - start)
        return tables.updated({"notes": pl.concat(notes)})


class StageCost(NamedTuple):
    """The processor seconds that a stage took, without those of cached results, and the replies that it was given."""

    seconds: float
    replies: Totals


_MEMO: OrderedDict[tuple[str, str], tuple[Tables, StageCost]] = OrderedDict()
"""Results of stages with what they cost, notes included: each arm that shares a result has its notes."""

_MEMO_SIZE = 96


def apply(stage: Stage, tables: Tables, store: Store) -> Tables:
    """Run one stage on just the tables that it declares, or return its earlier result on the same tables.

    Arms of a sweep run in one process and share all that they have in common: the key of a result is the stage's
    specification, the token counter, and the digest of the stage's inputs.
    """
    return _result_and_cost(stage, tables, store)[0]


def _result_and_cost(stage: Stage, tables: Tables, store: Store) -> tuple[Tables, StageCost]:
    """Return the result of a stage, and what it cost."""
    if not store.shares_results:
        return _run_stage(stage, tables, store)
    key = (spec_digest([stage, counter()]), tables.digest(stage.reads))
    if key in _MEMO:
        _MEMO.move_to_end(key)
        return _MEMO[key]
    return _remember(key, *_run_stage(stage, tables, store))


def _run_stage(stage: Stage, tables: Tables, store: Store) -> tuple[Tables, StageCost]:
    start, cached = time.process_time(), store.caching_seconds
    store.replies.clear()
    result = stage.run(tables.only(stage.reads), store)
    cost = StageCost(time.process_time() - start - (store.caching_seconds - cached), totals(store.replies))
    store.replies.clear()
    if set(result) - {"notes"} != set(stage.writes):
        raise MemlabError(f"{type(stage).__name__} returned {sorted(result)}, declared {sorted(stage.writes)}")
    for name in {"hits", "ranking"} & set(result):
        if result[name]["score"].is_nan().any():
            raise MemlabError(f"{type(stage).__name__} gives scores that are not a number (NaN)", where=f"table {name}",
                              fix="give every memory a number, or leave it out of the hits")
    return result, cost


def concat_hits(lanes: Sequence[Tables], tables: Tables, store: Store) -> Tables:
    """Concatenate the hits of several lanes, once for the same lanes; refuse hits of a later day."""
    names = ("memories", "queries", "questions")
    if store.shares_results:
        key = ("lanes", " ".join([*(lane.digest(("hits",)) for lane in lanes), tables.digest(names)]))
        if key in _MEMO:
            return _MEMO[key][0]
    if lanes[-1]["hits"].height:
        refuse_later_days(tables.only(names).updated(lanes[-1]))
    hits = Tables(hits=pl.concat([lane["hits"] for lane in lanes]))
    return _remember(key, hits, StageCost(0.0, {}))[0] if store.shares_results else hits


def _remember(key: tuple[str, str], result: Tables, cost: StageCost) -> tuple[Tables, StageCost]:
    result.name_by_origin(*key)  # cached with the tables, for later arms
    _MEMO[key] = result, cost
    if len(_MEMO) > _MEMO_SIZE:
        _MEMO.popitem(last=False)
    return result, cost


def refuse_later_days(tables: Tables) -> None:
    """Raise if a hit was said on a later day than its question was asked; the lanes check this as well."""
    latest = tables["memories"].select(pl.col("said_on").max())
    earliest = tables["questions"].select(pl.col("asked_on").min())
    if pl.concat([latest, earliest], how="horizontal").select(as_of()).item():
        return  # each question may see every memory
    dates = tables["queries"].select("query", "question").join(
        tables["questions"].select("question", "asked_on"), on="question")
    late = (
        tables["hits"].lazy().select("query", "memory", "lane")
        .join(tables["memories"].lazy().select("memory", "said_on"), on="memory")
        .join(dates.lazy().select("query", "asked_on"), on="query")
        .filter(~as_of())
        .collect()
    )
    if late.height:
        raise MemlabError(f"lane {late['lane'][0]} retrieved memory {late['memory'][0]}, said on a later day than "
                          "its question was asked", fix="filter by search.as_of before ranking")
