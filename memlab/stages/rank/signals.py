"""Signals: one number for each ranked unit, from what is known about its memories besides their text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal, Protocol, runtime_checkable

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from memlab.pipeline.question_types import VOCABULARY
from memlab.pipeline.stage import Names, stage
from memlab.pipeline.tables import SESSION, Tables, as_of
from memlab.support.errors import did_you_mean


@runtime_checkable
class Signal(Protocol):
    """A column of the ranking: how recent, how important, how well related a unit is.

    Signals are frozen ``@stage`` classes, so that their fields are their configuration. They may use what was known
    on the day of the question, and nothing of gold.
    """

    @property
    def name(self) -> str:
        """Name of the column."""
        ...

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question Int32, unit Int64, value Float64), each pair once, for units of ``tables["ranking"]``.

        A pair that is left out, or whose value is null, has no value. ``tables`` are those that ``Boost`` reads; its
        ranking holds no more units than are rescored.
        """
        ...


PAIR = ["question", "unit"]


def known_classes(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names if all are classes of questions (``memlab.pipeline.question_types``); raise ValueError
    otherwise."""
    for name in names:
        if name not in VOCABULARY:
            raise ValueError(f"no class of questions is called '{name}'; {did_you_mean(name, VOCABULARY)}")
    return names


Classes = Annotated[Names, AfterValidator(known_classes)]
"""Classes of questions that a signal is for; none: for every question."""


def on_units(tables: Tables) -> pl.DataFrame:
    """Return (question, unit, memory): the memories of each unit of the ranking, sorted.

    A unit of level memory has itself, a turn the memories that name it, a session all memories of the session. Memories
    said on a later day than the question was asked are left out.
    """
    ranking = tables["ranking"].select(PAIR)
    units = tables["units"].join(ranking, on="unit", how="semi")
    memories = tables["memories"].select("memory", *SESSION, "turns", "said_on").join(units, on=SESSION, how="semi")
    own = units.filter(pl.col("level") == "memory").select("unit", pl.col("unit").alias("memory")).join(
        memories.select("memory"), on="memory", how="semi")
    named = units.filter(pl.col("level") == "turn").select("unit", *SESSION, pl.col("turns").alias("turn"))
    turns = named.explode("turn").join(
        memories.select("memory", *SESSION, pl.col("turns").alias("turn")).explode("turn"), on=[*SESSION, "turn"])
    whole = units.filter(pl.col("level") == "session").join(memories.select("memory", *SESSION), on=SESSION)
    members = pl.concat([part.select("unit", "memory") for part in (own, turns, whole)]).unique()
    return (ranking.join(members, on="unit")
            .join(tables["questions"].select("question", "asked_on"), on="question", how="left")
            .join(memories.select("memory", "said_on"), on="memory", how="left")
            .filter(as_of()).select(*PAIR, "memory").sort(*PAIR, "memory"))


def unit_places(tables: Tables) -> pl.DataFrame:
    """Return (question, unit, corpus, session, turns, level, said_on) for the units of the ranking.

    ``said_on`` is a memory's own where the unit is a memory, else its session's.
    """
    days = tables["sessions"].select(*SESSION, pl.col("said_on").alias("day"))
    own = tables["memories"].select(pl.col("memory").alias("unit"), pl.lit("memory").alias("level"), "said_on")
    units = tables["units"].select("unit", *SESSION, "turns", "level").join(
        tables["ranking"], on="unit", how="semi").join(days, on=SESSION, how="left").join(
        own, on=["unit", "level"], how="left")
    return tables["ranking"].select(PAIR).join(
        units.select("unit", *SESSION, "turns", "level", pl.coalesce("said_on", "day").alias("said_on")),
        on="unit", how="left", maintain_order="left")


def questions_of(tables: Tables, classes: Sequence[str]) -> pl.DataFrame:
    """Return (question) for the ranked questions of these classes; without classes, for all."""
    questions = tables["ranking"].select(pl.col("question").unique(maintain_order=True))
    if not classes:
        return questions
    return questions.join(tables["classes"].filter(pl.col("class").is_in(list(classes))), on="question", how="semi")


def flag_units(tables: Tables, units: pl.DataFrame, classes: Sequence[str], otherwise: float = 0.0) -> pl.DataFrame:
    """Return (question, unit, value) for all of the ranking: 1 for the pairs in ``units``, 0 for the others.

    Questions of other classes have the value ``otherwise`` throughout.
    """
    marked = units.select(PAIR).unique().with_columns(pl.lit(1.0).alias("in"))
    ours = questions_of(tables, classes).with_columns(pl.lit(True).alias("ours"))
    rows = tables["ranking"].select(PAIR).join(marked, on=PAIR, how="left", maintain_order="left").join(
        ours, on="question", how="left", maintain_order="left")
    return rows.select(*PAIR, pl.when("ours").then(pl.col("in").fill_null(0.0)).otherwise(otherwise).alias("value"))


@stage
class Category:
    """1 for units with a memory of one of the ``categories`` or ``sources``, else 0.

    Units of questions of none of the ``classes`` have ``otherwise``: 0 for a factor, which then does nothing, 1 for a
    floor, which then keeps all. Without classes the signal is for every question. If no memory of a unit has a source
    (user, assistant, document), the roles of its turns count.
    """

    name: str = Field(min_length=1)
    classes: Classes = ()
    categories: Names = ()
    sources: Names = ()
    otherwise: float = 0.0

    @model_validator(mode="after")
    def _some_sort(self) -> Category:
        if not (self.categories or self.sources):
            raise ValueError("no sort of memory is named; give categories or sources")
        return self

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        labelled = on_units(tables).join(tables["memories"].select("memory", "source", "category"), on="memory")
        extracted = labelled.filter(pl.col("source") != "conversation")
        spoken = unit_places(tables).join(extracted, on=PAIR, how="anti").explode("turns").join(
            tables["turns"], left_on=[*SESSION, "turns"], right_on=[*SESSION, "turn"])
        fits = pl.concat([
            labelled.filter(pl.col("category").is_in(list(self.categories))).select(PAIR),
            extracted.filter(pl.col("source").is_in(list(self.sources))).select(PAIR),
            spoken.filter(pl.col("role").is_in(list(self.sources))).select(PAIR),
        ])
        return flag_units(tables, fits, self.classes, self.otherwise)


DOCUMENTS = (".md", ".txt", ".pdf", ".docx", ".json")


@stage
class Source:
    """The highest authority among the speakers and sources of a unit's memories; 0 for those not named.

    Gimli's session versus memory source: a document comes before talk. The speaker of a document's turns is its path
    (``data=documents``).
    """

    name: str = "source"
    # end of a speaker's name -> authority in [0, 1]
    speakers: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=lambda: dict.fromkeys(DOCUMENTS, 1.0))
    # source of a memory (user, assistant, conversation) -> authority
    sources: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        ends = [pl.when(pl.col("speaker").str.to_lowercase().str.ends_with(end.lower())).then(value).otherwise(0.0)
                for end, value in self.speakers.items()]
        value = pl.max_horizontal(pl.lit(0.0), *ends).fill_null(0.0).alias("value")
        spoken = tables["turns"].select(*SESSION, "turn", value)
        memories = tables["memories"].select("memory", *SESSION, pl.col("turns").alias("turn"), "source")
        sources = memories.select("memory", pl.col("source").replace_strict(
            self.sources, default=0.0, return_dtype=pl.Float64).alias("value"))
        speakers = memories.explode("turn").join(spoken, on=[*SESSION, "turn"]).select("memory", "value")
        authority = pl.concat([sources, speakers]).group_by("memory").agg(pl.col("value").max())
        values = on_units(tables).join(authority, on="memory").group_by(PAIR).agg(pl.col("value").max())
        return tables["ranking"].select(PAIR).join(values, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("value").fill_null(0.0))


@stage
class Importance:
    """The highest importance among a unit's memories; no value if none has one."""

    name: str = "importance"

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        importance = tables["memories"].select("memory", "importance")
        return on_units(tables).join(importance, on="memory").group_by(PAIR, maintain_order=True).agg(
            pl.col("importance").max().alias("value"))


@stage
class Recency:
    """Higher for younger units, by the age in whole days:

    * ``exp``: exp(-age / days). MemoryStack's, with days 30 (it calls 30 a half-life; it is the time constant).
    * ``linear``: 1 - age / days. Gimli's, with days 180 and ``lowest`` .5.

    ``inverted`` gives 1 - value, so that the factor 0 multiplies a score by the value. Units without a date have no
    value, nor have questions of other than the named ``classes``. With ``clock: wall``, as in systems that take the
    time of their own run, age counts back from the day ``now``; what was said later has age 0.
    """

    name: str = "recency"
    form: Literal["exp", "linear"] = "exp"  # exp: exp(-age / days) | linear: 1 - age / days
    days: Annotated[float, Field(gt=0)] = 30.0
    lowest: float = 0.0  # no value is lower
    inverted: bool = False  # 1 - value, for a factor of 0
    clock: Literal["question", "wall"] = "question"  # age on the question's day | on the day now
    now: Annotated[date, Field(strict=False)] | None = None
    classes: Classes = ()  # none: for all questions

    @model_validator(mode="after")
    def _now_is_set(self) -> Recency:
        if (self.clock == "wall") != (self.now is not None):
            raise ValueError("clock: wall needs now, the day that counts as today (now: 2026-01-01); "
                             "clock: question has none")
        return self

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        today = tables["questions"].select("question", pl.col("asked_on").dt.date().alias("now"))
        rows = unit_places(tables).join(today, on="question", how="left", maintain_order="left")
        now = pl.col("now") if self.now is None else pl.lit(self.now)
        age = (now - pl.col("said_on").dt.date()).dt.total_days().clip(lower_bound=0) / self.days
        value = ((-age).exp() if self.form == "exp" else 1 - age).clip(lower_bound=self.lowest)
        ours = rows.join(questions_of(tables, self.classes), on="question", how="semi", maintain_order="left")
        return ours.select(*PAIR, (1 - value if self.inverted else value).alias("value"))


@stage
class Feedback:
    """(useful + 1) / (useful + useless + 2): the share of good votes, with one vote of each kind as a prior.

    The votes are those that a live memory has recorded (``Memory.feedback``). In an experiment there are none, and each
    unit has .5.
    """

    name: str = "feedback"

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        return tables["ranking"].select(*PAIR, pl.lit(0.5).alias("value"))


def share_of_useful(tables: Tables, votes: pl.DataFrame) -> pl.DataFrame:
    """Return (question, unit, value), the smoothed share of good votes, from (question, unit, useful, useless, on)."""
    dates = tables["questions"].select("question", "asked_on")
    counts = votes.join(dates, on="question").filter(as_of("on")).group_by(PAIR).agg(
        pl.col("useful", "useless").sum())
    good, bad = pl.col("useful").fill_null(0), pl.col("useless").fill_null(0)
    return tables["ranking"].select(PAIR).join(counts, on=PAIR, how="left", maintain_order="left").select(
        *PAIR, ((good + 1) / (good + bad + 2)).alias("value"))


@stage
class AccessCount:
    """ln(1 + times): how often questions to a live memory have returned a unit, by its most often returned turn.

    Gimli boosts what is accessed frequently and gives no formula; the logarithm is ours. In an experiment nothing was
    returned before, and each unit has 0.
    """

    name: str = "accesses"

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        return tables["ranking"].select(*PAIR, pl.lit(0.0).alias("value"))


Kind = Literal["FOLLOWS", "RELATED_TO", "SAME_TOPIC", "ELABORATES", "CONTRADICTS", "SUPERSEDES"]


def _weights() -> dict[Kind, float]:
    return {"FOLLOWS": 0.2, "RELATED_TO": 0.5, "SAME_TOPIC": 0.5, "ELABORATES": 0.6, "CONTRADICTS": 0.3,
            "SUPERSEDES": 0.8}


@stage
class Relation:
    """Sum over a unit's edges of type weight x confidence: MemoryStack's relation score, which has no bound.

    Its type weights are not published; the defaults are ours. An edge counts for both its ends, SUPERSEDES for the
    newer one alone; edges within a unit, and kinds without a weight, do not count. Both ends must have been said by the
    day of the question. ``among: pool`` counts edges to units among the question's ``first`` ranks, ``all`` any edge.
    """

    name: str = "relation"
    weights: dict[Kind, float] = Field(default_factory=_weights)  # not published; ours
    among: Literal["pool", "all"] = "pool"
    first: Annotated[int, Field(ge=1)] = 30

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value); 0 for a unit without edges."""
        weighed = pl.DataFrame({"kind": list(self.weights), "weight": list(self.weights.values())},
                               schema={"kind": pl.String, "weight": pl.Float64})
        edges = tables["edges"].join(weighed, on="kind").select(
            "source", "target", "kind", (pl.col("weight") * pl.col("confidence")).alias("worth"))
        ends = pl.concat([edges.select(memory="source", other="target", worth="worth"),
                          edges.filter(pl.col("kind") != "SUPERSEDES").select(memory="target", other="source",
                                                                               worth="worth")])
        members = on_units(tables)
        dates = tables["memories"].select(pl.col("memory").alias("other"), "said_on")
        today = tables["questions"].select("question", "asked_on")
        reached = members.join(ends, on="memory").join(dates, on="other").join(today, on="question").filter(as_of())
        inside = members.select(*PAIR, pl.col("memory").alias("other"))
        reached = reached.join(inside, on=[*PAIR, "other"], how="anti")
        if self.among == "pool":
            pool = tables["ranking"].filter(pl.col("rank") <= self.first).select(PAIR)
            reached = reached.join(inside.join(pool, on=PAIR), on=["question", "other"], how="semi")
        # added in one order, so that the same edges give the same bits
        total = reached.sort(*PAIR, "memory", "other", "worth").group_by(PAIR, maintain_order=True).agg(
            pl.col("worth").sum().alias("value"))
        return tables["ranking"].select(PAIR).join(total, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("value").fill_null(0.0))


@stage
class Current:
    """1 for units that nothing had superseded by the day of the question, else 0: ``floors: {current: 1}`` filters.

    A memory is superseded from the day ``valid_to`` on, or from the day on which the source of an edge SUPERSEDES of at
    least ``least_confidence`` was said. A unit is superseded if every memory of this unit alone is: one old statement
    does not end a session, nor does a session memory keep an old turn. With ``classes``, units of others have 1.
    """

    name: str = "current"
    classes: Names = ()
    least_confidence: Annotated[float, Field(ge=0, le=1)] = 0.0

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        dates = tables["memories"].select("memory", pl.col("said_on").alias("end"))
        ends = pl.concat([
            tables["memories"].select("memory", pl.col("valid_to").alias("end")).drop_nulls("end"),
            tables["edges"].filter(pl.col("kind") == "SUPERSEDES", pl.col("confidence") >= self.least_confidence)
            .join(dates, left_on="source", right_on="memory").select(pl.col("target").alias("memory"), "end"),
        ]).group_by("memory").agg(pl.col("end").min(), pl.lit(True).alias("ended"))
        size = pl.col("turns").list.len()
        covered = (on_units(tables)
                   .join(tables["memories"].select("memory", size.alias("memory_turns")), on="memory")
                   .join(tables["units"].select("unit", size.alias("unit_turns")), on="unit")
                   .join(tables["questions"].select("question", "asked_on"), on="question")
                   .join(ends, on="memory", how="left"))
        over = pl.col("ended").fill_null(False) & as_of("end")
        own = pl.col("memory_turns") <= pl.col("unit_turns")
        superseded = covered.with_columns(over.alias("over"), own.alias("own")).group_by(PAIR).agg(
            pl.when(pl.col("own").any()).then((pl.col("over") | ~pl.col("own")).all())
            .otherwise(pl.col("over").all()).alias("superseded")).filter("superseded")
        gone = flag_units(tables, superseded, self.classes)
        return gone.with_columns((1.0 - pl.col("value")).alias("value"))
