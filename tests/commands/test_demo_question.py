"""What one question shows of a system: which fact stands first, and by which signals."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

from memlab.commands.demo import CURRENT, OTHER, OUTDATED, FirstResult, describe, find_evidence
from memlab.data.synthetic.dataset import Synthetic
from memlab.memory.results import RESULT
from memlab.pipeline.tables import with_text
from tests.small import lives

OLD, NEW = (9, 2), (24, 2)
FACTS = {OLD: "[2023-11-06]\nuser: My manager is Otis.", NEW: "[2024-04-01]\n# A day\n[2024-04-01] user: Hi.\n"
         "[2024-04-01] user: My new manager is Ximena.", (3, 0): "[2023-07-03]\nuser: It rains."}
DAYS = {OLD: datetime(2023, 11, 6), NEW: datetime(2024, 4, 1), (3, 0): datetime(2023, 7, 3)}


def found(*turns: tuple[int, int], **signals: list[float]) -> pl.DataFrame:
    """Results that show these turns in this order."""
    rows: dict[str, list[Any]] = {
        "rank": [*range(1, len(turns) + 1)], "score": [1.0 / (i + 1) for i in range(len(turns))],
        "selected": [True] * len(turns), "date": [DAYS[turn] for turn in turns],
        "session": [turn[0] for turn in turns], "turns": [[turn[1]] for turn in turns],
        "text": [FACTS[turn] for turn in turns], **signals}
    return pl.concat([pl.DataFrame(schema=RESULT), pl.DataFrame(rows)], how="diagonal_relaxed")


@pytest.mark.parametrize(("results", "first", "kind", "why"), [
    (found(NEW, (3, 0), OLD, dense=[0.9, 0.8, 0.3], lexical=[3.0, 0.0, 2.0]), "My new manager is Ximena. (2024-04-01)",
     CURRENT, "the fact that is out of date has rank 3; "
     "ahead by dense 0.90 against 0.30 and lexical 3.00 against 2.00"),
    (found(OLD, NEW, dense=[0.5, 0.6], lexical=[2.0, 1.0]), "My manager is Otis. (2023-11-06)", OUTDATED,
     "the current fact has rank 2; ahead by lexical 2.00 against 1.00"),
    (found((3, 0), OLD), "It rains. (2023-07-03)", OTHER, "the current fact is not among the first 2"),
    (found((3, 0), NEW), "It rains. (2023-07-03)", OTHER, "the current fact has rank 2")])
def test_which_fact_stands_first_and_why(results: pl.DataFrame, first: str, kind: Any, why: str) -> None:
    assert describe("one", results, [OLD, NEW]) == FirstResult("one", first, kind, why)


def test_a_result_with_both_facts_shows_the_current_one() -> None:
    both = found(NEW).with_columns(turns=pl.Series([[1, 2]], dtype=pl.List(pl.Int32)))
    assert describe("one", both, [(24, 1), (24, 2)]).kind == CURRENT


def test_the_evidence_is_the_question_of_the_embedded_data_the_latest_fact_last() -> None:
    tables = Synthetic(lives=8).load()
    turns = with_text(tables["turns"], tables["texts"]).filter(pl.col("text").str.contains("manager"))
    texts = {(row["session"], row["turn"]): row["text"] for row in turns.iter_rows(named=True)
             if row["corpus"] == tables["ids"].filter((pl.col("kind") == "corpus") & (pl.col("name") == "life-0"))
             .item(0, "corpus")}
    assert [texts[turn] for turn in find_evidence(tables)] == [
        "Before I forget: My manager is Otis.", "My new manager is Ximena."]
    assert find_evidence(lives(questions=1).load()) == []
