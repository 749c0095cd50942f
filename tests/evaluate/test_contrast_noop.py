from __future__ import annotations

import polars as pl

from memlab.evaluate.contrast import identical


def outputs(make_random_world, **settings):
    tables = make_random_world(5, **settings)
    return tables["ranking"], tables["context"]


def test_an_arm_equals_itself_whatever_the_order_of_rows_and_the_scores(make_random_world) -> None:
    ranking, context = outputs(make_random_world)
    shuffled = ranking.sample(fraction=1, shuffle=True, seed=1).with_columns(score=pl.col("score") * 2)
    assert identical(ranking, context, shuffled, context.reverse()) == ["ranking", "selection", "context", "answers"]


def test_each_output_is_compared_for_itself(make_random_world) -> None:
    ranking, context = outputs(make_random_world)
    swapped = ranking.with_columns(rank=pl.when(pl.col("rank") <= 2).then(3 - pl.col("rank")).otherwise("rank"))
    assert identical(ranking, context, swapped, context) == ["selection", "context", "answers"]
    more = ranking.with_columns(selected=pl.col("rank") <= 4)
    assert identical(ranking, context, more, context) == ["ranking", "context", "answers"]
    assert identical(ranking, context, ranking, context[1:]) == ["ranking", "selection", "answers"]


def test_one_number_for_different_memories_is_not_the_same(make_random_world) -> None:
    ranking, context = outputs(make_random_world)
    one, other = (ranking.with_columns(pl.lit("memory").alias("level"), pl.lit(s).alias("session")) for s in (0, 1))
    assert identical(one, context, other, context) == ["context", "answers"]


def test_answers_are_compared_where_anybody_was_asked(make_random_world) -> None:
    ranking, context = outputs(make_random_world)
    said = pl.DataFrame({"question": [0, 1], "sample": [0, 0], "text": ["a", "b"]})
    before = ["ranking", "selection", "context"]
    assert identical(ranking, context, ranking, context, said, said.reverse()) == [*before, "answers"]
    assert identical(ranking, context, ranking, context, said, said.with_columns(text=pl.lit("c"))) == before
    assert identical(ranking, context, ranking, context, said, None) == before
