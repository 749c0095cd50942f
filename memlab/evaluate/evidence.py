"""Evidence and answers: what was shown and its cost, the stage at which evidence is lost, and the scores of answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.evaluate import retrieval
from memlab.evaluate.statistics import Values
from memlab.pipeline.tables import SESSION, Tables, with_text
from memlab.pipeline.transcript import TURN_SEPARATOR, render_turns


def within(ranks: retrieval.Ranks, k: float, prefix: str) -> dict[str, Values]:
    """Return any, all and the share of the evidence up to rank k, as ``{prefix}/recall_any`` ...; (q, g) -> (q,)."""
    measures = (retrieval.recall_any, retrieval.recall_all, retrieval.recall)
    return {f"{prefix}/{measure.__name__}": measure(ranks, k) for measure in measures}


def selection(tables: Tables) -> pl.DataFrame:
    """Score the units that ``ranking`` marks as selected, and ``context``: one row per question.

    * ``selected/session/...`` and, where evidence turns are known, ``selected/turn/...`` as in ``within``: a selected
      session shows all its turns, so that arms of any unit compare within one budget of tokens;
    * ``selected/k``: units selected;
    * ``context/tokens``: tokens in the context, after packing, which a token budget may have cut;
    * ``context/evidence_share``: share of those tokens in units that hold evidence, null for an empty context.
    """
    questions, units, evidence = tables["questions"]["question"], tables["units"], retrieval.scored_evidence(tables)
    chosen = tables["ranking"].filter("selected").with_columns(pl.lit(1).alias("rank"))  # in or out, no order
    columns: dict[str, Values] = {}
    for level in _levels(evidence):
        ranks = retrieval.matrix(retrieval.unit_ranks(chosen, units, evidence, level), questions)
        columns |= within(ranks, 1, f"selected/{level}")
    return retrieval.as_columns(questions, columns).join(cost(tables, chosen, evidence), on="question", how="left",
                                                         maintain_order="left")


BUDGETS = (300, 1000, 3000)
"""Tokens at which every ranking is cut, so that arms whose rankings differ compare at equal cost."""

BUDGET = 1000
"""That of the verdict where the arms declare no limit of tokens in common."""


def within_tokens(tables: Tables, budgets: Iterable[int] = BUDGETS) -> pl.DataFrame:
    """Return whether all evidence is in the head of each ranking that fits into so many tokens: one row per question.

    The columns are ``within_1000/session/recall_all`` and, where evidence turns are known, ``within_1000/turn/...``.
    The first unit that does not fit ends the head, so that an arm of long units may show nothing. Only ``question`` for
    a ranking without tokens.
    """
    questions, ranking, evidence = tables["questions"]["question"], tables["ranking"], retrieval.scored_evidence(tables)
    columns: dict[str, Values] = {}
    if "tokens" in ranking.columns:
        spent = pl.col("tokens").fill_null(float("inf")).cum_sum().over("question")  # below the measured ranks: no end
        heads = ranking.sort("question", "rank").with_columns(spent.alias("rank"))
        for level in _levels(evidence):
            needed = retrieval.matrix(retrieval.unit_ranks(heads, tables["units"], evidence, level), questions)
            columns |= {within_metric(budget, level): retrieval.recall_all(needed, budget) for budget in budgets}
    return retrieval.as_columns(questions, columns)


def _levels(evidence: pl.DataFrame) -> tuple[retrieval.Level, ...]:
    return ("session", "turn") if evidence["turn"].is_not_null().any() else ("session",)


def within_metric(budget: int, level: retrieval.Level) -> str:
    """Return the name of a column of ``within_tokens``."""
    return f"within_{budget}/{level}/recall_all"


def with_evidence(tables: Tables, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return ``context`` with ``evidence``: true where a row shows evidence of its question, else null.

    A row shows its unit's turns, and may show the round or session around them: rows of an evidence session whose
    unit holds no evidence are compared word for word.
    """
    by_unit = retrieval.holders(tables["units"], evidence).select("question", "unit").unique().with_columns(
        pl.lit(True).alias("evidence"))
    rows = tables["context"].with_row_index("row").join(
        by_unit, on=["question", "unit"], how="left", maintain_order="left").with_columns(pl.col("row").cast(pl.Int32))
    near = (rows.filter(pl.col("evidence").is_null())
            .join(tables["units"].select("unit", "session"), on="unit")
            .join(evidence.select("question", "session").unique(), on=["question", "session"], how="semi"))
    if near.is_empty():
        return rows.drop("row")
    turns = shown_turns(near.select(pl.col("row").alias("question"), "unit", "text_id"), tables)
    around = (turns.rename({"question": "row"}).join(near.select("row", "question"), on="row")
              .join(evidence.select("question", "session", "turn"), on=["question", "session", "turn"], how="semi"))
    by_text = around.select("row").unique().with_columns(pl.lit(True).alias("around"))
    return rows.join(by_text, on="row", how="left", maintain_order="left").with_columns(
        pl.coalesce("evidence", "around").alias("evidence")).drop("row", "around")


def cost(tables: Tables, chosen: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, selected/k, context/tokens, context/evidence_share)."""
    packed = with_evidence(tables, evidence).group_by("question").agg(
        pl.col("tokens").sum().cast(pl.Float64).alias("context/tokens"),
        pl.col("tokens").filter("evidence").sum().alias("evidence_tokens"))
    counted = chosen.group_by("question").agg(pl.len().cast(pl.Float64).alias("selected/k"))
    has = evidence.select("question").unique().with_columns(pl.lit(True).alias("has"))
    rows = tables["questions"].select("question")
    for part in (counted, packed, has):
        rows = rows.join(part, on="question", how="left", maintain_order="left")
    return rows.select(
        "question", pl.col("selected/k").fill_null(0.0), pl.col("context/tokens").fill_null(0.0),
        pl.when(pl.col("has") & (pl.col("context/tokens") > 0))
        .then(pl.col("evidence_tokens") / pl.col("context/tokens")).alias("context/evidence_share"))


def shown_turns(context: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (question, session, turn) of the turns that the rows of a context show.

    Those are the turns of its units, and the turns of a unit's session that its text holds word for word: a row may
    show the round or the whole session around its unit. A row without a unit shows no turn.
    """
    rows = context.join(tables["units"].select("unit", *SESSION, "turns"), on="unit")
    of_units = rows.select("question", "session", pl.col("turns").alias("turn")).explode("turn").drop_nulls()
    distinct = with_text(rows.select(*SESSION, "text_id").unique(), tables["texts"])
    lines = render_turns(tables["turns"].join(distinct, on=SESSION, how="semi"), tables["texts"])
    # a header ends with a newline, a turn before or after stands a blank line away
    is_quoted = ("\n" + pl.col("text") + TURN_SEPARATOR).str.contains(
        "\n" + pl.col("display_text") + TURN_SEPARATOR, literal=True)
    quotes = distinct.join(lines.select(*SESSION, "turn", "display_text"), on=SESSION).filter(is_quoted)
    quoted = rows.select("question", *SESSION, "text_id").join(
        quotes.select(*SESSION, "text_id", "turn"), on=[*SESSION, "text_id"])
    key = ["question", "session", "turn"]
    return pl.concat([of_units, quoted.select(key)]).unique().sort(key)


STEPS = ("never written", "not in the pool", "ranked too low", "cut by K", "dropped by the packer", "shown")
"""Where a piece of evidence is lost, from the first stage to the last; "shown" = the reader could read it."""

DEEP = 50
"""The largest constant K that is compared: evidence up to this rank was cut by K, evidence below it ranked too low."""

VIEWS = ("any", "all")
"""Evidence counts as shown when any piece of it is, or only when all of it is."""


def evidence_steps(tables: Tables, deep: int = DEEP) -> pl.DataFrame:
    """Return (question, session, turn, step): where each piece of evidence is lost, as an index of ``STEPS``.

    A piece is a turn, or a session where only that is known. Evidence is written if a memory covers it, in the pool if
    a unit that holds it was ranked, and shown if its text is in the part of ``context`` that fits into the prompt.
    """
    evidence = retrieval.with_corpus(tables)
    memories = tables["memories"].select(*SESSION, pl.col("turns").alias("turn")).explode("turn").unique()
    by_turn = evidence.filter(pl.col("turn").is_not_null()).join(memories, on=[*SESSION, "turn"], how="semi")
    by_session = evidence.filter(pl.col("turn").is_null()).join(memories, on=SESSION, how="semi")
    written = pl.concat([by_turn, by_session]).with_columns(pl.lit(True).alias("written"))
    units = retrieval.holders(tables["units"], evidence).join(
        tables["ranking"].select("question", "unit", "rank", "selected"), on=["question", "unit"])
    key = ["question", "session", "turn"]
    best = units.group_by(key).agg(pl.col("rank").min(), pl.col("selected").any())
    shown = shown_turns(read_context(tables), tables)
    packed = pl.concat([
        evidence.join(shown, on=key, how="semi"),
        evidence.filter(pl.col("turn").is_null()).join(shown, on=key[:2], how="semi"),
    ]).select(*key, pl.lit(True).alias("packed"))
    step = (pl.when(pl.col("packed")).then(5).when(pl.col("selected")).then(4).when(pl.col("rank") <= deep).then(3)
            .when(pl.col("rank").is_not_null()).then(2).when(pl.col("written")).then(1).otherwise(0))
    return (evidence.join(written, on=[*SESSION, "question", "turn"], how="left", nulls_equal=True)
            .join(best, on=key, how="left", nulls_equal=True).join(packed, on=key, how="left", nulls_equal=True)
            .select(*key, step.cast(pl.Int32).alias("step")).sort(key))


def read_context(tables: Tables) -> pl.DataFrame:
    """Return the rows of ``context`` that fit into the prompt: the reader drops the last ones."""
    context = tables["context"]
    if "answers" not in tables:
        return context
    dropped = tables["answers"].filter(pl.col("sample") == 0).select("question", "dropped")
    rows = context.join(dropped, on="question", how="left", maintain_order="left").with_columns(
        pl.int_range(pl.len()).over("question").alias("nth"), pl.len().over("question").alias("all"))
    return rows.filter(pl.col("nth") < pl.col("all") - pl.col("dropped").fill_null(0)).select(context.columns)


def last_steps(steps: pl.DataFrame, view: str) -> pl.DataFrame:
    """Return (question, reached), a name of ``STEPS``: the best piece under "any", the worst under "all"."""
    step = pl.col("step").max() if view == "any" else pl.col("step").min()
    return steps.group_by("question").agg(step).select(
        "question", pl.col("step").replace_strict(dict(enumerate(STEPS)), return_dtype=pl.String).alias("reached"))


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


@dataclass(frozen=True)
class Pieces:
    """Pieces of evidence that questions ask for, and the rows of a list that hold them.

    row, piece: one row and the number of one piece that it holds. question: (pieces,) the place of each one's question.
    """

    row: NDArray[np.int64]
    piece: NDArray[np.int64]
    question: NDArray[np.int64]
    questions: int

    @classmethod
    def of(cls, held: pl.DataFrame, question: pl.Series, questions: int) -> Pieces:
        """Return the pieces of these questions; held: (row, piece), question: the place of each piece's question."""
        row, piece, place = (rows.to_numpy().astype(np.int64) for rows in (held["row"], held["piece"], question))
        return cls(row, piece, place, questions)

    def count(self, shown: NDArray[np.bool_]) -> tuple[Values, Values]:
        """Return how many pieces of each question the shown rows hold, and how many there are: (questions,) each."""
        held = np.zeros(len(self.question), bool)
        held[self.piece[shown[self.row]]] = True
        held_by, pieces = (np.bincount(self.question, weights, self.questions) for weights in (held, None))
        return held_by.astype(np.float64), pieces.astype(np.float64)

    def complete(self, shown: NDArray[np.bool_]) -> Values:
        """Return 1 for each question all of whose pieces are shown, 0 for others, NaN without pieces."""
        held, pieces = self.count(shown)
        return np.where(pieces > 0, (held == pieces).astype(np.float64), np.nan)
