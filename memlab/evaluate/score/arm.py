"""An arm made of a foreign ranking: its documents as units, then selection, context and evaluation.

Documents are the benchmark's own names of sessions and turns; unknown ones keep their ranks as misses.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.evaluate.export import question_ids
from memlab.evaluate.score.runs import Run
from memlab.experiment.harness.arm import Arm, Ranked, load
from memlab.pipeline.slots import LANES, LAST_RANKED, LAST_WRITTEN
from memlab.pipeline.stage import EmptyStage, stage
from memlab.pipeline.tables import SCHEMAS, SESSION, Tables, as_of, frame
from memlab.stages.rank.units import session_units, turn_units, with_ranks
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.text.display import safe_line

Level = Literal["session", "turn"]

EXAMPLES = 3
"""Names that a message shows."""

MISSES = "They keep their ranks as misses, count for K and cost no tokens."

DECIDES = {
    "score": "The highest score is taken for the best; add --ascending if the scores are distances, --by-rank if the "
             "ranks are right.",
    "ascending": "The lowest score is taken for the best; leave out --ascending if the scores are no distances, or "
                 "take --by-rank in its place if the ranks are right."}
"""What a message says where ranks and scores disagree, by the order of the run."""

@dataclass(frozen=True)
class Matched:
    """A run in memlab's numbers: units and ranking, their level, and what is wrong with the run, in sentences.

    ``ids`` is the data's table of that name with the names of the unknown documents.
    """

    units: pl.DataFrame
    ranking: pl.DataFrame
    ids: pl.DataFrame
    level: Level
    faults: list[str]


def match(run: Run, tables: Tables) -> Matched:
    """Return the run's rows as units of this data set, ranked from 1 within each question.

    Documents are names of turns or of sessions; the level is the one at which more rows match. A name that occurs
    several times in a history means its first place, and where it is ranked again its second; ``name#2`` means the
    second as well. LongMemEval's own logs write ``noans`` for ``answer`` in the names of what holds no evidence.

    A document that the history does not have, at that level or up to that day, keeps its rank. A unit that is ranked
    again is left out, and the ranks close up. Raises MemlabError if no row matches.
    """
    topics = _topics(tables)
    rows = run.rows.with_row_index("row").join(topics, on="topic", how="left", maintain_order="left")
    known = rows.filter(pl.col("question").is_not_null()).with_columns(
        nth=pl.int_range(1, pl.len() + 1).over("question", "document"))
    if known.is_empty():
        raise MemlabError(f"no topic of the run is a question of this data set: {_examples(rows['topic'])}; its "
                          f"questions have names such as {_examples(topics['topic'])}", fix="check data=...")
    units = {"turn": turn_units(tables["turns"]), "session": session_units(tables["sessions"], tables["turns"])}
    documents = {level: _documents(tables, level, units[level]) for level in ("turn", "session")}
    found = {level: known.join(names, on=["corpus", "document", "nth"], how="left", maintain_order="left")
             for level, names in documents.items()}
    level: Level = "turn" if found["turn"]["unit"].count() >= found["session"]["unit"].count() else "session"
    if not found[level]["unit"].count():
        raise MemlabError(
            f"no document of the run is a session or turn of this data set: {_examples(known['document'])}; its turns "
            f"have names such as {_examples(documents['turn']['document'])}, its sessions "
            f"{_examples(documents['session']['document'])}", fix="rank the benchmark's own ids")
    dated = _with_dates(found[level], units[level], tables)
    placed = dated.filter(pl.col("unit").is_not_null() | (pl.col("nth") == 1))
    unknown, names = _unknown_units(placed, level, units[level].height)
    ranked = placed.join(unknown.select("corpus", "name", pl.col("unit").alias("own")), on=["corpus", "name"],
                         how="left", maintain_order="left").with_columns(pl.coalesce("own", "unit").alias("unit"))
    ranked = ranked.unique(["question", "unit"], keep="first", maintain_order=True)
    ranking = with_ranks(ranked.sort("question", "row")).select(
        pl.col("question").cast(pl.Int32), "unit", "score", "rank", "selected")
    faults = [*_about_rows(run, topics, rows, ranked), *_about_order(run, known.height - ranked.height)]
    return Matched(pl.concat([units[level], unknown.select(units[level].columns)]), ranking,
                   pl.concat([tables["ids"], names]), level, faults)


def _topics(tables: Tables) -> pl.DataFrame:
    """Return (topic, question, corpus): each question's name, or its number where it has none."""
    names = question_ids(tables).rename({"question_id": "topic"})
    return names.join(tables["questions"].select("question", "corpus"), on="question", maintain_order="left")


def _documents(tables: Tables, level: Level, units: pl.DataFrame) -> pl.DataFrame:
    """Return (corpus, document, nth, unit): the unit that the nth row with this name means."""
    keys = [*SESSION, "turn"] if level == "turn" else SESSION
    places = units.with_columns(pl.col("turns").list.first().alias("turn")).select("unit", *keys)
    names = tables["ids"].filter(pl.col("kind") == level).select(*keys, pl.col("name").alias("document")).join(
        places, on=keys).sort(keys)
    plain = names.select("corpus", "document", pl.int_range(1, pl.len() + 1).over("corpus", "document").alias("nth"),
                         "unit", pl.len().over("corpus", "document").alias("times"))
    numbered = plain.filter(pl.col("times") > 1).with_columns(
        pl.format("{}#{}", "document", "nth").alias("document"), pl.lit(1, pl.Int64).alias("nth"))
    both = pl.concat([plain, numbered]).drop("times")
    renamed = both.filter(pl.col("document").str.contains("answer", literal=True)).with_columns(
        pl.col("document").str.replace_all("answer", "noans", literal=True))
    return pl.concat([both, renamed]).unique(["corpus", "document", "nth"], keep="first", maintain_order=True)


def _with_dates(found: pl.DataFrame, units: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Add ``late``, whether the unit was said on a later day, and ``name``, that of a unit to be made, else null."""
    said = units.select("unit", *SESSION).join(tables["sessions"], on=SESSION, how="left").select("unit", "said_on")
    asked = tables["questions"].select("question", "asked_on")
    dated = found.join(asked, on="question", how="left", maintain_order="left").join(
        said, on="unit", how="left", maintain_order="left").with_columns((~as_of()).alias("late"))
    # a name of its own, since another question of this history may see the session
    late = pl.when("late").then(pl.format("{} (of a later day)", "document"))
    return dated.with_columns(pl.coalesce(late, pl.when(pl.col("unit").is_null()).then("document")).alias("name"))


def _unknown_units(placed: pl.DataFrame, level: Level, first: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the units of documents in no history, numbered from ``first``, with ``name``; and their ``ids``.

    Each is a session of its own with a negative number and no turns, so that it holds no evidence and no text.
    """
    made = placed.filter(pl.col("name").is_not_null()).select("corpus", "name").unique(maintain_order=True)
    units = made.with_row_index("n").select(
        (pl.col("n").cast(pl.Int64) + first).alias("unit"), "corpus",
        (-1 - pl.col("n").cast(pl.Int32)).alias("session"),
        pl.lit([], SCHEMAS["units"]["turns"]).alias("turns"), pl.lit(level).alias("level"), "name")
    return units, frame("ids", {"kind": ["session"] * units.height, "corpus": units["corpus"],
                                "session": units["session"], "name": units["name"]})


def _about_rows(run: Run, topics: pl.DataFrame, rows: pl.DataFrame, ranked: pl.DataFrame) -> list[str]:
    faults = []
    strange = rows.filter(pl.col("question").is_null())["topic"]
    if strange.len():
        faults.append(f"Topics that are no questions of this data set: {strange.n_unique():,} ({_examples(strange)}). "
                      "They are left out.")
    if run.left_out:
        faults.append(f"Entries of the file without scores: {len(run.left_out):,} "
                      f"({_examples(pl.Series(run.left_out))}). They are left out.")
    for rule, what in (
            (pl.col("name").is_not_null() & ~pl.col("late"), "documents that the question's history does not have"),
            (pl.col("late"), "a session of a later day than the question")):
        some = ranked.filter(rule)
        if some.height:
            faults.append(f"Rows that name {what}: {some.height:,}, in {some['question'].n_unique():,} of "
                          f"{topics.height:,} questions ({_examples(some['document'])}). {MISSES}")
    alone = ranked.group_by("topic", maintain_order=True).agg(pl.col("name").is_not_null().all()).filter("name")
    if alone.height:
        faults.append(f"{alone.height:,} of {topics.height:,} questions rank such documents alone "
                      f"({_examples(alone['topic'])}). They count as not found.")
    missing = topics.join(ranked.select("question").unique(), on="question", how="anti", maintain_order="left")
    if missing.height:
        faults.append(f"{missing.height:,} of {topics.height:,} questions have no ranking "
                      f"({_examples(missing['topic'])}). They count as not found.")
    return faults


def _about_order(run: Run, repeated: int) -> list[str]:
    faults = []
    if run.contradicted:
        faults.append(f"The ranks contradict the scores in {run.contradicted:,} of {run.rows['topic'].n_unique():,} "
                      f"topics. {DECIDES[run.order]}")
    if run.tied:
        what = "rank" if run.order == "rank" else "score"
        faults.append(f"Rows that share their {what} with another row of the question: {run.tied:,}. "
                      "The file's own order breaks these ties.")
    if repeated:
        faults.append(f"Rows that name a document again: {repeated:,}. The best one counts, and the ranks close up.")
    return faults


def _examples(names: pl.Series) -> str:
    distinct = names.drop_nulls().unique(maintain_order=True)
    return ", ".join(f"'{name}'" for name in distinct[:EXAMPLES]) + (", ..." if distinct.len() > EXAMPLES else "")


@stage
class ForeignRun:
    """The ranking of another system, which takes the place of search and ranking; it is read, never run."""

    reads: ClassVar = ()
    writes: ClassVar = ("units", "ranking")
    digest: str  # of the run's rows
    level: Annotated[str, Field(pattern="^(turn|session)$")] = "turn"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Raise MemlabError: the ranking was made elsewhere."""
        raise MemlabError("the ranking of a foreign run cannot be computed here", fix="memlab score RUN ...")


@dataclass(frozen=True)
class About:
    """What is known of a run beside its ranking: notes for the report, and the seconds that it cost, by step."""

    notes: Sequence[str] = ()
    costs: Mapping[str, float] = field(default_factory=dict)


def foreign_arm(base: Arm, name: str, run: Run, store: Store, about: About = About()  # noqa: B008 (it is frozen)
                ) -> tuple[Arm, Ranked, list[str]]:
    """Return an arm with the run's ranking and the selection of ``base``, its tables, and the run's faults.

    The faults are notes of the arm too, so that they stand in the report.
    """
    data = load(base.dataset)
    matched = match(run, data)
    digest = hashlib.blake2b(json.dumps(run.rows.rows()).encode(), digest_size=16).hexdigest()
    pipeline = base.pipeline.replace(**{lane: EmptyStage(writes=("hits",)) for lane in LANES}).without(
        "boost", "rerank", "fuse", "rollup").replace(score=ForeignRun(digest=digest, level=matched.level))
    pipeline = pipeline.without("window")
    arm = replace(base, name=name, pipeline=pipeline, settings={**base.settings, "foreign_run": digest},
                  notes=tuple(map(safe_line, (*(f"{name}: {fault}" for fault in matched.faults), *about.notes))))
    return arm, Ranked(_tables(arm, data, matched, store), {}, Counter(), {**about.costs}), matched.faults


def _tables(arm: Arm, data: Tables, matched: Matched, store: Store) -> Tables:
    written = arm.pipeline.run(data, store, until=LAST_WRITTEN)
    hits = EmptyStage(writes=("hits",)).run(Tables(), store)
    tables = written.updated({**hits, "units": matched.units, "ranking": matched.ranking, "ids": matched.ids})
    return arm.pipeline.run(tables, store, after="rollup", until=LAST_RANKED)


def run_name(path: Path) -> str:
    """Return the name of a run's arm: the file's name without its ending.

    >>> run_name(Path("runs/my bm25.trec"))
    'my bm25'
    """
    return path.stem or "run"
