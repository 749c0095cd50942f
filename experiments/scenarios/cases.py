"""Relevance scenarios, three cases each, and the check of a ranking against their expectations.

Gimli's eight scenarios with its own expectations, and memlab's four: ``cases.yaml``. ``examples.yaml`` has the examples
that Gimli's write-up gives, one for each of its scenarios, with its further checks. An expectation is met, not met, or
not defined for a system. Scores are the system's own. Vector and keyword parts follow Gimli's formula for every system,
0.7 x cosine and 0.3 x 1/(1 + keyword rank), so that they can be compared; a system without such a lane has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl

from memlab.experiment.harness.run_tables import MAX_CHARACTERS
from memlab.support.errors import MemlabError
from memlab.support.foreign import read_yaml
from scenarios.snippets import snippet

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Piece:
    """One relevant memory: said by the user in a chat or, with ``file``, a paragraph of a memory file.

    ``days`` counts back from the day of the question. Pieces of one file keep their order and are far apart in it.
    """

    name: str
    text: str
    days: int
    file: str | None = None
    evidence: bool = True


@dataclass(frozen=True)
class Expect:
    """An expectation about the units that contain some ``pieces``; reported, never required.

    * ``rank``: the unit of the piece is among the first ``bound``;
    * ``score``: its score is above ``bound``;
    * ``vector``: the vector part of its score is larger than the keyword part;
    * ``text``: its keyword score is above ``bound``;
    * ``snippet``: the snippet of the unit marks a word of the question;
    * ``path``: two pieces are found in units of one session or file;
    * ``near``: the scores of two pieces are less than ``bound`` apart;
    * ``before``: the first piece ranks before the second;
    * ``returned``: every piece is returned (selected);
    * ``nothing``: nothing is returned.
    """

    kind: Literal["rank", "score", "vector", "text", "snippet", "path", "near", "before", "returned", "nothing"]
    pieces: tuple[str, ...] = ()
    bound: float = 0.0

    @property
    def label(self) -> str:
        """The expectation in words.

        >>> Expect("rank", ("it",), 3).label, Expect("before", ("new", "old")).label
        ('in the top 3', 'new before old')
        """
        pieces = " and ".join(self.pieces) if len(self.pieces) <= 2 else "all"
        return {"rank": f"in the top {self.bound:g}", "score": f"score > {self.bound:g}",
                "vector": "vector share largest", "text": f"text score > {self.bound:g}",
                "snippet": "snippet with a word of the question", "path": f"{pieces} of one file",
                "near": f"scores within {self.bound:g}", "before": " before ".join(self.pieces),
                "returned": f"{pieces} returned", "nothing": "nothing returned"}[self.kind]


@dataclass(frozen=True)
class Scenario:
    """One case of a scenario: ``category`` names the scenario, ``case`` the case within it.

    Decoys resemble the pieces without answering the question; the user says them on random days. Without a piece of
    evidence the right answer is to decline.
    """

    category: str
    case: str
    question: str
    answer: str
    pieces: tuple[Piece, ...] = ()
    decoys: tuple[str, ...] = ()
    expect: tuple[Expect, ...] = ()

    @property
    def name(self) -> str:
        """The question's own id, ``category:case``."""
        return f"{self.category}:{self.case}"


def read_cases(file: str = "cases.yaml") -> Iterator[Scenario]:
    """Yield the cases of a file; an expectation without pieces is one about all of a case."""
    for category, scenario in read_yaml(FOLDER / file).items():
        expect = [Expect(e["kind"], tuple(e.get("pieces", ())), e.get("bound", 0.0)) for e in scenario["expect"]]
        for case, fields in scenario["cases"].items():
            pieces = tuple(Piece(name, **piece) for name, piece in fields.get("pieces", {}).items())
            names = tuple(piece.name for piece in pieces)
            expected = tuple(replace(e, pieces=e.pieces or names) for e in expect)
            yield Scenario(category, case, fields["question"], fields["answer"], pieces,
                           tuple(fields.get("decoys", ())), expected)


CASES: dict[str, Scenario] = {scenario.name: scenario for scenario in read_cases()}
"""Every case by its name; its position is the number of its corpus and of its question."""

EXAMPLES: dict[str, Scenario] = {scenario.name: scenario for scenario in read_cases("examples.yaml")}
"""Gimli's own examples by their names, in place of the cases where a data set asks for them."""

KNOWN = CASES | EXAMPLES

CATEGORIES = tuple(dict.fromkeys(scenario.category for scenario in CASES.values()))

VECTOR, TEXT = 0.7, 0.3
"""Gimli's weights."""

DENSE, LEXICAL = "dense", "lexical"
"""Prefixes of the signal columns of the two lanes."""

Place = tuple[int, int]
"""(session, turn)"""


@dataclass(frozen=True)
class RankedPiece:
    """The best unit that contains a piece; cosine and text are None if no such lane found the unit.

    ``text`` is Gimli's keyword score, 1/(1 + rank), with ranks from 1 among the units in the run folder; for a system
    that drops low scores it is therefore an upper bound. ``shown`` is the unit's text, None beyond the ranks whose text
    a run folder has.
    """

    rank: int
    score: float
    selected: bool
    cosine: float | None
    text: float | None
    session: int = 0
    shown: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of one expectation: ``met`` is None if it is not defined; ``value`` is the figure behind it."""

    category: str
    case: str
    expect: Expect
    met: bool | None
    value: str


def outcomes(ranking: pl.DataFrame, ids: pl.DataFrame, shown: pl.DataFrame | None = None) -> list[Outcome]:
    """Check a run's ranking (question, session, turns, signals, score, rank, selected) against all of its cases.

    shown: (question, rank, text) of the first units.
    """
    questions = dict(ids.filter(kind="question").select("name", "question").iter_rows())
    unknown = sorted(questions.keys() - KNOWN.keys())
    if unknown:
        raise MemlabError(f"there is no scenario '{unknown[0]}'",
                          fix="run the arm again with plugins=[scenarios] data=scenarios")
    places, ranking_with_lanes = piece_places(ids), with_lane_scores(ranking)
    if shown is not None:
        texts = shown.select("question", "rank", pl.col("text").alias("shown"))
        ranking_with_lanes = ranking_with_lanes.join(texts, on=["question", "rank"], how="left")
    vectors, keywords = (any(c.startswith(lane) for c in ranking.columns) for lane in (DENSE, LEXICAL))
    results = []
    for name, scenario in KNOWN.items():
        if name not in questions:
            continue
        rows = ranking_with_lanes.filter(question=questions[name])
        pieces = {piece: locate(rows, place) for piece, place in places.get(name, {}).items()}
        returned = int(rows["selected"].sum())
        results += [Outcome(scenario.category, scenario.case, expect,
                            *check(expect, pieces, returned, vectors, keywords, scenario.question))
                    for expect in scenario.expect]
    return results


def piece_places(ids: pl.DataFrame) -> dict[str, dict[str, Place]]:
    """Return case -> piece -> its place; in pooled data, turns are named "corpus/case#piece"."""
    out: dict[str, dict[str, Place]] = {}
    turns = ids.filter(kind="turn").filter(pl.col("name").str.contains("#", literal=True))
    for session, turn, name in turns.select("session", "turn", "name").iter_rows():
        case, _, piece = name.rpartition("/")[2].rpartition("#")
        out.setdefault(case, {})[piece] = (session, turn)
    return out


def with_lane_scores(ranking: pl.DataFrame) -> pl.DataFrame:
    """Add ``cosine`` (the best of the vector lanes) and ``text`` (1/(1 + the best rank of the keyword lanes))."""
    signals = {lane: [c for c in ranking.columns if c.startswith(lane)] for lane in (DENSE, LEXICAL)}
    ranks = [1 / (1 + pl.col(c).round(6).rank("min", descending=True).over("question")) for c in signals[LEXICAL]]
    null = pl.lit(None, pl.Float64)
    return ranking.with_columns(
        (pl.max_horizontal(signals[DENSE]) if signals[DENSE] else null).alias("cosine"),
        (pl.max_horizontal(ranks) if ranks else null).alias("text"))


def locate(rows: pl.DataFrame, place: Place) -> RankedPiece | None:
    """Return the first unit of a question that contains a turn; None if none was ranked."""
    session, turn = place
    best = rows.filter(pl.col("session") == session, pl.col("turns").list.contains(turn)).sort("rank").head(1)
    if best.is_empty():
        return None
    shown = [name for name in ("shown",) if name in rows.columns]
    return RankedPiece(*best.select("rank", "score", "selected", "cosine", "text", "session", *shown).row(0))


def check(expect: Expect, pieces: Mapping[str, RankedPiece | None], returned: int, vectors: bool = True,
          keywords: bool = True, question: str = "") -> tuple[bool | None, str]:
    """Return whether an expectation is met, and the figure behind it.

    ``returned``: number of units that the system returned; ``vectors``, ``keywords``: whether it has such a lane.

    >>> check(Expect("rank", ("it",), 3), {"it": RankedPiece(4, 0.61, True, 0.8, 0.5)}, 6)
    (False, '4')
    """
    units = [pieces.get(name) for name in expect.pieces]
    ranked = [unit for unit in units if unit is not None]
    if expect.kind == "nothing":
        return returned == 0, f"{returned} returned"
    if expect.kind == "returned":
        count = sum(unit.selected for unit in ranked)
        return count == len(units), f"{count} of {len(units)}"
    if (expect.kind == "vector" and not vectors) or (expect.kind == "text" and not keywords):
        return None, "no such lane"
    if len(ranked) < len(units):
        # of two pieces, one that is ranked comes before one that is not
        return expect.kind == "before" and units[0] is not None, "not found" if units[0] is None else "alone"
    first, last = ranked[0], ranked[-1]
    if expect.kind == "rank":
        return first.rank <= expect.bound, f"{first.rank}"
    if expect.kind == "before":
        return first.rank < last.rank, f"{first.rank} < {last.rank}" if first.rank < last.rank else (
            f"{first.rank} > {last.rank}" if first.rank > last.rank else f"both {first.rank}")
    if expect.kind == "path":
        return first.session == last.session, "one file" if first.session == last.session else "two files"
    if expect.kind == "snippet":
        marked = [part for part, is_term in snippet(first.shown or "", question) if is_term]
        if not marked and (first.shown is None or len(first.shown) >= MAX_CHARACTERS):
            return None, "its text is not kept"  # a run folder has the first ranks, and the beginnings of their texts
        return bool(marked), f"{len(marked)} marked"
    if expect.kind == "near":
        distance = abs(first.score - last.score)
        return distance < expect.bound, f"{distance:.3f}"
    if expect.kind == "score":
        return first.score > expect.bound, f"{first.score:.3f}"
    text = first.text or 0.0
    if expect.kind == "text":
        return text > expect.bound, f"{text:.3f}"
    vector = VECTOR * (first.cosine or 0.0)
    return vector > TEXT * text, f"{vector:.2f} v {TEXT * text:.2f}"
