from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluate.statistics import mean
from memlab.evaluate.summary import ABOUT, averages, macro_averages, metric_names, per_question, summary
from tests.examples import fewer


def test_rows_describe_the_question_and_hold_every_metric(make_random_world) -> None:
    rows = per_question(make_random_world(0))
    assert tuple(rows.columns[: len(ABOUT)]) == ABOUT
    assert rows["text"][4] == "question 4"
    assert rows.select(metric_names(rows)).dtypes == [pl.Float64] * len(metric_names(rows))
    assert {"session/mrr", "turn/ndcg@10", "selected/k", "context/tokens"} <= set(rows.columns)


def test_averages_overall_by_type_and_without_label_errors(make_random_world) -> None:
    rows = per_question(make_random_world(0))
    wrong = pl.when(pl.col("question") == 3).then(pl.lit("wrong answer")).otherwise(None)
    figures = averages(rows.with_columns(wrong.alias("label_error")))
    multi = rows.filter(category="multi")["session/mrr"].drop_nulls().to_list()
    assert figures["type=multi/session/mrr"] == mean(multi)
    kept = rows.filter(pl.col("question") != 3)["session/mrr"].drop_nulls().to_list()
    assert figures["clean/session/mrr"] == mean(kept)
    assert figures["questions"] == 30
    assert figures["clean/questions"] == 29
    assert figures["context/tokens_mean"] > 0
    assert "context/tokens" not in figures
    assert not [name for name in averages(rows) if name.startswith("clean/")]
    assert all(isinstance(v, float | int) and v == v for v in figures.values())


def test_macro_averages_are_means_of_means() -> None:
    """Types a (2 questions that count: .5 and 1), b (one: 0); conversations 0 (.5), 1 (1 and 0)."""
    rows = pl.DataFrame({"category": ["a", "a", "b", "b", None], "corpus": [0, 1, 1, 1, 0],
                         "turn/ndcg@10": [.5, 1.0, 0.0, None, None], "turn/mrr": [1.0] * 5})
    assert macro_averages(rows) == {"macro/type/turn/ndcg@10": (.375, 3), "macro/corpus/turn/ndcg@10": (.5, 3)}
    assert macro_averages(rows.with_columns(category=pl.lit("a"), corpus=pl.int_range(5))) == {}


def test_macro_averages_stand_among_all_figures(make_random_world) -> None:
    rows = per_question(make_random_world(0))
    figures, kinds = averages(rows), rows.drop_nulls(["category", "turn/mrr@10"])
    of_types = [figures[f"type={kind}/turn/mrr@10"] for kind in kinds["category"].unique()]
    assert len(of_types) > 1
    assert figures["macro/type/turn/mrr@10"] == mean(of_types)
    estimate = summary(rows)["macro/type/turn/mrr@10"]
    assert estimate == {"value": figures["macro/type/turn/mrr@10"], "low": None, "high": None, "n": kinds.height}


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.randoms())
def test_a_mean_does_not_depend_on_the_order(values: list[float], random) -> None:
    first = mean(values)
    random.shuffle(values)
    assert mean(values) == first


@fewer(4)
@given(st.integers(0, 1000), st.integers(1, 29))
def test_shards_merge_to_identical_figures(make_random_world, seed: int, cut: int) -> None:
    rows = per_question(make_random_world(seed))
    assert averages(pl.concat([rows[cut:], rows[:cut]])) == averages(rows)
