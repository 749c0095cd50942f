"""Accuracy of versioning on labelled updates, in generated lives and in LongMemEval.

    python experiments/write_side/invalidations.py [--oracle FILE] [--s FILE] [--locomo FILE] [--show 40]

One memory per user turn. No model is loaded: word rules decide which memories end, and vectors decide only which are
merged. The labels are read only here, after the stages have run. About a minute on 2 cores with all files.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.data.locomo import LoCoMo
from memlab.data.longmemeval import LongMemEval
from memlab.data.synthetic.dataset import Synthetic
from memlab.pipeline.tables import Tables
from memlab.stages.systems.memorystack.relations import MemoryStack
from memlab.stages.write.chunk import TurnChunker
from memlab.stages.write.relations import Versions
from memlab.store import Store

PLACE = ["corpus", "session", "turn"]
BY = ["corpus", "session_by", "turn_by"]


class Apart:
    """An embedder for which no two texts are similar, so that nothing is merged."""

    def identity(self) -> dict[str, Any]:
        return {"is": "apart"}

    def dim(self) -> int:
        return 1

    def encode(self, texts: Sequence[str], role: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # noqa: ARG002
        yield np.arange(len(texts)), np.zeros((len(texts), 1), np.float32)

    def truncated(self, texts: Sequence[str], role: str) -> np.ndarray:  # noqa: ARG002
        return np.zeros(len(texts), bool)


def ended_memories(tables: Tables, stage: Any, store: Store) -> pl.DataFrame:
    """Return (corpus, session, turn, text, session_by, turn_by, text_by) of memories ended by the last question's day.

    The columns with ``_by`` describe the memory that ends the other.
    """
    out = tables.updated(stage.run(tables.only(stage.reads), store))
    memories = out["memories"].select("memory", "corpus", "session", turn=pl.col("turns").list.first(),
                                      day=pl.col("said_on").dt.date(), text_id="value_id")
    memories = memories.join(out["texts"], on="text_id")
    last_day = out["questions"].group_by("corpus").agg(pl.col("asked_on").max().dt.date().alias("asked"))
    rows = out["edges"].filter(pl.col("kind") == "SUPERSEDES").join(memories, left_on="target", right_on="memory").join(
        memories, left_on="source", right_on="memory", suffix="_by").join(last_day, on="corpus")
    return rows.filter(pl.col("day_by") <= pl.col("asked")).select(
        *PLACE, "text", "session_by", "turn_by", "text_by").sort(*PLACE, *BY)


def label_evidence(tables: Tables) -> pl.DataFrame:
    """Return (question, category, corpus, session, turn, label) for the evidence turns that are memories.

    If a knowledge-update question has evidence in several sessions, that of the latest session is labelled new and
    the rest old. All other evidence is labelled stays.
    """
    memories = tables["memories"].select(*PLACE[:2], turn=pl.col("turns").list.first())
    rows = (tables["evidence"].drop_nulls().join(tables["questions"].select("question", "corpus"), on="question")
            .join(tables["gold"].select("question", "category", "abstain"), on="question")
            .join(memories, on=PLACE, how="semi"))
    update = ((pl.col("category") == "knowledge-update") & ~pl.col("abstain")
              & (pl.col("session").n_unique().over("question") > 1))
    latest = pl.col("session") == pl.col("session").max().over("question")
    return rows.with_columns(label=pl.when(~update).then(pl.lit("stays")).when(latest).then(pl.lit("new"))
                             .otherwise(pl.lit("old")))


def measure(name: str, tables: Tables, show: int) -> None:
    """Print one row for each arm, and a sample of the ended memories."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        tables = tables.updated(TurnChunker(roles=("user",)).run(tables.only(TurnChunker.reads), store))
        evidence = label_evidence(tables)
        for arm, stage in (("memorystack", MemoryStack(embedder=Apart(), gate=0.0)),
                           ("versions", Versions(embedder=Apart()))):
            report(name, arm, tables, evidence, ended_memories(tables, stage, store), show)


def report(name: str, arm: str, tables: Tables, evidence: pl.DataFrame, ended: pl.DataFrame, show: int) -> None:
    """Count the ended memories by label; a memory that is old evidence of any question is ended rightly."""
    old, new, rest = (evidence.filter(pl.col("label") == label) for label in ("old", "new", "stays"))
    is_old, must_stay = old.select(PLACE).unique(), pl.concat([new, rest]).select(PLACE).unique().join(
        old, on=PLACE, how="anti")
    memories = ended.select(PLACE).unique()
    right, wrong = memories.join(is_old, on=PLACE, how="semi"), memories.join(must_stay, on=PLACE, how="semi")
    pairs = old.join(ended, on=PLACE).join(new.select("question", "corpus", session_by="session", turn_by="turn"),
                                          on=["question", *BY])
    by_type = dict(wrong.join(evidence, on=PLACE).group_by("category").len().sort("category").iter_rows())
    print(f"| {name} | {arm} | {tables['memories'].height:,} | {memories.height:,} "
          f"| {pairs['question'].n_unique()} of {old['question'].n_unique()} | {right.height} "
          f"| {wrong.height} of {must_stay.height} {by_type or ''} | {memories.height - right.height - wrong.height} |")
    kinds = pl.concat([is_old.with_columns(label=pl.lit("right")), must_stay.with_columns(label=pl.lit("wrong"))])
    rows = ended.join(kinds, on=PLACE, how="left").rows(named=True)
    random.Random(0).shuffle(rows)
    for row in sorted(rows[:show], key=lambda row: str(row["label"])):
        print(f"  [{row['label'] or 'no label'}] {row['text'][:400]!r}\n      ended by {row['text_by'][:400]!r}")


def main() -> None:
    """Measure on the generated lives and on the files given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", type=Path)
    parser.add_argument("--s", type=Path)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--lives", type=int, default=100)
    parser.add_argument("--show", type=int, default=0)
    args = parser.parse_args()
    print("| data | arm | memories | ended | updates caught | ended, rightly | ended, must stay | ended, no label |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for share in (0.0, 0.1, 1.0):
        lives = Synthetic(lives=args.lives, paraphrase=share, distractors=1.0)
        measure(f"lives, paraphrase {share}", lives.load(), args.show)
    for variant, path in (("oracle", args.oracle), ("s", args.s)):
        if path:
            measure(f"longmemeval_{variant}", LongMemEval(variant=variant, path=path).load(), args.show)
    if args.locomo:
        measure("locomo", LoCoMo(path=args.locomo).load(), args.show)


if __name__ == "__main__":
    main()
