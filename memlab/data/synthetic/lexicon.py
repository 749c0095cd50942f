"""The words of the generated lives, which lie in ``lexicon.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from memlab.support.foreign import read_yaml

Pair = tuple[str, str]


class Fact(NamedTuple):
    """A fact about the user, with a value {v}; ``later`` states its change."""

    tell: Pair
    distractor: str
    ask: Pair
    values: tuple[str, ...]
    later: Pair | None = None


class Collection(NamedTuple):
    """Things {t} that can be counted, and other matters of the same topic."""

    tell: Pair
    distractor: str
    ask: Pair
    matters: tuple[str, ...]


class Event(NamedTuple):
    """An event of a day ({when}); ``name`` completes "the day when ..."."""

    tell: Pair
    name: Pair


class Taste(NamedTuple):
    """A preference, a request that it concerns without naming it, and a rubric of a good answer."""

    tell: Pair
    distractor: str
    ask: Pair
    rubric: str


_WORDS: dict[str, Any] = read_yaml(Path(__file__).with_name("lexicon.yaml")) | {
    "sums": [str(n) for n in range(410, 2400, 87)],
    "times": [f"{m}:{s:02d}" for m in (22, 24, 26, 28) for s in (7, 18, 33, 49)]}


def _facts(name: str) -> tuple[Fact, ...]:
    return TypeAdapter(tuple[Fact, ...]).validate_python(
        [{**fact, "values": _WORDS[fact["values"]]} for fact in _WORDS[name]])


def _texts(name: str) -> tuple[str, ...]:
    return tuple(_WORDS[name])


NAMES, CITIES, OTHERS, FIRST, SECOND = map(_texts, ("names", "cities", "others", "first", "second"))
ASIDES, USER, OPENING, REPLY = map(_texts, ("asides", "user", "opening", "reply"))
FACTS, UPDATES = _facts("facts"), _facts("updates")
COLLECTIONS = TypeAdapter(tuple[Collection, ...]).validate_python(_WORDS["collections"])
EVENTS = TypeAdapter(tuple[Event, ...]).validate_python(_WORDS["events"])
TASTES = TypeAdapter(tuple[Taste, ...]).validate_python(_WORDS["tastes"])
ADVICE = TypeAdapter(tuple[Pair, ...]).validate_python(_WORDS["advice"])
