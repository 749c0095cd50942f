"""A chat model's opinion on the head of a ranking: a score a unit, one by one or all in one list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.models.chat import Chat, Prompt
from memlab.query.class_names import first_of
from memlab.rank.rerank import below, passages_of
from memlab.rank.rerank_llm_prompt import Asked, listwise, many_scores, one_score, pointwise
from memlab.rank.scorer import NonNegative, Normaliser, Scorer, check_names, fits
from memlab.rank.units import PLACE, ranked, signals_of
from memlab.replies import tell
from memlab.stage import stage
from memlab.tables import Tables

if TYPE_CHECKING:
    from memlab.store import Store

_TIE = 1e-3
"""Spread over a pool by first-stage rank: scores of 0 to 10 tie often, and ties keep the first stage's order."""

Judged = dict[int, list[float] | None]
"""Question -> scores of its pool in the order of the ranking, or None where a reply could not be read."""


@stage
class LlmRerank:
    """Reorder the first ``pool`` units of each question by a chat model's scores; the others follow as they were.

    ``pointwise`` asks for 0 to 10 a unit, ``listwise`` for the scores of the whole pool in one reply; ``typed`` tells
    the model what counts for a question of the class that query/classify told. A unit is shown as the pair scorers
    of ``Rerank`` read it, its turns of these ``roles`` one a line, with its day where ``dates``; ``max_chars`` cuts
    it, and what the model's window does not hold is cut too, and counted. A unit without a text scores 0.

    A question with a reply that cannot be read keeps the first stage's order and is counted. ``weights`` and
    ``normaliser`` are those of ``Rerank``; equal scores keep the first stage's order.
    """

    reads: ClassVar = ("ranking", "units", "questions", "classes", "sessions", "turns", "texts", "memories")
    writes: ClassVar = ("ranking",)

    chat: Chat
    pool: Annotated[int, Field(ge=1, le=500)] = 20
    mode: Literal["pointwise", "listwise"] = "pointwise"
    typed: bool = True
    name: Annotated[str, Field(min_length=1)] = "llm"
    roles: tuple[Literal["user", "assistant"], ...] = Field(default=("user", "assistant"), strict=False)
    dates: bool = True
    max_chars: Annotated[int, Field(ge=1)] | None = None
    weights: dict[str, NonNegative] = Field(default_factory=lambda: {"rerank": 1.0})
    normaliser: Normaliser = "zscore"

    @model_validator(mode="after")
    def _some_weight(self) -> LlmRerank:
        if not any(self.weights.values()):
            raise ValueError("no weight is above 0; write {rerank: 1}")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with the new signal; warns of replies that could not be read and of what was cut."""
        ranking = tables["ranking"]
        if self.name in ranking.columns:
            raise MemlabError(f"the ranking has a signal '{self.name}' already", where="rank/rerank, name",
                              fix="choose another name")
        head = ranking.filter(pl.col("rank") <= self.pool)
        texts = self._texts(head, tables)
        pools = {int(question[0]): [texts.get(unit, "") for unit in rows["unit"]]
                 for question, rows in head.group_by(["question"], maintain_order=True)}
        asks = self._asked(tables)
        judge = self._one_by_one if self.mode == "pointwise" else self._in_one_list
        judged = judge({q: (asks[q], pool) for q, pool in pools.items()}, store)
        scores: list[float | None] = []
        for question, pool in pools.items():
            scores += judged[question] or [None] * len(pool)
        head = head.with_columns(pl.Series(self.name, scores, pl.Float64))
        kept = pl.col("question").is_in([q for q, found in judged.items() if found is None])
        scored = self._mixed(head.filter(~kept))
        rest = ranking.filter((pl.col("rank") > self.pool) & ~kept).with_columns(
            pl.lit(None, pl.Float64).alias(self.name))
        moved = ranked(pl.concat([scored, below(scored, rest)], how="diagonal"))
        asis = ranking.filter(kept).with_columns(pl.lit(None, pl.Float64).alias(self.name)).select(moved.columns)
        return Tables(ranking=pl.concat([moved, asis]).sort("question", "rank"))

    def _mixed(self, head: pl.DataFrame) -> pl.DataFrame:
        named = head.with_columns(pl.col("score").alias("first"), pl.col(self.name).alias("rerank"))
        known = ["first", "rerank", *(s for s in signals_of(head) if s not in (self.name, "first", "rerank"))]
        check_names("rank/rerank, weights", self.weights, known)
        signals = [s for s in known if any(fits(name, s) for name in self.weights)]
        mixed = Scorer(normaliser=self.normaliser, weights=self.weights).scored(named, signals)
        return mixed.with_columns(pl.col("score") - _TIE * pl.col("rank") / self.pool).select(head.columns)

    def _texts(self, head: pl.DataFrame, tables: Tables) -> dict[int, str]:
        """Return what is shown of each unit of the pools."""
        days = tables["units"].select("unit", *PLACE).join(tables["sessions"], on=PLACE, how="left").select(
            "unit", pl.col("said_on").dt.strftime("[%Y-%m-%d]\n").fill_null("").alias("day"))
        bodies = passages_of(head.select("unit").unique(), tables, self.roles).group_by("unit").agg(
            pl.col("passage").str.join("\n"))
        body = pl.col("passage") if self.max_chars is None else pl.col("passage").str.head(self.max_chars)
        day = pl.col("day") if self.dates else pl.lit("")
        return dict(bodies.join(days, on="unit", how="left").select("unit", day + body).iter_rows())

    def _asked(self, tables: Tables) -> dict[int, Asked]:
        rows = tables["questions"].join(tables["texts"].rename({"hash": "text", "text": "words"}), on="text").select(
            "question", "words", pl.col("asked_on").dt.date())
        kinds = first_of(tables["classes"]) if self.typed else {}
        return {q: Asked(words, day if self.dates else None, kinds.get(q))
                for q, words, day in rows.iter_rows()}

    def _one_by_one(self, pools: dict[int, tuple[Asked, list[str]]], store: Store) -> Judged:
        prompts: dict[Prompt, bool] = {}
        wanted: dict[int, list[Prompt | None]] = {}
        for question, (asked, texts) in pools.items():
            made = [pointwise(self.chat, asked, text) if text else None for text in texts]
            prompts.update(pair for pair in made if pair)
            wanted[question] = [pair[0] if pair else None for pair in made]
        read = dict(zip(prompts, map(one_score, store.completions(self.chat, list(prompts)))))
        scores = {q: [read[p] if p else 0.0 for p in asked] for q, asked in wanted.items()}
        judged: Judged = {q: None if None in found else [s for s in found if s is not None]
                          for q, found in scores.items()}
        self._tell(list(read.values()).count(None), len(read), judged)
        tell(sum(prompts.values()), len(prompts), "memories were cut to fit the reranker's window")
        return judged

    def _in_one_list(self, pools: dict[int, tuple[Asked, list[str]]], store: Store) -> Judged:
        made = [listwise(self.chat, asked, texts) for asked, texts in pools.values()]
        replies = store.completions(self.chat, [prompt for prompt, _ in made])
        judged: Judged = {q: many_scores(reply, len(texts)) for (q, (_, texts)), reply in zip(pools.items(), replies)}
        self._tell(list(judged.values()).count(None), len(judged), judged)
        tell(sum(cut for _, cut in made), sum(len(texts) for _, texts in pools.values()),
             "memories were cut to fit the reranker's window")
        return judged

    def _tell(self, unread: int, replies: int, judged: Judged) -> None:
        kept = list(judged.values()).count(None)
        tell(unread, replies, f"replies of the reranker could not be read; {kept:,} of {len(judged):,} questions keep "
             "the first stage's order")
