"""Learned fusion: a first ranking by weights, whose head is re-scored by trees fitted on gold.

    memlab run system=best data=...                                by the fit that memlab ships (docs/ranking_fit.md)
    memlab run system=best_learned data=...                        cross-fitted: each question by other folds
    memlab train ranker data=... out=FILE                          fits on all questions, saves FILE
    memlab run system=best rank.score.model=FILE data=...          this data's gold is not used
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from memlab.data.dataset import GroupBy
from memlab.data.numbering import question_digests
from memlab.learn.fits import count_learnt, fit_digest
from memlab.learn.folds import FoldCount, evidence_units, fold_numbers, folds, in_folds, scored_evidence
from memlab.learn.ranker.cross_fit import Fits, Learnable, apply_fits
from memlab.learn.ranker.features import NEEDED, PAIR, features
from memlab.learn.ranker.importances import importances
from memlab.learn.ranker.model import RankModel, Recipe, load
from memlab.learn.ranker.rescore import leading_turns, mix, rescore, session_numbers
from memlab.learn.ranker.signals import FUSED
from memlab.models.protocols import Embedder
from memlab.pipeline.stage import LocalPath, name_of, spec, spec_digest, stage
from memlab.pipeline.tables import SESSION, Notes, Tables, empty
from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.score import Score
from memlab.stages.rank.units import signals_of
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.terminal import log_once

SHIPPED = Path(__file__).with_name("shipped.json")
"""The fit that memlab ships (docs/ranking_fit.md)."""


@stage(sees=("gold",), fits="all")
class LearnedScore(Score):
    """Rank turns as ``Score`` does, then re-score the first ``depth`` of each question by a fitted model.

    The weighted score stays as the signal ``linear``; turns beyond the depth follow in its order, and it orders turns
    that the trees cannot tell apart. A ``reranker`` moves nothing: its score of the first units is one more signal,
    from which features are made like those of a lane. Without ``model`` each question is scored by a fit on the other
    folds (memlab.learn.folds), which depends neither on its labels nor on those of questions that share its evidence.
    With it, no gold of this data is used. Sessions that haystacks of another fold share are no negatives of its fit; if
    all are shared, as in a pool, nothing is learned, and a note says so. With other searches, weights, units or another
    encoder than those of the shipped fit the ranking by weights stays, and a note says so.
    """

    writes: ClassVar = ("units", "ranking", "importances")
    training: ClassVar = ("ranker out=RANKER.json", "rank.score.model=RANKER.json")

    # a file of `memlab train ranker`; shipped: memlab's own; null: cross-fitted on this data's gold
    model: Literal["shipped"] | LocalPath | None = None
    encoder: Callable[[], str] | None = None  # digest of the searches' encoder, or the encoder; null: of any
    depth: Annotated[int, Field(ge=2)] = 200  # first units that are re-scored; a saved fit brings its own
    folds: FoldCount = 5  # fewer where the data has fewer groups; all: leave one group out
    by: GroupBy = "auto"  # groups: corpus where a corpus has several questions, else evidence sessions of one text
    recipe: Recipe = Recipe()
    reranker: Rerank | None = None  # a pair scorer, as in rank/rerank, whose score is one more signal
    alone: bool = False  # control: features of the turn alone and the question alone, with no signal and no shared word

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Tables that it receives: gold only where it is fitted on these questions."""
        needed = dict.fromkeys((*Score.reads, *NEEDED))
        gold = ("evidence", "gold") if self.model is None else ()
        return (*(name for name in needed if name not in self.writes), *gold)

    @property
    def file(self) -> Path | None:
        """The file of its fit, if it has one."""
        return SHIPPED if self.model == "shipped" else self.model  # type: ignore[return-value]

    @cached_property
    def saved(self) -> RankModel | None:
        """Its fit, if it has one, as the file was first read: one object never mixes two states of it."""
        return None if self.file is None else load(self.file)

    @field_validator("encoder", mode="before")
    @classmethod
    def _digest_only(cls, encoder: Any) -> Any:  # it encodes nothing here: a plan must not count it
        return partial(encoder_digest, encoder) if isinstance(encoder, Embedder) else encoder

    @model_validator(mode="after")
    def _readable(self) -> LearnedScore:
        _ = self.saved  # raises MemlabError for a file that is none
        return self

    def identity(self) -> dict[str, Any]:
        """Describe the settings, and the content of the fit in place of its path."""
        fields = {name: spec(getattr(self, name)) for name in self.__dataclass_fields__
                  if name not in ("model", "encoder")}
        fit = None if self.file is None else fit_digest(self.file)
        return {"is": name_of(type(self)), **fields, "fit": fit}

    def without_labels(self) -> LearnedScore:
        """Return the ranking by the fit that memlab ships, for questions without labels."""
        return dataclasses.replace(self, model="shipped")

    def number_seen(self, tables: Tables) -> int:
        """Return the number of questions on whose labels the saved fit was fitted."""
        return 0 if self.saved is None else count_learnt(tables, self.saved.learnt)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``units`` (all turns), ``ranking`` with the signal ``linear``, and ``importances``."""
        first, notes = self.first(tables, store), Notes()
        other = None if self.saved is None else self._difference(self.saved, first)
        if other is not None and self.model != "shipped":
            raise MemlabError(f"the fit is of another {other}", where="rank.score.model",
                              fix="use the searches and weights that it was fitted with, or fit anew")
        if other is not None:
            what = f"questions are ranked by weights: the shipped fit is of another {other}"
            notes.add(tables["questions"].height, tables["questions"].height, what)
            log_once(what)
        if other is not None or not first["ranking"].height:
            return first.updated({"importances": empty("importances"), "notes": notes.table()})
        frame, fits, depth = self._fits(tables.updated(first))
        notes.warn(sum(not model.trees for _, model in fits), len(fits),
                   "fits have nothing to rank evidence against; their questions stay in the order by weights")
        home = self.saved is None or self.saved.recipe.home
        scores = mix(frame, apply_fits(fits, frame), home)
        leads = leading_turns(frame, session_numbers(frame, first["units"]), scores, home)
        ranking = rescore(first["ranking"], frame, scores, depth, leads)
        return first.updated({"ranking": ranking, "importances": importances(fits), "notes": notes.table()})

    def _difference(self, saved: RankModel, first: Tables) -> str | None:
        """Return in what this ranking differs from that of the saved fit, if it does."""
        if not first["units"]["level"].eq("turn").all():
            return "unit"
        if self.encoder is not None and saved.encoder not in ("", self.encoder()):
            return "encoder"
        lanes = {name.removeprefix("z ") for name in saved.features if name.startswith("z ") and name[-2] not in "+-"}
        if first["ranking"].height and not lanes <= {FUSED, *signals_of(first["ranking"])}:
            return "set of searches"
        recorded = Score(weights=saved.weights or self.weights)
        return "set of weights" if any(self._weight(lane) != recorded._weight(lane) for lane in lanes) else None

    def _fits(self, tables: Tables) -> tuple[pl.DataFrame, Fits, int]:
        """Return the features of the first turns of each question, the models that score them, the depth."""
        if self.saved is not None:
            frame = features(tables, self.saved.depth, self.alone)
            return frame, [(np.ones(frame.height, np.bool_), self.saved)], self.saved.depth
        rows = self.learnable(tables)
        return rows.frame, rows.crossfit(self.depth, self.recipe), self.depth

    def learnable(self, tables: Tables) -> Learnable:
        """Return the candidates with their gold and folds; ``tables`` are those after the first step."""
        frame, label = candidates(tables, self.depth, self.alone)
        fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], self.folds, self.recipe.seed, self.by)
        return Learnable(frame, label, session_numbers(frame, tables["units"]), fold_numbers(frame, fold_of),
                         np.zeros(frame.height, np.int32), in_haystacks(frame, tables, fold_of))

    def first(self, tables: Tables, store: Store) -> Tables:
        """Return ``units`` and the ``ranking`` by weights, with its further signals."""
        made = super().run(tables, store)
        return made.updated({"ranking": self.with_signals(tables.updated(made), store)})

    def with_signals(self, tables: Tables, store: Store) -> pl.DataFrame:
        """Return ``ranking`` with its score as the signal ``linear`` as well, and with the reranker's score."""
        ranking = tables["ranking"].with_columns(pl.col("score").alias(FUSED))
        if self.reranker is None or not ranking.height:
            return ranking
        name = self.reranker.name
        judged = self.reranker.run(tables.only(self.reranker.reads), store)["ranking"]
        return ranking.join(judged.select(*PAIR, name), on=PAIR, how="left", maintain_order="left")

    def linear(self) -> Score:
        """Return the first step alone, as a stage."""
        return Score(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Score)})  # type: ignore[arg-type]


def encoder_digest(encoder: Embedder) -> str:
    """Return the digest of an encoder, whatever the number format and the device that it runs with."""
    settings = {name: value for name, value in encoder.identity().items() if name not in ("dtype", "backend")}
    return spec_digest(settings)


def candidates(tables: Tables, depth: int, alone: bool = False) -> tuple[pl.DataFrame, NDArray[np.int32]]:
    """Return the features of the first ``depth`` turns of each question, and which are evidence, (n,).

    Questions are in the order of the digests of their texts and corpora. Those that do not count in retrieval averages
    have no evidence here.
    """
    frame = features(tables, depth, alone)
    order = question_digests(tables["questions"], tables["turns"]).select(
        "question", pl.col("digest").rank("ordinal").alias("\0order"))
    frame = frame.join(order, on="question", how="left", maintain_order="left").sort(
        "\0order", maintain_order=True).drop("\0order")
    known = scored_evidence(tables).filter(pl.col("turn").is_not_null())
    evidence = evidence_units(frame, tables["units"], known).with_columns(label=pl.lit(1, pl.Int32))
    label = frame.select("question", "unit").join(evidence, on=["question", "unit"], how="left",
                                                  maintain_order="left")["label"].fill_null(0)
    return frame, label.to_numpy()


def in_haystacks(frame: pl.DataFrame, tables: Tables, fold_of: pl.DataFrame) -> NDArray[np.bool_]:
    """Return whether the session of each row (question, unit) is in a haystack of each fold as well, (folds, n)."""
    sessions = frame.select("unit").join(tables["units"].select("unit", *SESSION), on="unit", how="left",
                                         maintain_order="left")
    return in_folds(sessions, tables["questions"], tables["turns"], fold_of)
