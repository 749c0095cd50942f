from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.learn.folds import folds
from memlab.learn.question_classifier import Centroids, centroids, nearest
from memlab.store import Store
from memlab.tables import Tables, frame, text_hash, texts_frame
from tests.search.world import WordEmbedder

WORDS = {"temporal": "when day week", "multi-hop": "count total both", "single-hop": "where name colour"}
MODEL = WordEmbedder(64)


def world(questions: int = 60, corpora: int = 6) -> Tables:
    """A question's words are drawn from those of its type and from noise; corpora are folds that stay whole."""
    rng = np.random.default_rng(0)
    types = [list(WORDS)[i] for i in rng.integers(0, 3, questions)]
    asked = [" ".join([*rng.choice(WORDS[t].split(), 2), f"noise{i}"]) for i, t in enumerate(types)]
    corpus = np.arange(questions) % corpora
    return Tables(
        texts=texts_frame([*asked, "said"]),
        questions=frame("questions", {"question": range(questions), "corpus": corpus,
                                      "text_id": [text_hash(a) for a in asked]}),
        turns=frame("turns", {"corpus": range(corpora), "session": [0] * corpora, "turn": [0] * corpora,
                              "role": ["user"] * corpora, "text_id": [text_hash("said")] * corpora}),
        evidence=frame("evidence", {"question": range(questions), "session": [0] * questions}),
        gold=frame("gold", {"question": range(questions), "category": types}),
    )


def told(tables: Tables, store: Store, **options: object) -> pl.DataFrame:
    stage = Centroids(embedder=MODEL, **options)
    return stage.run(tables.only(stage.reads), store)["classes"]


def relabelled(tables: Tables, where: pl.Expr) -> Tables:
    """The same with the types of some questions turned round."""
    turn = {"temporal": "multi-hop", "multi-hop": "single-hop", "single-hop": "temporal"}
    marked = tables["gold"].join(tables["questions"].select("question", "corpus"), on="question")
    gold = marked.with_columns(pl.when(where).then(pl.col("category").replace(turn)).otherwise("category")
                               .alias("category")).drop("corpus")
    return tables.updated({"gold": gold})


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def test_centroids_by_hand() -> None:
    vectors = np.array([[1, 0], [0, 1], [0, 1], [-1, 0]], np.float32)
    names, centres = centroids(vectors, pl.Series(["b", "b", "a", None]))
    assert names == ["a", "b"]
    assert centres == pytest.approx(np.array([[0, 1], [.5 ** .5, .5 ** .5]]))
    assert nearest(np.array([[1, 0], [0, 1], [-1, 0]], np.float32), names, centres) == ["b", "a", "a"]
    assert nearest(np.zeros((1, 2), np.float32), names, centres) == ["a"]  # a tie goes to the first name


def test_questions_worded_alike_share_a_class(store: Store) -> None:
    tables = world()
    right = told(tables, store).join(tables["gold"], on="question").with_columns(
        pl.col("category").replace({"multi-hop": "multi_session", "single-hop": "factual"}))
    assert (right["class"] == right["category"]).mean() > .9
    assert right["question"].to_list() == tables["questions"]["question"].to_list()


def test_each_question_is_told_by_the_centroids_of_the_other_folds_recomputed(store: Store) -> None:
    tables = world()
    got = dict(told(tables, store, folds=3, seed=5).iter_rows())
    parted = folds(tables["questions"], tables["evidence"], tables["turns"], 3, 5)
    texts = dict(tables["texts"].iter_rows())
    asked = {q: MODEL.vector(texts[t]) for q, t in tables["questions"].select("question", "text_id").iter_rows()}
    types = dict(tables["gold"].select("question", "category").iter_rows())
    names = {"temporal": "temporal", "multi-hop": "multi_session", "single-hop": "factual"}
    for fold in range(3):
        mine = parted.filter(fold=fold)["question"].to_list()
        centre = {}
        for kind in sorted(set(types.values())):
            total = sum(asked[q] for q in asked if q not in mine and types[q] == kind)
            centre[names[kind]] = total / np.linalg.norm(total)
        for q in mine:
            assert got[q] == max(sorted(centre), key=lambda name, q=q: round(float(asked[q] @ centre[name]), 6))


def test_no_type_of_its_own_fold_reaches_a_question(store: Store) -> None:
    """Labels of a whole corpus turned round change nothing there: its fold has no other corpus here."""
    tables = world(corpora=5)
    before = told(tables, store)
    for corpus in range(5):
        here = tables["questions"].filter(corpus=corpus).select("question")
        after = told(relabelled(tables, pl.col("corpus") == corpus), store)
        assert after.join(here, on="question", how="semi").equals(before.join(here, on="question", how="semi"))
    everywhere = told(relabelled(tables, pl.col("corpus") >= 0), store)
    assert not everywhere.equals(before)  # but the types of other folds do count


def test_questions_that_share_evidence_are_told_by_others(store: Store) -> None:
    tables = world(questions=12, corpora=12)
    linked = tables.updated({"turns": tables["turns"].with_columns(
        text_id=pl.when(pl.col("corpus") < 2).then("text_id").otherwise(pl.col("corpus").cast(pl.String)))})
    before = told(linked, store, by="evidence", folds=4)
    after = told(relabelled(linked, pl.col("corpus") == 0), store, by="evidence", folds=4)
    assert after.head(2).equals(before.head(2))


def test_types_without_a_class_are_told_one_and_not_fitted_on(store: Store) -> None:
    tables = world()
    odd = pl.col("question") % 3 == 0
    gold = tables["gold"].with_columns(pl.when(odd).then(pl.lit("adversarial")).otherwise("category").alias("category"))
    shifted = tables["gold"].with_columns(pl.when(odd).then(None).otherwise("category").alias("category"))
    one, two = (told(tables.updated({"gold": g}), store) for g in (gold, shifted))
    assert one.equals(two)
    assert one["class"].null_count() == 0
    assert one.height == 60


def test_without_types_nothing_can_be_fitted(store: Store) -> None:
    tables = world()
    untyped = tables.updated({"gold": tables["gold"].with_columns(category=pl.lit("all"))})
    with pytest.raises(MemlabError, match="choose a classifier by rules"):
        told(untyped, store)
    with pytest.raises(ValidationError, match="folds"):
        Centroids(embedder=MODEL, folds=1)
