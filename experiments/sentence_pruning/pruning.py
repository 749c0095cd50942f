"""Sentence pruning: of each selected unit only the sentences that share rare words with the question.

Provence (Chirkova et al., ICLR 2025, arXiv 2501.16214) labels the sentences of a passage with a trained model. The
scorer here needs no training: the share of the question's words in a sentence, each by its rarity, and the cosine of
question and sentence if there is an embedder; and a part of its neighbours' scores, because an answer often stands
beside the words of its question. Rarity is BM25's idf, log(1 + (n - d + .5) / (d + .5)), over the n units that are
ranked for the question down to ``depth``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from memlab.models.protocols import Embedder
from memlab.pipeline.stage import Stage, stage
from memlab.pipeline.tables import DIGITS, SESSION, Tables, add_texts, with_text
from memlab.pipeline.token_counter import count_tokens
from memlab.pipeline.transcript import TURN_SEPARATOR
from memlab.stages.read.pack import PACK_READS, SelectedPack, make_context, selected_texts
from memlab.stages.read.prompt import HEADER
from memlab.store import Store
from memlab.store.store import encode
from memlab.support.text.tokenize import LUCENE_STOP_WORDS, words
from sentence_pruning.curve import shown_curve

_SENTENCE_END = re.compile(r"((?<=[.!?])\s+|\n+)")
_WORD = r"\w+"

PARTS = {"turn": pl.Int32, "lead": pl.String, "sentence": pl.String, "space": pl.String}


def split(text: str, names: frozenset[str]) -> list[tuple[int, str, str, str]]:
    r"""Split what turns say into sentences: (turn, lead, sentence, the space behind it).

    A turn begins with its speaker, "Ann: ", one of ``names``; that is its lead. A sentence ends at a full stop, a
    question or exclamation mark before a space, or at a line break.

    >>> split("Ann: Hi! It rained.\n\nBen: Oh.", frozenset({"Ann", "Ben"}))
    [(0, 'Ann: ', 'Hi!', ' '), (0, 'Ann: ', 'It rained.', '\n\n'), (1, 'Ben: ', 'Oh.', '')]
    """
    pieces = [*_SENTENCE_END.split(text), ""]
    parts: list[tuple[int, str, str, str]] = []
    turn, lead, before = 0, "", TURN_SEPARATOR
    for sentence, space in zip(pieces[::2], pieces[1::2]):
        name, colon, rest = sentence.partition(": ")
        if before.startswith(TURN_SEPARATOR) and colon and name in names:
            turn, lead, sentence = turn + bool(parts), f"{name}: ", rest  # noqa: PLW2901
        before = space
        if sentence:
            parts.append((turn, lead, sentence, space))
    return parts


@stage
class PrunedByRank(SelectedPack):
    """Show the best sentences of each selected unit in their order, units in rank order.

    Of each unit those sentences are shown, best first, that together reach ``share`` of its tokens: at least one, and
    of equal ones the first. The day and the speaker stay. ``share`` 1 shows units whole.
    """

    reads: ClassVar = (*PACK_READS, "questions")
    shown_by: ClassVar = ["rank"]

    share: Annotated[float, Field(gt=0, le=1)] = 0.5  # of each unit's tokens
    embedder: Embedder | None = None  # null: words alone
    neighbours: Annotated[float, Field(ge=0, le=1)] = 0.5  # part of the scores beside a sentence that counts for it
    depth: Annotated[int, Field(ge=1)] = 200  # ranks among whose units a word of the question is rare or common

    def whole(self) -> PrunedByRank:
        """Return the pack that prunes nothing."""
        return replace(self, share=1.0)

    def curve(self, select: Stage, tables: Tables, store: Store) -> pl.DataFrame | None:
        """Return the curve of the arm and of constant K, shown whole."""
        return shown_curve(select, self, self.whole(), tables, store)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the context and the texts that it needs; ``tokens`` are those of the sentences that are shown."""
        rows = selected_texts(tables, self.value)
        if self.share < 1 and rows.height:
            rows = self._prune(rows, tables, store)
        return make_context(self.fit(rows), self.shown_by, tables)

    def _prune(self, rows: pl.DataFrame, tables: Tables, store: Store) -> pl.DataFrame:
        near = pl.col("rank") <= self.depth
        ranked = selected_texts(tables.updated({"ranking": tables["ranking"].with_columns(near.alias("selected"))}),
                                self.value)
        key = [*SESSION, "said_on", "shown"]
        distinct = pl.concat([rows.select(key), ranked.select(key)]).unique(maintain_order=True).with_row_index("text")
        sentences = _sentences(distinct, tables["turns"])
        terms = words(sentences["sentence"], _WORD, LUCENE_STOP_WORDS, "english").unique()
        asked = _question_terms(tables)
        found = sentences.select("text", "place").with_row_index("row").join(
            terms.join(asked.select("term").unique(), on="term", how="semi"), on="row")
        rarity = _rarity(ranked.join(distinct, on=key, nulls_equal=True).select("question", "text"), found, asked)
        of_rows = rows.select("question", "rank", *key).join(distinct, on=key, how="left", nulls_equal=True).select(
            "question", "rank", "text")
        scores = (of_rows.join(found.select("text", "place", "term"), on="text").join(rarity, on=["question", "term"])
                  .group_by("question", "rank", "place").agg(pl.col("part").sum().alias("own")))
        listed = of_rows.join(sentences, on="text").join(
            scores, on=["question", "rank", "place"], how="left").sort("question", "rank", "place")
        listed = listed.with_columns(pl.col("own").fill_null(0.0))
        if self.embedder is not None:
            listed = listed.with_columns(pl.col("own") + _cosines(listed, tables, self.embedder, store))
        kept = self._best(listed)
        shown = (kept.group_by("question", "rank", "turn", maintain_order=True).agg(
                    pl.col("header", "lead").first(), pl.col("piece").str.join("").str.strip_chars_end())
                 .group_by("question", "rank", maintain_order=True).agg(
                    pl.col("header").first(), (pl.col("lead") + pl.col("piece")).str.join(TURN_SEPARATOR)))
        shown = shown.select("question", "rank", (pl.col("header") + pl.col("lead")).alias("shown"))
        pruned = rows.drop("shown", "tokens").join(shown, on=["question", "rank"], maintain_order="left")
        return pruned.with_columns(count_tokens(pl.col("shown")).alias("tokens"))

    def _best(self, listed: pl.DataFrame) -> pl.DataFrame:
        """Keep the best sentences of each unit that together reach the share, in their order."""
        unit = ["question", "rank"]
        beside = pl.sum_horizontal(pl.col("own").shift(step, fill_value=0.0).over(unit) for step in (1, -1))
        scored = listed.with_columns((pl.col("own") + self.neighbours * beside).round(DIGITS).alias("score"))
        scored = scored.sort(*unit, "score", "place", descending=[False, False, True, False])
        before = (pl.col("tokens").cum_sum() - pl.col("tokens")).over(unit)
        reached = before >= (self.share * pl.col("tokens").sum().over(unit)).round(DIGITS)
        first = pl.int_range(pl.len()).over(unit) == 0
        return scored.filter(~reached | first).sort(*unit, "place")


def _sentences(distinct: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Return (text, header, place, turn, lead, sentence, piece, tokens): the sentences of each text, numbered."""
    names = turns.select(*SESSION, pl.col("speaker").fill_null(pl.col("role")).alias("names")).group_by(SESSION).agg(
        pl.col("names").unique().sort())
    header = pl.col("said_on").dt.strftime(HEADER).fill_null("").alias("header")
    texts = distinct.with_columns(header).join(names, on=SESSION, how="left", maintain_order="left")
    parts = [split(shown.removeprefix(day), frozenset(who or ()))
             for shown, day, who in texts.select("shown", "header", "names").iter_rows()]
    rows = pl.DataFrame({"text": [n for n, some in zip(texts["text"], parts) for _ in some]},
                        schema={"text": texts.schema["text"]})
    split_up = pl.DataFrame([part for some in parts for part in some], schema=PARTS, orient="row")
    place = pl.int_range(pl.len(), dtype=pl.Int32).over("text").alias("place")
    return pl.concat([rows, split_up], how="horizontal").join(
        texts.select("text", "header"), on="text", maintain_order="left").with_columns(
        place, (pl.col("sentence") + pl.col("space")).alias("piece"), count_tokens(pl.col("sentence")).alias("tokens"))


def _question_terms(tables: Tables) -> pl.DataFrame:
    """Return (question, term): the distinct words of each question."""
    questions = with_text(tables["questions"], tables["texts"])
    terms = words(questions["text"], _WORD, LUCENE_STOP_WORDS, "english").unique()
    return questions.select("question").with_row_index("row").join(terms, on="row").select("question", "term")


def _rarity(ranked: pl.DataFrame, found: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame:
    """Return (question, term, part): the idf over the texts ranked for each question, over that of all its terms."""
    units = ranked.group_by("question").agg(pl.len().alias("n"))
    holding = (ranked.join(found.select("text", "term").unique(), on="text").join(asked, on=["question", "term"])
               .group_by("question", "term").agg(pl.len().alias("d")).join(units, on="question"))
    idf = (1 + (pl.col("n").cast(pl.Float64) - pl.col("d") + 0.5) / (pl.col("d") + 0.5)).log()
    return holding.select("question", "term", (idf / idf.sum().over("question")).alias("part"))


def _cosines(listed: pl.DataFrame, tables: Tables, embedder: Embedder, store: Store) -> pl.Series:
    """Return the cosine of each sentence and its question, (n,)."""
    ids, texts = add_texts(tables["texts"].clear(), listed["sentence"])
    sentences = encode(store, embedder, texts, ids, "document")
    asked = listed.select("question").join(tables["questions"], on="question", how="left", maintain_order="left")
    questions = encode(store, embedder, tables["texts"], asked["text_id"], "query")
    cosines = [np.einsum("ij,ij->i", sentences[at], questions[at])
               for at in np.array_split(np.arange(listed.height), listed.height // 65_536 + 1)]
    return pl.Series("own", np.concatenate(cosines), pl.Float64)
