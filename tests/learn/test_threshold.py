from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from memlab.learn.threshold import Prices, prices, with_always, with_shown_from, with_value


def rows(p: list[float], tokens: list[float | None], questions: list[int] | None = None) -> pl.DataFrame:
    questions = questions or [0] * len(p)
    frame = pl.DataFrame({"question": questions, "probability": p, "tokens": tokens},
                         schema={"question": pl.Int32, "probability": pl.Float64, "tokens": pl.Float64})
    return frame.with_columns(pl.int_range(1, pl.len() + 1).over("question").alias("rank"))


def test_values_by_hand() -> None:
    frame = rows([0.8, 0.6, 0.2, 0.5], [10, 20, None, 5], [0, 0, 0, 1])
    assert with_value(frame, "unit")["value"].to_list() == [0.8, 0.6, None, 0.5]
    assert with_value(frame, "token")["value"].to_list() == pytest.approx([0.08, 0.03, None, 0.1])
    shared = with_value(frame, "share")["value"].to_list()  # 1.6 expected in question 0; at least 1 in question 1
    assert shared[:2] == pytest.approx([0.05, 0.01875])
    assert shared[2] is None
    assert shared[3] == pytest.approx(0.1)


def test_the_best_units_of_a_question_are_always_shown_and_equal_ones_by_rank() -> None:
    frame = with_value(rows([0.2, 0.2, 0.1, 0.9], [1, 1, 1, None]), "unit")
    assert with_always(frame, 1)["always"].to_list() == [True, False, False, False]
    assert with_always(frame, 2)["always"].to_list() == [True, True, False, False]
    assert with_always(frame, 9)["always"].to_list() == [True, True, True, False]  # what was not measured never is


def test_prices_by_hand() -> None:
    frame = with_always(with_value(rows([0.9, 0.5, 0.8, 0.1], [10, 20, 30, 40], [0, 0, 1, 1]), "unit"), 1)
    table = prices(frame)  # 0.9 and 0.8 are always shown: 40 tokens, 20 per question
    assert prices(with_always(with_value(rows([0.5], [8]), "unit"), 1)).tokens == (8.0,)  # every unit is always shown
    assert table.thresholds == (0.5, 0.1)
    assert table.tokens == (30.0, 50.0)
    assert with_shown_from(frame, table)["shown_from"].to_list() == [0.0, 30.0, 0.0, 50.0]
    assert table.shown_from(np.array([0.99, np.sqrt(0.05), 0.001])).tolist() == pytest.approx([30, 40, 50])


@pytest.mark.parametrize(("thresholds", "tokens", "message"), [
    ((), (), "one number for each row"), ((0.5,), (1.0, 2.0), "one number for each row"),
    ((0.1, 0.5), (1.0, 2.0), "must not rise"), ((0.5, 0.1), (2.0, 1.0), "must not fall"), ((0.0,), (1.0,), "above 0"),
    ((float("nan"), 0.5), (1.0, 2.0), "finite"), ((0.9, 0.5), (1.0, float("inf")), "finite")])
def test_a_table_that_is_none_is_refused(thresholds, tokens, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Prices(thresholds=thresholds, tokens=tokens)
