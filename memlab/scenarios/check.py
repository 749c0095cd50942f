"""Holds a ranking against what a scenario expects: every expectation is met, not met, or cannot be told.

Scores are the system's own. Vector and keyword shares are measured for every system by Gimli's formula on its lanes,
0.7 x cosine and 0.3 x 1/(1 + rank by keywords), since only then do they compare; a system without such a lane has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from memlab.errors import MemlabError
from memlab.scenarios.dataset import CASES, Expect

VECTOR, TEXT = 0.7, 0.3
"""Gimli's weights."""

DENSE, LEXICAL = "dense", "lexical"
"""Beginnings of the signal columns of the two lanes."""

Place = tuple[int, int]
"""(session, turn)"""


@dataclass(frozen=True)
class Found:
    """The best unit that holds a piece; cosine and text are None where no such lane reached the unit.

    ``text`` is Gimli's keyword score, 1/(1 + rank), ranks counted from 1 among the units that the run folder keeps; of
    a system that drops what scores low it is therefore an upper bound.
    """

    rank: int
    score: float
    selected: bool
    cosine: float | None
    text: float | None


@dataclass(frozen=True)
class Outcome:
    """What became of one expectation; ``met`` is None where it cannot be told, ``said`` is the figure behind it."""

    category: str
    case: str
    expect: Expect
    met: bool | None
    said: str


def outcomes(ranking: pl.DataFrame, ids: pl.DataFrame) -> list[Outcome]:
    """Hold a run's ranking (question, session, turns, signals, score, rank, selected) against all of its cases."""
    asked = {name: question for question, name in ids.filter(kind="question").select("question", "name").iter_rows()}
    unknown = sorted(asked.keys() - CASES.keys())
    if unknown:
        raise MemlabError(f"there is no scenario '{unknown[0]}'", fix="run the arm again with data=scenarios")
    places = pieces(ids)
    texts = with_text_scores(ranking)
    out = []
    for name, scenario in CASES.items():
        if name not in asked:
            continue
        rows = texts.filter(question=asked[name])
        found = {piece: locate(rows, place) for piece, place in places.get(name, {}).items()}
        returned = int(rows["selected"].sum())
        out += [Outcome(scenario.category, scenario.case, expect, *check(expect, found, returned, lanes(ranking)))
                for expect in scenario.expect]
    return out


def pieces(ids: pl.DataFrame) -> dict[str, dict[str, Place]]:
    """Return case -> piece -> where it was said; of a pile, turns are called "corpus/case#piece"."""
    out: dict[str, dict[str, Place]] = {}
    named = ids.filter(kind="turn").filter(pl.col("name").str.contains("#", literal=True))
    for session, turn, name in named.select("session", "turn", "name").iter_rows():
        case, _, piece = name.rpartition("/")[2].rpartition("#")
        out.setdefault(case, {})[piece] = (session, turn)
    return out


def lanes(ranking: pl.DataFrame) -> tuple[bool, bool]:
    """Tell whether a ranking has a vector lane and a keyword lane."""
    columns = ranking.columns
    return any(c.startswith(DENSE) for c in columns), any(c.startswith(LEXICAL) for c in columns)


def with_text_scores(ranking: pl.DataFrame) -> pl.DataFrame:
    """Add ``cosine`` (the best of the vector lanes) and ``text`` (1/(1 + the best rank of the keyword lanes))."""
    signals = {lane: [c for c in ranking.columns if c.startswith(lane)] for lane in (DENSE, LEXICAL)}
    ranks = [1 / (1 + pl.col(c).round(6).rank("min", descending=True).over("question")) for c in signals[LEXICAL]]
    nothing = pl.lit(None, pl.Float64)
    return ranking.with_columns(
        (pl.max_horizontal(signals[DENSE]) if signals[DENSE] else nothing).alias("cosine"),
        (pl.max_horizontal(ranks) if ranks else nothing).alias("text"))


def locate(rows: pl.DataFrame, place: Place) -> Found | None:
    """Return the first unit of a question that holds a turn; None if none was ranked."""
    session, turn = place
    held = rows.filter(pl.col("session") == session, pl.col("turns").list.contains(turn)).sort("rank").head(1)
    if held.is_empty():
        return None
    return Found(*held.select("rank", "score", "selected", "cosine", "text").row(0))


def check(expect: Expect, found: Mapping[str, Found | None], returned: int,
          has: tuple[bool, bool] = (True, True)) -> tuple[bool | None, str]:
    """Return whether an expectation is met, and the figure behind it.

    ``returned``: how many units the system returned; ``has``: whether it has a vector and a keyword lane.

    >>> check(Expect("rank", ("it",), 3), {"it": Found(4, 0.61, True, 0.8, 0.5)}, 6)
    (False, '4')
    """
    units = [found.get(name) for name in expect.of]
    known = [unit for unit in units if unit is not None]
    if expect.what == "nothing":
        return returned == 0, f"{returned} returned"
    if expect.what == "returned":
        count = sum(unit.selected for unit in known)
        return count == len(units), f"{count} of {len(units)}"
    if expect.what in ("vector", "text") and not has[expect.what == "text"]:
        return None, "no such lane"
    if len(known) < len(units):
        # of two, the one that was found stands before the one that was not
        return expect.what == "before" and units[0] is not None, "not found" if units[0] is None else "alone"
    first, last = known[0], known[-1]
    if expect.what == "rank":
        return first.rank <= expect.bound, f"{first.rank}"
    if expect.what == "before":
        return first.rank < last.rank, f"{first.rank} < {last.rank}" if first.rank < last.rank else (
            f"{first.rank} > {last.rank}" if first.rank > last.rank else f"both {first.rank}")
    if expect.what == "near":
        apart = abs(first.score - last.score)
        return apart < expect.bound, f"{apart:.3f}"
    if expect.what == "score":
        return first.score > expect.bound, f"{first.score:.3f}"
    text = first.text or 0.0
    if expect.what == "text":
        return text > expect.bound, f"{text:.3f}"
    vector = VECTOR * (first.cosine or 0.0)
    return vector > TEXT * text, f"{vector:.2f} v {TEXT * text:.2f}"
