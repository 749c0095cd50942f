"""Scores and token costs of the answers, and the answer's words in what is shown.

Evidence turns cannot tell whether a pruned turn still holds its evidence. ``answer_words`` counts, for questions whose
answer is said in their evidence turns word for word, the share of the answer's content words that the context holds.
Words are compared in the form of the F1 judge (``memlab.text.normalise.locomo_stems``). Words of the question do not
count: a scorer that looks for them would be paid for finding them. A word may stand in the context by chance, on each
side of a comparison alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.evaluate.retrieval import scored_evidence
from memlab.evaluate.statistics import Values
from memlab.tables import SESSION, Tables, with_text
from memlab.text.normalise import locomo_stems
from memlab.text.tokenize import LUCENE_STOP_WORDS
from memlab.text.transcript import render_turns

PREFIX = "answer/"

COSTS = ("prompt_tokens", "completion_tokens", "dropped")
"""Columns of the answers that are no judge's."""


def answer_metrics(tables: Tables) -> pl.DataFrame:
    """Return (question, answer/<judge>..., answer/prompt_tokens, answer/completion_tokens, answer/dropped).

    Only ``question`` without a reader. A judge's column is its score, null where it gave none; the samples of a vote
    count once, with their tokens summed. ``dropped`` counts context items that did not fit into the reader's window.
    """
    rows = tables["questions"].select("question")
    if "answers" not in tables or tables["answers"].is_empty():
        return rows
    costs = tables["answers"].group_by("question").agg(
        *(pl.col(c).sum().cast(pl.Float64).alias(PREFIX + c) for c in COSTS[:2]),
        pl.col("dropped").max().cast(pl.Float64).alias(f"{PREFIX}dropped"))
    verdicts = tables["verdicts"] if "verdicts" in tables else pl.DataFrame()
    if not verdicts.is_empty():
        for (judge,), part in sorted(verdicts.partition_by("judge", as_dict=True).items()):
            scores = part.select("question", pl.col("score").alias(f"{PREFIX}{judge}")).unique("question")
            rows = rows.join(scores, on="question", how="left", maintain_order="left")
    return rows.join(costs, on="question", how="left", maintain_order="left")


def judge_columns(columns: list[str]) -> list[str]:
    """Return the judges' columns of a per-question frame.

    >>> judge_columns(["question", "answer/f1", "answer/prompt_tokens", "session/mrr"])
    ['answer/f1']
    """
    return [c for c in columns if c.startswith(PREFIX) and c.removeprefix(PREFIX) not in COSTS]


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


@dataclass(frozen=True)
class AnswerWords:
    """The words of each question's answer, and the rows of a list of texts that hold them."""

    row: NDArray[np.int64]
    word: NDArray[np.int64]
    question: NDArray[np.int64]
    questions: int

    def share(self, shown: NDArray[np.bool_]) -> Values:
        """Return for each question the share of its words that the shown rows hold, (questions,)."""
        held = np.zeros(len(self.question), bool)
        held[self.word[shown[self.row]]] = True
        return np.bincount(self.question, held, self.questions) / np.bincount(self.question, minlength=self.questions)


def answer_words(shown: pl.DataFrame, wanted: pl.DataFrame) -> AnswerWords:
    """Return the words of ``wanted`` in ``shown`` (row from 0, question, text); questions are sorted by number."""
    words = wanted.sort("question", "word").with_row_index("piece")
    held = held_words(shown, wanted).join(words, on=["question", "word"])
    place = words.select(pl.col("question").rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    return AnswerWords(held["row"].to_numpy().astype(np.int64), held["piece"].to_numpy().astype(np.int64), place,
                       wanted["question"].n_unique())
