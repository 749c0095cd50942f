"""The drill-down's table: texts, dates, and which ranks hold evidence."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab.experiment.harness.run_tables import MAX_CHARACTERS, SHOWN_RANKS, snippets
from memlab.pipeline.tables import Tables
from memlab.stages.rank.score import Score
from memlab.store import Store
from tests.small import lexical, lives


def made(tmp_path: Path, tables: Tables | None = None, **stages) -> tuple[pl.DataFrame, Tables]:
    tables = lexical(**stages).run(tables or lives().load(), Store(tmp_path))
    ranked = tables["ranking"].join(tables["units"].select("unit", "session", "turns"), on="unit")
    return snippets(ranked, tables), tables


def test_the_first_ranks_with_speaker_text_and_date(tmp_path: Path) -> None:
    table, tables = made(tmp_path)
    assert table.columns == ["question", "rank", "unit", "session", "turns", "said_on", "text", "gold", "selected"]
    assert table.group_by("question").len()["len"].to_list() == [SHOWN_RANKS] * 16
    row = table.row(0, named=True)
    unit = tables["units"].row(by_predicate=pl.col("unit") == row["unit"], named=True)
    turn = tables["turns"].row(by_predicate=(pl.col("corpus") == unit["corpus"]) & (
        pl.col("session") == unit["session"]) & (pl.col("turn") == unit["turns"][0]), named=True)
    said = tables["texts"].row(by_predicate=pl.col("text_id") == turn["text_id"], named=True)["text"]
    assert row["text"] == f"{turn['role']}: {said}"[:MAX_CHARACTERS]
    assert row["said_on"] == tables["sessions"].row(by_predicate=(pl.col("corpus") == unit["corpus"]) & (
        pl.col("session") == unit["session"]), named=True)["said_on"]


@pytest.mark.parametrize("known", [True, False])
def test_gold_is_the_turn_that_holds_evidence_or_any_of_its_session(tmp_path: Path, known: bool) -> None:
    tables = lives().load()
    if not known:
        tables = tables.updated({"evidence": tables["evidence"].with_columns(turn=pl.lit(None, pl.Int32))})
    table, _ = made(tmp_path, tables)
    evidence = set(tables["evidence"].select("question", "session", "turn").rows())
    assert table["gold"].any()
    for row in table.iter_rows(named=True):
        assert row["gold"] == ((row["question"], row["session"], row["turns"][0] if known else None) in evidence)


def test_a_long_unit_is_cut(tmp_path: Path) -> None:
    table, _ = made(tmp_path, score=Score(level="session"))
    assert table["text"].str.len_chars().max() == MAX_CHARACTERS
    assert table["text"].str.contains("\n").any()
