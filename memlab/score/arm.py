"""An arm made of a foreign ranking: only its selection, context and evaluation run here."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.errors import MemlabError
from memlab.harness.arm import Arm, Ranked, load
from memlab.score.runs import Run
from memlab.score.units import Matched, match
from memlab.slots import LANES, LAST_RANKED, LAST_WRITTEN
from memlab.stage import Nothing, stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.text.display import clean


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


def foreign_arm(base: Arm, name: str, run: Run, store: Store) -> tuple[Arm, Ranked, list[str]]:
    """Return an arm with the run's ranking and the selection of ``base``, its tables, and the run's faults.

    The faults are notes of the arm too, so that they stand in the report.
    """
    data = load(base.dataset)
    matched = match(run, data)
    digest = hashlib.blake2b(json.dumps(run.rows.rows()).encode(), digest_size=16).hexdigest()
    pipeline = base.pipeline.replace(**{lane: Nothing(writes=("hits",)) for lane in LANES}).without(
        "boost", "rerank", "fuse", "rollup").replace(score=ForeignRun(digest=digest, level=matched.level))
    pipeline = pipeline.without("window")
    arm = replace(base, name=name, pipeline=pipeline, config=f"{base.config}\nforeign_run: {digest}\n",
                  notes=tuple(clean(f"{name}: {fault}") for fault in matched.faults))
    return arm, Ranked(_tables(arm, data, matched, store), {}, Counter()), matched.faults


def _tables(arm: Arm, data: Tables, matched: Matched, store: Store) -> Tables:
    written = arm.pipeline.run(data, store, until=LAST_WRITTEN)
    hits = Nothing(writes=("hits",)).run(Tables(), store)
    tables = written.updated({**hits, "units": matched.units, "ranking": matched.ranking, "ids": matched.ids})
    return arm.pipeline.run(tables, store, after="rollup", until=LAST_RANKED)


def run_name(path: Path) -> str:
    """Return the name of a run's arm: the file's name without its ending.

    >>> run_name(Path("runs/my bm25.trec"))
    'my bm25'
    """
    return path.stem or "run"
