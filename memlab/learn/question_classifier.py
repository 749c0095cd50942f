"""Question classifier fitted on gold types: the class with the nearest mean question vector."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.learn.folds import CrossFitted, fold_numbers
from memlab.models.protocols import Embedder, Floats
from memlab.question_types import OF_TYPE
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, frame, with_text


@stage(sees=("gold",), fits="all")
class Centroids(CrossFitted):
    """Classify each question by the nearest centroid, fitted on the questions of the other folds alone.

    A centroid is the normalised mean of the unit vectors of a class's questions; the nearest one has the largest
    cosine, ties go to the first name. The predicted class depends neither on the type of the question itself nor on
    the types of questions that share its evidence (``memlab.learn.folds``). Questions of a type without a class are
    classified, not fitted on.
    """

    reads: ClassVar = ("questions", "texts", "turns", "evidence", "gold")
    writes: ClassVar = ("classes",)

    embedder: Embedder

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the class of every question; raise MemlabError if no type in the other folds has a class."""
        questions = with_text(tables["questions"], tables["texts"]).with_columns(pl.col("text").fill_null(""))
        vectors = store.vectors(self.embedder, questions.select("text_id", "text"), "query")
        gold_classes = tables["gold"].select("question", pl.col("category").replace_strict(
            OF_TYPE, default=None, return_dtype=pl.String).alias("class"))
        rows = questions.select("question").join(gold_classes, on="question", how="left", maintain_order="left")
        predicted = np.empty(rows.height, object)
        fold = fold_numbers(rows, self.fold_of(tables))
        for held_out in np.unique(fold):
            names, centres = centroids(vectors[fold != held_out], rows["class"].filter(pl.Series(fold != held_out)))
            predicted[fold == held_out] = nearest(vectors[fold == held_out], names, centres)
        return Tables(classes=frame("classes", {"question": rows["question"], "class": predicted.tolist()}))


def centroids(vectors: Floats, classes: pl.Series) -> tuple[list[str], Floats]:
    """Return the names of the classes, in alphabetical order, and their centroids (classes, dim) of unit length.

    ``vectors`` (n, dim) are of unit length; ``classes`` (n,) are null for questions without one.
    """
    names = sorted(classes.drop_nulls().unique())
    if not names:
        raise MemlabError("no question of the other folds has a type with a class", where="query/classify=centroid",
                          fix="choose a classifier by rules, e.g. query/classify=rules")
    means = np.stack([vectors[(classes == name).fill_null(False).to_numpy()].mean(axis=0) for name in names])
    return names, means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)


def nearest(vectors: Floats, names: list[str], centres: Floats) -> list[str]:
    """Return the name of the nearest centroid for each vector; shapes (n, dim) and (classes, dim), n names."""
    return [names[i] for i in (vectors @ centres.T).round(6).argmax(axis=1)]
