"""Examples that a training keeps apart to choose its best step: whole groups, about which nothing is measured later."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.data.dataset import groups
from memlab.errors import MemlabError
from memlab.tables import SESSION, Tables

SHARE = 0.1
"""Share of the examples that is kept apart where the recipe leaves it open, and questions are measured afterwards."""


def with_groups(examples: pl.DataFrame, tables: Tables, measured: pl.DataFrame) -> pl.DataFrame:
    """Return the examples with ``group`` (``memlab.data.dataset.groups``), null where it may not choose a step.

    That is where a group shares evidence with questions that are measured later: a session of its corpus, or, where
    there are several corpora, the corpus.

    Args:
        examples: With the column ``question``.
        tables: What the examples were made from.
        measured: (corpus, session) of the evidence of questions that are measured later.
    """
    questions = tables["questions"]
    shared = ["corpus"] if questions["corpus"].n_unique() > 1 else list(SESSION)
    group_of = groups(questions, tables["evidence"], tables["turns"])
    places = tables["evidence"].join(questions.select("question", "corpus"), on="question").join(
        measured, on=shared, how="semi")
    barred = group_of.join(places, on="question", how="semi")["group"].unique()
    usable = group_of.filter(~pl.col("group").is_in(barred.implode()))
    return examples.join(usable, on="question", how="left", maintain_order="left")


def keep_apart(examples: pl.DataFrame, share: float | None, measured: bool, seed: int
               ) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Return the examples that are learned from, those that choose the best step, and a record of the choice.

    Groups are drawn by seed, and by content where they are equal, until they hold the share of the examples. What is
    evidence in them is no negative of the others.

    Args:
        examples: With the column ``group``; null: may not be kept apart.
        share: Of the examples; None is ``SHARE`` if questions are measured afterwards, else none.
        measured: Whether questions are measured afterwards.
        seed: Draws the groups.

    Raises MemlabError where a share is asked for and there are no two groups.
    """
    nothing, wanted = examples.clear(), SHARE if share is None and measured else share or 0.0
    if not wanted:
        return examples, nothing, {"none": "validation=0" if share is not None else
                                   "no question is measured afterwards"}
    sizes = examples.drop_nulls("group").group_by("group").agg(
        pl.len(), pl.concat_str("query", "positive", separator="\0").min().alias("first")).sort("first", "group")
    most = min(sizes.height, examples["group"].n_unique() - 1)
    drawn = sizes[np.random.default_rng([seed, 4]).permutation(sizes.height)]
    chosen = drawn.filter(pl.col("len").cum_sum() - pl.col("len") < wanted * examples.height).head(most)["group"]
    apart = examples.filter(pl.col("group").is_in(chosen.implode()))
    own = apart["positive"].to_list()
    learned = examples.filter(~pl.col("group").is_in(chosen.implode()).fill_null(False)).with_columns(
        pl.col("negatives").list.eval(pl.element().filter(~pl.element().is_in(own)))
    ).filter(pl.col("negatives").list.len() > 0)
    if not apart.height or not learned.height:
        if share is not None:
            raise MemlabError("the examples have no group that can be kept apart", where=f"validation={share}",
                              fix="validation=0, or data of several corpora or sessions that are not measured later")
        return examples, nothing, {"none": "no group of examples can be kept apart"}
    return learned, apart, {"groups": len(chosen), "examples": apart.height, "metric": "loss"}
