"""The curve of an arm whose pack prunes units: tokens and answer words of what is shown, beside constant K shown whole.

Each unit is pruned on its own, so the context of any selection is read off one context of all units that may be shown.
A text that two units share counts with the better one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from memlab.evaluate.curves import CONSTANT, RULE, constant_rankings
from memlab.evaluate.evidence import ANSWER_WORDS, answer_words, wanted_words
from memlab.pipeline.pipeline import apply
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import SCHEMAS, Tables, with_text
from memlab.store import Store

LARGEST_PRUNED_K = 200
"""The largest K of a pruned constant K, so that its curve reaches the tokens of the largest constant K shown whole."""


def shown_curve(select: Stage, pack: Stage, whole: Stage, tables: Tables, store: Store) -> pl.DataFrame | None:
    """Return (rule, question, point, tokens, ``shown/answer_words``) of the arm and of constant K, shown whole.

    ``whole`` is the pack that prunes nothing. The arm's settings are those of its selection's knob, or constant K
    pruned. Questions are those whose answer is said in their evidence turns; None where there are none.
    """
    wanted = wanted_words(tables)
    if wanted.is_empty():
        return None
    ranking = tables["ranking"]
    knob = getattr(select, "variations", None)
    rankings: Iterable[pl.DataFrame] = (
        constant_rankings(ranking, LARGEST_PRUNED_K) if knob is None
        else (rule.run(tables, store)["ranking"] for rule in knob()))
    curves = {RULE: (rankings, pack), CONSTANT: (constant_rankings(ranking), whole)}
    columns = "tokens", ANSWER_WORDS
    return pl.concat([
        points.select(pl.lit(name).alias("rule"), "question", pl.lit(i, pl.Int32).alias("point"), *columns)
        for name, (some, by) in curves.items()
        for i, points in enumerate(_points(some, by, wanted, tables, store))])


def _points(rankings: Iterable[pl.DataFrame], pack: Stage, wanted: pl.DataFrame, tables: Tables, store: Store
            ) -> Iterator[pl.DataFrame]:
    """Yield (question, tokens, ``shown/answer_words``) of each selection."""
    questions = wanted["question"].unique().sort()
    place = pl.DataFrame({"question": questions}).with_row_index("place")
    near = tables["ranking"].filter(pl.col("rank") <= LARGEST_PRUNED_K).select(list(SCHEMAS["ranking"])).with_columns(
        pl.lit(0.0).alias("score"), pl.lit(True).alias("selected")).join(place, on="question", how="semi").sort(
        "question", "rank")
    packed = apply(pack, tables.updated({"ranking": near}), store)
    context = with_text(packed["context"], packed["texts"]).select("question", "unit", "tokens", "text")
    rows = near.join(context, on=["question", "unit"], how="left", maintain_order="left").join(
        place, on="question", maintain_order="left").with_row_index("row")
    held = answer_words(rows.drop_nulls("text").select("row", "question", "text"), wanted)
    tokens, of_question = rows["tokens"].fill_null(0).to_numpy().astype(np.float64), rows["place"].to_numpy()
    for ranking in rankings:
        chosen = rows.select("question", "unit").join(
            ranking.filter("selected").select("question", "unit", pl.lit(True).alias("shown")),
            on=["question", "unit"], how="left", maintain_order="left")["shown"].fill_null(False).to_numpy()
        yield pl.DataFrame({"question": questions, "tokens": np.bincount(of_question, tokens * chosen, len(questions)),
                            ANSWER_WORDS: held.share(chosen)})
