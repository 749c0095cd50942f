"""The half of a shuffle test that runs in a process of its own: nothing of the other half is alive there.

``python -m tests.leak_worker FOLDER`` runs pipelines on the tables in FOLDER and writes the digests of their results.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import polars as pl

from memlab.experiment.config.instantiate import choice_settings
from memlab.experiment.harness.sweep import read
from memlab.pipeline import pipeline as pipelines
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.tables import GOLD, Tables, text_hash
from memlab.stages.query.original import ShuffledQueries
from memlab.stages.rank.rerank import Rerank
from memlab.stages.search.dense import Dense
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.write.chunk import Levels, SessionChunker, TurnChunker
from memlab.stages.write.context import Header
from memlab.store import Store
from tests.choices import choices_of, comment
from tests.peeks import Peek
from tests.small import lexical
from tests.stages.search.world import Overlap, WordEmbedder
from tests.token_words import TokenWords

ROOT = Path(__file__).resolve().parents[1]
NEEDS = ("memlab.stages.oracle", "memlab.learn", "${embedder}", "${cross_encoder}", "${chat}", "memlab.models.",
         "dense:", "'dense'")
"""What a technique's file says that looks at gold, asks a model, or weighs a lane that is off here."""

Digests = dict[str, dict[str, str]]
"""Name of a pipeline -> table -> digest, without gold; "selected" counts the units that are selected."""


@functools.cache
def techniques(slot: str) -> list[tuple[str, Pipeline]]:
    """All techniques of a slot that load no model and may not see gold, each in a pipeline of its own."""
    names = []
    for choice in choices_of(slot):
        if not any(word in f"{comment(choice)}{choice_settings(choice)}" for word in NEEDS):
            names.append(choice.rpartition("/")[2])
    made = []
    for name in names:
        pipeline = of_technique(slot, name)
        if not any(GOLD & set(stage.reads) for _, stage in pipeline.stages()):  # a file may build on such a one
            made.append((name, pipeline))
    return made


def of_technique(slot: str, name: str) -> Pipeline:
    """The pipeline of the defaults, without vectors, with this technique in this slot."""
    (one,) = read(["search/dense=none", "track=none", f"{slot}={name}"]).arms
    return one.pipeline


def with_models() -> Pipeline:
    """A pipeline of techniques that ask models."""
    embedder, scorer = WordEmbedder(), Overlap()
    return Pipeline(chunk=Levels(chunkers=[TurnChunker(), SessionChunker(roles=("user",))]), context=Header(),
                    dense=Dense(embedder=embedder), late=WeightedLate(matcher=TokenWords()),
                    rerank=Rerank(scorer=scorer, pool=20), query=ShuffledQueries())


def chosen(what: str) -> list[tuple[str, Pipeline]]:
    """The pipelines of a slot, those with models, or one that peeks."""
    if what == "peek":
        return [(what, lexical(select=Peek()))]
    return [(what, with_models())] if what == "models" else techniques(what)


def digests(what: str, tables: Tables, root: Path) -> Digests:
    """Run the pipelines, each with nothing remembered, so that a leak shows."""
    made: Digests = {}
    for name, pipeline in chosen(what):
        pipelines._MEMO.clear()
        result = pipeline.run(tables, Store(root / "store"))
        made[name] = {table: text_hash(repr(result[table].rows())) for table in sorted(set(result) - GOLD)}
        made[name]["selected"] = str(result["ranking"]["selected"].sum())
    return made


def in_a_fresh_process(what: str, tables: Tables, folder: Path) -> Digests:
    """Run the pipelines in another process, which is given these tables and no others."""
    (folder / "tables").mkdir(parents=True)
    for name, table in tables.items():
        table.write_parquet(folder / "tables" / f"{name}.parquet")
    (folder / "what").write_text(what)
    subprocess.run([sys.executable, "-m", "tests.leak_worker", str(folder)], cwd=ROOT, check=True, timeout=600)
    made: Digests = json.loads((folder / "digests.json").read_text())
    return made


if __name__ == "__main__":
    place = Path(sys.argv[1])
    given = Tables(**{path.stem: pl.read_parquet(path) for path in sorted((place / "tables").glob("*.parquet"))})
    (place / "digests.json").write_text(json.dumps(digests((place / "what").read_text(), given, place)))
