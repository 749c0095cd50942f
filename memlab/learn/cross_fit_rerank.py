"""Reranking with cross-encoders that were fine-tuned by folds.

The training record beside the weights, ``training.json``, names the questions that the model has not seen, so that no
arm can score a question with a model trained on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from memlab.learn import fits
from memlab.learn.pairs import question_keys
from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.protocols import Floats, Ints, PairScorer
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables, add_texts, with_text
from memlab.stages.query.original import ShuffledQueries
from memlab.stages.rank.rerank import PoolReranker, Rerank
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.files import write_json

FORMAT = "memlab-reranker-1"
FILE = "training.json"


@dataclass(frozen=True, config=ConfigDict(strict=True))
class TrainingRecord:
    """The part of a record that decides which questions a model may score.

    fold: ``all`` where the model was trained on all questions of its data. held_out: keys
    (``memlab.learn.pairs.question_keys``) of the held-out fold. learnt: hashes of the question texts that it was
    trained on.
    """

    format: Literal["memlab-reranker-1"]
    fold: str
    held_out: frozenset[str]
    learnt: frozenset[str]

    def may_score(self, key: str, text: str) -> bool:
        """Return whether a question is held out, or, for a model trained on all of its data, not among them."""
        return text not in self.learnt if self.fold == "all" else key in self.held_out


def write(folder: Path, content: dict[str, Any]) -> None:
    """Write the record into the folder of a model, as its last file."""
    write_json(folder / FILE, {"format": FORMAT, **content})


def read(folder: Path) -> TrainingRecord:
    """Read the record of a model; raise MemlabError if there is none, or it cannot be read."""
    fix = "train one with memlab train reranker; rank/rerank=cross_encoder takes models from elsewhere"
    return fits.load(folder / FILE, TrainingRecord, "a reranker's record", fix)


@stage(fits="all")  # its controls draw questions of other corpora
class CrossFitRerank(PoolReranker):
    """``Rerank`` with fine-tuned cross-encoders: the first of ``paths`` that was not trained on a question scores it.

    That is a model of the fold that held the question out, or one trained on all of another benchmark. A question that
    every model may have been trained on is refused. ``question`` turns the arm into a control: ``blank`` shows the
    models no question at all, ``wrong`` the question of another corpus; what they still gain over chance comes from
    the style of evidence. The other settings are those of ``Rerank``.
    """

    reads: ClassVar = Rerank.reads
    writes: ClassVar = Rerank.writes

    paths: Annotated[tuple[LocalPath, ...], Field(strict=False)]
    # controls: blank shows no question, wrong that of another corpus
    question: Literal["asked", "blank", "wrong"] = "asked"
    seed: int = 0  # of the wrong questions
    name: Annotated[str, Field(min_length=1)] = "cross_encoder"  # column of the ranking

    @model_validator(mode="after")
    def _readable(self) -> CrossFitRerank:
        if not self.paths:
            raise MemlabError("no model is given", fix="train one with memlab train reranker")
        for path in self.paths:
            read(path)
            self._stage(path)
        return self

    def identity(self) -> dict[str, Any]:
        """Return the settings and the content of the models, not their paths."""
        models = [self._stage(path).scorer.identity() for path in self.paths]
        return {"is": "CrossFitRerank", "models": models, "question": self.question, "seed": self.seed,
                "pool": self.pool, "name": self.name, "roles": list(self.roles), "weights": dict(self.weights),
                "normaliser": self.normaliser}

    @property
    def scorer(self) -> CrossEncoderScorer:
        """Return the first model, from which plans and schedules learn what this stage costs."""
        return CrossEncoderScorer(path=self.paths[0])

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking, reordered by ``Rerank``; raise MemlabError for a question that no model may score."""
        ranking = tables["ranking"]
        model_of = self._model_of(tables)
        controlled = self._with_control_questions(tables, store)
        parts = [ranking.head(0).with_columns(pl.lit(None, pl.Float64).alias(self.name))]
        for number, path in enumerate(self.paths):
            assigned = model_of.filter(pl.col("model") == number)
            part = {"ranking": ranking.join(assigned, on="question", how="semi"),
                    "questions": controlled["questions"].join(assigned, on="question", how="semi")}
            if assigned.height:
                parts.append(self._stage(path).run(controlled.updated(part), store)["ranking"])
        return Tables(ranking=pl.concat(parts, how="diagonal").sort("question", "rank"))

    def _stage(self, path: Any) -> Rerank:
        return Rerank(scorer=CrossEncoderScorer(path=path), pool=self.pool, name=self.name, roles=self.roles,
                      weights=self.weights, normaliser=self.normaliser)

    def _model_of(self, tables: Tables) -> pl.DataFrame:
        """Return (question, model): the number of the path whose model scores each ranked question."""
        keys = question_keys(tables["questions"].join(tables["ranking"], on="question", how="semi"), tables["turns"])
        records = [read(path) for path in self.paths]
        model = [next((i for i, r in enumerate(records) if r.may_score(key, text)), None)
                 for text, key in keys.select("text_id", "key").iter_rows()]
        model_of = keys.select("question", "text_id", pl.Series("model", model, pl.Int32))
        barred = with_text(model_of.filter(pl.col("model").is_null()), tables["texts"])
        if barred.height:
            raise MemlabError(
                f"{barred.height} of {model_of.height} questions were held out of none of these models, which may have "
                f"been trained on them (the first: {barred['text'][0]!r:.80})", where="rank/rerank, paths",
                fix="give the models of all folds of these data, or one trained with fold=all on other data")
        return model_of.select("question", "model")

    def _with_control_questions(self, tables: Tables, store: Store) -> Tables:
        """Return the tables with the questions that the models are shown."""
        if self.question == "asked":
            return tables
        questions = tables["questions"]
        if self.question == "blank":
            blank, texts = add_texts(tables["texts"], [""])
            return tables.updated({"texts": texts, "questions": questions.with_columns(text_id=pl.lit(blank[0]))})
        other = ShuffledQueries(seed=self.seed).run(tables.only(ShuffledQueries.reads), store)["queries"]
        swapped = questions.drop("text_id").join(other.select("question", "text_id"), on="question",
                                                 maintain_order="left")
        return tables.updated({"questions": swapped.select(questions.columns)})


@stage
class Chance:
    """A pair scorer with random scores: it reranks a pool in random order, the floor of all controls."""

    seed: int = 0

    def identity(self) -> dict[str, Any]:
        """Return the seed."""
        return {"is": "Chance", "seed": self.seed}

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Yield a number in [0, 1) for each pair, drawn from its texts alone."""
        digests = [hashlib.blake2b(f"{self.seed}\0{queries[q]}\0{passages[p]}".encode(), digest_size=8).digest()
                   for q, p in pairs]
        numbers = np.array([int.from_bytes(d, "big") for d in digests], np.float64) / 2.0**64
        yield np.arange(len(pairs)), numbers.astype(np.float32)


@stage
class BlankQuestion:
    """A pair scorer that shows another one no question: the control of a published reranker.

    What it still gains over the first stage comes from the style of evidence.
    """

    scorer: PairScorer

    def identity(self) -> dict[str, Any]:
        """Return the identity of the scorer under control."""
        return {"is": "BlankQuestion", "scorer": self.scorer.identity()}

    def origin(self) -> Any:
        """Return where the scorer under control came from."""
        return self.scorer.origin() if hasattr(self.scorer, "origin") else {}

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:  # noqa: ARG002
        """Yield the score of each pair's passage with an empty question; each passage is scored once."""
        used, row = np.unique(pairs[:, 1], return_inverse=True)
        positions = np.split(np.argsort(row, kind="stable"), np.cumsum(np.bincount(row, minlength=len(used)))[:-1])
        for at, scores in self.scorer.score([""], passages, np.stack([np.zeros_like(used), used], axis=1)):
            places = [positions[i] for i in at]
            yield np.concatenate(places), np.repeat(scores, [len(place) for place in places])
