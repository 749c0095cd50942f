"""Recall-token curves of an arm that prunes units: tokens and answer words of what is shown, against constant K whole.

Evidence turns cannot tell whether a pruned turn still holds its evidence. ``answer_words`` counts, for questions whose
answer is said in their evidence turns word for word, the share of the answer's content words that the context holds.
Words are compared in the form of the F1 judge (``memlab.support.text.normalise.locomo_stems``). Words of the question
do not count: a scorer that looks for them would be paid for finding them. A word may stand in the context by chance,
on each side of a comparison alike.

Each unit is pruned on its own, so the context of any selection is read off one context of all units that may be shown.
A text that two units share counts with the better one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from memlab.evaluate.curves import CONSTANT, RULE, constant_rankings
from memlab.evaluate.evidence import Pieces
from memlab.evaluate.retrieval import scored_evidence
from memlab.pipeline.pipeline import apply
from memlab.pipeline.stage import Stage
from memlab.pipeline.tables import SCHEMAS, SESSION, Tables, with_text
from memlab.pipeline.transcript import render_turns
from memlab.store import Store
from memlab.support.text.normalise import locomo_stems
from memlab.support.text.tokenize import LUCENE_STOP_WORDS

ANSWER_WORDS = "shown/answer_words"
"""The share of the answer's content words that is shown; a column of curves."""

STOP_STEMS = frozenset(stem for word in LUCENE_STOP_WORDS for stem in locomo_stems(word))


def wanted_words(tables: Tables) -> pl.DataFrame:
    """Return (question, word): the content words of each answer that its evidence turns hold completely.

    Only questions that count, whose answer has a word that is neither in the question nor a stop word.
    """
    evidence = scored_evidence(tables).drop_nulls("turn")
    asked = with_text(tables["questions"], tables["texts"]).select("question", "text")
    answers = asked.join(evidence.select("question").unique(), on="question", how="semi").join(
        tables["gold"].select("question", "answer"), on="question").drop_nulls("answer")
    words = [(question, sorted({*locomo_stems(answer)} - {*locomo_stems(text)} - STOP_STEMS))
             for question, text, answer in answers.sort("question").iter_rows()]
    wanted = pl.DataFrame(words, schema={"question": pl.Int32, "word": pl.List(pl.String)}, orient="row").explode(
        "word").drop_nulls()
    covered = tables["turns"].join(evidence.select(SESSION).unique(), on=SESSION, how="semi")
    lines = evidence.join(render_turns(covered, tables["texts"]), on=[*SESSION, "turn"])
    said = lines.select("question", pl.col("display_text").alias("text"))
    held = held_words(said.with_row_index("row"), wanted).select("question", "word").unique()
    missing = wanted.join(held, on=["question", "word"], how="anti")
    return wanted.join(missing, on="question", how="anti")


def held_words(shown: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Return (row, question, word): the words wanted for the question of each row that its text holds.

    ``shown`` has row, question and text. Each distinct text is split once.
    """
    texts = shown.select(pl.col("text").unique(maintain_order=True)).with_row_index("id")
    split = texts.select("id", pl.col("text").str.to_lowercase().str.extract_all(r"\S+").alias("raw")).explode(
        "raw").drop_nulls().unique()
    raw = split.select(pl.col("raw").unique())
    stemmed = pl.Series("word", [locomo_stems(word) for word in raw["raw"]], pl.List(pl.String))
    stems = raw.with_columns(stemmed).explode("word").join(wanted.select("word").unique(), on="word", how="semi")
    holding = split.join(stems, on="raw").select("id", "word").unique()
    rows = shown.select("row", "question", "text").join(texts, on="text").select("row", "question", "id")
    return rows.join(holding, on="id").join(wanted, on=["question", "word"]).select("row", "question", "word")


def answer_words(shown: pl.DataFrame, wanted: pl.DataFrame) -> Pieces:
    """Return the words of ``wanted`` in ``shown`` (row from 0, question, text); questions are sorted by number."""
    words = wanted.sort("question", "word").with_row_index("piece")
    held = held_words(shown, wanted).join(words, on=["question", "word"])
    return Pieces.of(held, words["question"].rank("dense") - 1, wanted["question"].n_unique())


LARGEST_PRUNED_K = 200
"""The largest K of a pruned constant K, so that its curve reaches the tokens of the largest constant K shown whole."""


def share(pieces: Pieces, shown: np.ndarray) -> np.ndarray:
    """Return for each question the share of its pieces that the shown rows hold, (questions,)."""
    held, every = pieces.count(shown)
    return held / every


def shown_curve(select: Stage, pack: Stage, whole: Stage, tables: Tables, store: Store) -> pl.DataFrame | None:
    """Return (rule, question, point, tokens, ``shown/answer_words``) of the arm, and of constant K packed by ``whole``.

    The arm's settings are those of its selection's knob, or constant K pruned. Questions are those whose answer is said
    in their evidence turns; None where there are none.
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
                            ANSWER_WORDS: share(held, chosen)})
