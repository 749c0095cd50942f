"""The slots of the pipeline by name, in the order in which their stages run; no stage is imported here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Slot:
    """A place for one stage in the pipeline, and its declaration for other modules.

    config: the place of its configuration. name: the field of ``Pipeline``. scope: the most that its stage looks at
    together: one session, one corpus, or all questions. part: the part of a system that an ablation swaps, which may
    have several slots; None if no ablation does. optional: whether the slot may be empty. empty: the tables that it
    then returns without rows. judges: whether any stage may read gold here, since the answers are given.
    """

    config: str
    name: str
    scope: Literal["session", "corpus", "all"] = "corpus"
    part: str | None = ""
    optional: bool = True
    empty: tuple[str, ...] = ()
    judges: bool = False

    def __post_init__(self) -> None:
        if self.part == "":
            object.__setattr__(self, "part", self.name)

    @property
    def phase(self) -> str:
        """The first word of ``config``: write, query, search, rank, read, judge or attribute."""
        return self.config.partition(".")[0]


def _search(name: str) -> Slot:
    return Slot(f"search.{name}", name, part="lanes", empty=("hits",))


SLOTS = (
    Slot("query.where", "where", part=None),  # what the questions may search: first, so that no stage sees the rest
    Slot("write.chunk", "chunk", scope="session", optional=False),
    Slot("write.extract", "extract", scope="session"),
    Slot("write.anchor", "anchor", scope="session"),
    Slot("write.context", "context", scope="session"),
    Slot("write.relate", "relate"),
    Slot("write.prune", "prune"),
    Slot("query.question", "query", part=None, optional=False),
    Slot("query.classify", "classify", optional=False),
    Slot("query.decompose", "decompose"),
    Slot("query.expand", "expand"),
    Slot("query.time", "time"),
    _search("dense"),
    _search("lexical"),
    _search("late"),
    _search("iterate"),  # sees the hits of the searches above
    _search("neighbours"),  # sees all other hits
    Slot("rank.score", "score", optional=False),
    Slot("rank.boost", "boost"),
    Slot("rank.rerank", "rerank"),
    Slot("rank.fuse", "fuse"),
    Slot("rank.window", "window", optional=False),
    Slot("rank.rollup", "rollup"),
    Slot("read.measure", "measure", part="rollup", optional=False),  # measures what the roll-up ranks
    Slot("rank.select", "select", scope="all", optional=False),
    Slot("read.pack", "pack", scope="all", optional=False, empty=("context",)),
    Slot("read.graph", "graph", scope="all"),
    Slot("read.answer", "answer", scope="all", part=None, empty=("answers",)),
    Slot("judge", "judge", scope="all", part=None, empty=("verdicts",), judges=True),
    Slot("attribute", "attribute", scope="all", part=None, judges=True),
)
"""All slots, in the order in which their stages run."""

LANES = tuple(slot.name for slot in SLOTS if slot.phase == "search")
"""Slots whose hits are concatenated."""

PER_SESSION = tuple(slot.name for slot in SLOTS if slot.scope == "session")
"""Slots whose stages look at one session at a time."""

LAST_WRITTEN = SLOTS[[slot.name for slot in SLOTS].index(LANES[0]) - 1].name
"""The last slot before the searches: keys and queries are final after it."""

LAST_RANKED = [slot.name for slot in SLOTS if slot.scope != "all"][-1]
"""The last slot that looks at one corpus at a time; later ones may look at all questions together."""

AFTER_ANSWERS = tuple(slot.name for slot in SLOTS if slot.judges)
"""Slots after the answers, where any stage may read gold."""
