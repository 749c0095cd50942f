"""Upper bounds that look at gold: of question classifiers, of reranking, of adaptive K, and of memory."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field, model_validator

from memlab.learn.folds import EvidenceLevel, first_holders, smallest_k
from memlab.pipeline.question_types import OF_TYPE, check_classes
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SESSION, Tables
from memlab.pipeline.token_counter import count_tokens
from memlab.stages.rank.select import Count, cut
from memlab.stages.rank.units import rank_units
from memlab.stages.read import pack
from memlab.stages.read.prompt import Value, render_units
from memlab.store import Store
from memlab.support.errors import MemlabError


@stage(sees=("gold",))
class OracleClasses:
    """Classify each question by its gold type, as a perfect classifier would.

    ``classes`` maps types to classes, and takes precedence over the table of ``memlab.pipeline.question_types`` for
    LongMemEval,
    LoCoMo and the synthetic lives; the class of any other type is ``otherwise``.
    """

    reads: ClassVar = ("questions", "gold")
    writes: ClassVar = ("classes",)

    # type: class, for types beyond LongMemEval's, LoCoMo's and those of the synthetic lives
    classes: dict[str, str] = Field(default_factory=dict)
    otherwise: str = "factual"  # the class of a type that nobody mapped

    @model_validator(mode="after")
    def _check_classes(self) -> OracleClasses:
        try:
            check_classes({**self.classes, "otherwise": self.otherwise})
        except MemlabError as error:
            raise ValueError(str(error)) from error
        return self

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the class of every question."""
        by_type = pl.col("category").replace_strict({**OF_TYPE, **self.classes}, default=self.otherwise,
                                                    return_dtype=pl.String).fill_null(self.otherwise)
        return Tables(classes=tables["questions"].select("question").join(
            tables["gold"].select("question", "category"), on="question", how="left", maintain_order="left").select(
            "question", by_type.alias("class")))


@stage(sees=("gold",))
class OracleRerank:
    """Move the units that hold evidence to the front of the first ``pool``, as a perfect reranker would.

    Only the first unit that holds each item of evidence (``level``) moves, so that no item is crowded out by a second
    unit of another; all others keep their order, and scores keep their distances.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    pool: Annotated[int, Field(ge=1)] = 50
    level: EvidenceLevel = "session"  # what counts as an item of evidence: session or turn

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the reordered ranking."""
        ranking = tables["ranking"]
        pool = ranking.filter(pl.col("rank") <= self.pool)
        holders = first_holders(pool, tables["units"], tables["evidence"], self.level).drop_nulls("unit").select(
            "question", "unit").unique().with_columns(pl.lit(1.0).alias("holds"))
        span = (pl.col("score").max() - pl.col("score").min()).over("question") + 1
        lifted = ranking.join(holders, on=["question", "unit"], how="left", maintain_order="left").with_columns(
            pl.col("score") + pl.col("holds").fill_null(0.0) * span).drop("holds")
        return Tables(ranking=rank_units(lifted))


@stage(sees=("gold",))
class OracleSelect:
    """Select the smallest K that is complete, up to ``max_k``: the head oracle.

    A question that is never complete is shown ``max_k`` units, as by a rule that cannot know this. No rule that shows
    the top of this ranking reaches the recall of ``max_k`` with fewer units. A question without evidence is shown one.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    level: EvidenceLevel = "session"
    max_k: Count = 40

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        reach = ranking.filter(pl.col("rank") <= self.max_k)
        needed = smallest_k(reach, tables["units"], tables["evidence"], self.level)
        k = ranking.select(pl.col("question").unique()).join(
            needed.select("question", pl.col("complete").fill_null(self.max_k).alias("k")), on="question", how="left")
        return cut(ranking, k.with_columns(pl.col("k").fill_null(1)))


@stage(sees=("gold",))
class OracleSetSelect:
    """Select exactly the evidence: the set oracle, the bound of rules that may skip units inside the ranking.

    For each piece of evidence it shows the first unit that holds it. As in ``OracleSelect``, a question that is not
    complete within ``max_k`` units is shown all of these, and one without evidence is shown the first unit.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    level: EvidenceLevel = "session"
    max_k: Count = 40

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``selected``."""
        head = OracleSelect(level=self.level, max_k=self.max_k).run(tables, store)["ranking"]
        reach = head.filter(pl.col("rank") <= self.max_k)
        first = first_holders(reach, tables["units"], tables["evidence"], self.level)
        complete = first.filter(~pl.col("unit").is_null().any().over("question")).select("question", "unit").unique()
        others = head.filter("selected").join(complete, on="question", how="anti").select("question", "unit")
        chosen = pl.concat([complete, others]).with_columns(pl.lit(True).alias("\0selected"))
        rows = head.join(chosen, on=["question", "unit"], how="left", maintain_order="left")
        return Tables(ranking=rows.with_columns(pl.col("\0selected").fill_null(False).alias("selected")).drop(
            "\0selected"))


_ROW = ["question", *SESSION, "said_on", "turn", "unit", "shown", "tokens"]


@stage(sees=("gold",))
class OracleContext:
    """Show gold, which measures how much is lost in reading rather than in retrieval.

    * ``turns``: the evidence turns alone, in the order of time; the whole session where only that is known.
    * ``sessions``: the evidence sessions whole, in the order of time.
    * ``gold_first``: the evidence as in ``turns``, then the selected units in rank order; one that shows nothing but
      evidence turns, or a text shown already, is left out.

    With ``max_tokens``, rows that do not fit are skipped, so evidence comes before the selected units. A question
    without evidence is shown nothing, or only the selected units. ``value`` is that of the selected units.
    """

    reads: ClassVar = (*pack.PACK_READS, "questions", "evidence")
    writes: ClassVar = pack.PACK_WRITES

    mode: Literal["turns", "sessions", "gold_first"] = "turns"  # turns | sessions | gold_first
    value: Value = "unit"
    max_tokens: pack.MaxTokens = None  # a number: what does not fit into it is passed over

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context and the texts that it needs; a row's unit is the first that holds the evidence."""
        evidence = tables["evidence"].select("question", "session", "turn").unique()
        if self.mode == "sessions":
            evidence = evidence.with_columns(pl.lit(None, pl.Int32).alias("turn")).unique()
        gold = evidence_rows(evidence, tables).sort("question", *pack.CHRONOLOGICAL).with_columns(
            pl.lit(0, pl.Int32).alias("rank"))
        if self.mode != "gold_first":
            return pack.make_context(pack.within_budget(gold, self.max_tokens), pack.CHRONOLOGICAL, tables)
        texts, alone = pack.selected_texts(tables, self.value), self.value in ("unit", "turn")
        selected = _beyond(texts, evidence, tables, alone=alone)
        rows = pl.concat([gold, selected.select(gold.columns)]).sort("question", "rank", maintain_order=True)
        rows = rows.unique(["question", "shown"], keep="first", maintain_order=True)
        nth = pl.int_range(pl.len()).over("question").alias("nth")
        return pack.make_context(pack.within_budget(rows.with_columns(nth), self.max_tokens), ["nth"], tables)


def evidence_rows(evidence: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Render evidence (question, session, turn or null): one row per turn, or per session where the turn is null."""
    whole = pack.visible_rows(tables, pack.session_texts(tables)).join(
        evidence.filter(pl.col("turn").is_null()).select("question", "session"), on=["question", "session"], how="semi")
    turns = pack.visible_rows(tables, _turns(evidence, tables)).join(
        evidence.drop_nulls("turn"), on=["question", "session", "turn"], how="semi")
    return pl.concat([whole.select(_ROW), turns.select(_ROW)])


def _turns(evidence: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Render the turns that are evidence of any question: corpus, session, turn, said_on, unit, shown, tokens."""
    of = ["corpus", "session", "turn"]
    wanted = evidence.drop_nulls("turn").join(tables["questions"].select("question", "corpus"), on="question")
    turns = tables["turns"].select(of).join(wanted, on=of, how="semi").sort(of)
    units = turns.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"), "corpus", "session",
                            pl.concat_list("turn").alias("turns"), pl.lit("turn").alias("level"))
    shown = render_units(units, tables, "turn").sort("unit")["text"].alias("shown")
    holding = tables["units"].explode("turns").rename({"turns": "turn"}).group_by(of).agg(pl.col("unit").min())
    return (turns.with_columns(shown, count_tokens(shown).alias("tokens"))
            .join(holding, on=of, how="left").join(tables["sessions"], on=SESSION, how="left"))


def _beyond(rows: pl.DataFrame, evidence: pl.DataFrame, tables: Tables, alone: bool) -> pl.DataFrame:
    """Drop selected units that lie in a session shown whole, and those all of whose turns are evidence turns.

    The latter only where units are shown ``alone``: in their round or session they add more than the evidence.
    """
    units = rows.select("question", "unit").join(
        tables["units"].select("unit", "session", pl.col("turns").alias("turn")), on="unit").explode("turn")
    by_turn = evidence.drop_nulls("turn").filter(alone).with_columns(pl.lit(True).alias("gold"))
    by_session = evidence.filter(pl.col("turn").is_null()).select("question", "session", pl.lit(True).alias("whole"))
    new = (units.join(by_turn, on=["question", "session", "turn"], how="left")
           .join(by_session, on=["question", "session"], how="left")
           .filter(pl.col("gold").is_null() & pl.col("whole").is_null()))
    return rows.join(new.select("question", "unit"), on=["question", "unit"], how="semi", maintain_order="left")


@stage(sees=("ids",))
class ShownIds:
    """Show the selected units in rank order, each under its session's own id, as RAG Memory Provider v1 did.

    An id that begins with ``answer_`` reveals evidence, so the gain of this arm over the same pack without ids is
    leakage. Every report marks it as tainted. Fields as ``memlab.stages.read.pack.ByRank``.
    """

    reads: ClassVar = (*pack.PACK_READS, "ids")
    writes: ClassVar = pack.PACK_WRITES

    value: Value = "unit"
    max_tokens: pack.MaxTokens = None  # a number: what does not fit into it is passed over, never cut

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context and the texts that it needs."""
        names = tables["ids"].filter(pl.col("kind") == "session").select("corpus", "session", "name")
        rows = pack.selected_texts(tables, self.value).join(names, on=SESSION, how="left", maintain_order="left")
        named = pl.format("Session {}:\n{}", pl.col("name").fill_null("?"), "shown")
        rows = rows.with_columns(named.alias("shown")).drop("name")
        rows = rows.with_columns(count_tokens(pl.col("shown")).alias("tokens"))
        return pack.make_context(pack.within_budget(rows, self.max_tokens), ["rank"], tables)
