"""Evaluation of a trained encoder: ``best`` with it and with its base, on questions that it has not learned."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl

from memlab.data.dataset import GroupBy
from memlab.evaluate.contrast import ALPHA, Contrast, measure
from memlab.evaluate.summary import per_question
from memlab.experiment.harness.sweep import preset
from memlab.models.local.embedder import SentenceEmbedder
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.tables import Tables
from memlab.store import Store

METRIC = "turn/ndcg@10"


def compare_pipelines(tables: Tables, questions: pl.Series, by: GroupBy, base: Pipeline, trained: Pipeline,
                      store: Store, seed: int) -> dict[str, Any]:
    """Return how two pipelines do on some questions, and whether the second is shown to be better.

    Args:
        tables: A loaded data set.
        questions: Numbers of the questions that count, those with evidence among them.
        by: Which questions are not independent of each other.
        base: With the encoder that the training started from.
        trained: With the trained weights.
        store: Where vectors are kept.
        seed: Of the test.
    """
    if not len(questions):
        return {"metric": METRIC, "questions": 0, "shown": False}
    asked = tables.updated({name: tables[name].filter(pl.col("question").is_in(questions.implode()))
                            for name in ("questions", "gold", "evidence")})
    before, after = (per_question(pipeline.run(asked, store), by) for pipeline in (base, trained))
    row = measure(Contrast("trained", "base", METRIC), after, before, alpha=ALPHA, seed=seed)
    gain, p = row["difference"], row["p"] if row["p"] is not None else row["p_sign_flip"]
    return {"metric": METRIC, "questions": row["n"], "groups": row["groups"], "before": before[METRIC].mean(),
            "after": after[METRIC].mean(), "low": row["low"], "high": row["high"], "p": p,
            "shown": gain is not None and gain > 0 and p is not None and p <= ALPHA}


def best_with(embedder: SentenceEmbedder) -> Pipeline:
    """Return the system ``best_weights``, which has no fit of an encoder, with another encoder."""
    pipeline = preset("system=best_weights")
    late: Any = pipeline.late
    matcher = dataclasses.replace(late.matcher, embedder=embedder)
    return pipeline.replace(late=dataclasses.replace(late, matcher=matcher))


def in_words(found: dict[str, Any]) -> str:
    """Return the comparison in a sentence.

    >>> in_words({"questions": 40, "before": .5, "after": .62, "p": .012, "shown": True})
    'on 40 questions that it did not learn, turn nDCG@10 went from .500 to .620 (p = .012): it is shown to help'
    """
    if not found["questions"]:
        return "there is no question with evidence that it did not learn: whether it helps is not known"
    before, after = (f"{value:.3f}".removeprefix("0") for value in (found["before"], found["after"]))
    p = "no test" if found["p"] is None else f"p = {found['p']:.3f}".replace("0.", ".")
    shown = "it is shown to help" if found["shown"] else "it is not shown to help"
    return (f"on {found['questions']} questions that it did not learn, turn nDCG@10 went from {before} to {after} "
            f"({p}): {shown}")
