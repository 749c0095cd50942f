"""The cross-fitted weight between vectors and words, on rankings that are computed by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.learn.fusion_weight import CrossFitWeight
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.examples import fewer

STORE = Store()
SESSIONS = 3


def world(words: list[list[float]], vectors: list[list[float]], evidence: list[int], per_corpus: int = 2) -> Tables:
    """Questions over three sessions of two turns; words (q, session); vectors (q, session), of the better turn."""
    n, corpora = len(words), -(-len(words) // per_corpus)
    corpus = [q // per_corpus for q in range(n)]
    c, s, t = (a.ravel() for a in np.meshgrid(range(corpora), range(SESSIONS), range(2), indexing="ij"))
    said = [f"{a}.{b}.{d}" for a, b, d in zip(c, s, t)]
    of_session = c[t == 0] * SESSIONS + s[t == 0]
    memories = pl.concat([
        frame("memories", {"memory": c * 6 + s * 2 + t, "corpus": c, "session": s, "turns": [[x] for x in t],
                           "kind": ["turn"] * len(c)}),
        frame("memories", {"memory": 1000 + of_session, "corpus": c[t == 0], "session": s[t == 0],
                           "turns": [[0, 1]] * len(of_session), "kind": ["session"] * len(of_session)})])
    hits = []
    for q in range(n):
        for session in range(SESSIONS):
            first = corpus[q] * 6 + session * 2
            hits += [(q, "dense:turn", first, vectors[q][session]),
                     (q, "dense:turn", first + 1, vectors[q][session] - .5),
                     (q, "lexical:session", 1000 + corpus[q] * SESSIONS + session, words[q][session])]
    query, lane, memory, score = zip(*hits)
    return Tables(
        texts=texts_frame(said), memories=memories,
        queries=frame("queries", {"query": range(n), "question": range(n), "kind": ["original"] * n}),
        hits=frame("hits", {"query": query, "lane": lane, "memory": memory, "score": score, "rank": [1] * len(hits)}),
        questions=frame("questions", {"question": range(n), "corpus": corpus,
                                      "text_id": [text_hash(f"q{q}") for q in range(n)]}),
        sessions=frame("sessions", {"corpus": c[t == 0], "session": s[t == 0]}),
        turns=frame("turns", {"corpus": c, "session": s, "turn": t, "role": ["user"] * len(c),
                              "text_id": [text_hash(x) for x in said]}),
        evidence=frame("evidence", {"question": range(n), "session": evidence}),
        gold=frame("gold", {"question": range(n), "scored": [True] * n}),
    )


def ranking(tables: Tables) -> pl.DataFrame:
    return CrossFitWeight().run(tables.only(CrossFitWeight.reads), STORE)["ranking"]


def notes(tables: Tables) -> list[tuple[object, ...]]:
    return CrossFitWeight().run(tables.only(CrossFitWeight.reads), STORE)["notes"].rows()


WORDS, VECTORS = [[3.0, 0.0, 0.0]] * 6, [[0.0, 0.0, 3.0]] * 6  # words want session 0, vectors session 2


def test_a_conversation_is_ranked_by_the_weight_that_the_others_choose() -> None:
    """Words are right in the first two conversations, vectors in the third, which alone has no say in its weight.

    z(words) = (sqrt 2, -1 / sqrt 2, -1 / sqrt 2), so session 0 is first from w = .5, a tie that the smaller unit wins.
    For the third, both others want .5; for the others it is one of each kind, two hits whatever w, so w = 0.
    """
    tables = world(WORDS, VECTORS, [0, 0, 0, 0, 2, 2])
    assert sorted(notes(tables)) == [("questions ranked with a weight of 0.00 for words", 4, 6),
                                     ("questions ranked with a weight of 0.50 for words", 2, 6)]
    made = ranking(tables)
    first = made.filter(rank=1).sort("question")["unit"].to_list()
    assert first == [2, 2, 5, 5, 6, 6]  # units are numbered over all conversations
    z = 2 ** .5
    assert made.filter(question=4).sort("unit")["score"].to_list() == pytest.approx(
        [.5 * z - .5 / z, -1 / z, .5 * z - .5 / z], abs=1e-6)
    assert made.filter(question=0, rank=1)["score"].item() == pytest.approx(z, abs=1e-6)
    assert set(made.columns) >= {"dense:turn", "lexical:session"}


def test_questions_that_do_not_count_choose_nothing() -> None:
    tables = world(WORDS, VECTORS, [0, 0, 0, 0, 2, 2])
    gold = tables["gold"].with_columns(scored=pl.col("question") > 1)
    made = tables.updated({"gold": gold})
    assert ("questions ranked with a weight of 0.50 for words", 2, 6) in notes(made)  # 2 and 3 choose for 4 and 5
    none = tables.updated({"gold": gold.with_columns(scored=pl.lit(False))})
    with pytest.raises(MemlabError, match=r"no question of the other folds.*rank/score=zscore"):
        ranking(none)


@fewer(4)
@given(st.data())
def test_a_questions_own_label_and_its_conversations_never_change_its_scores(data: st.DataObject) -> None:
    score = st.lists(st.lists(st.integers(0, 5).map(float), min_size=3, max_size=3), min_size=6, max_size=6)
    evidence = st.lists(st.integers(0, 2), min_size=6, max_size=6)
    tables = world(data.draw(score), data.draw(score), data.draw(evidence))
    other = tables["evidence"].with_columns(session=pl.when(pl.col("question") < 2).then(
        (pl.col("session") + 1) % 3).otherwise("session").cast(pl.Int32))
    before, after = ranking(tables), ranking(tables.updated({"evidence": other}))
    assert before.filter(pl.col("question") < 2).equals(after.filter(pl.col("question") < 2))


def test_two_lanes_are_needed_and_settings_are_checked() -> None:
    tables = world(WORDS, VECTORS, [0] * 6)
    alone = tables.updated({"hits": tables["hits"].filter(pl.col("lane") == "dense:turn")})
    with pytest.raises(MemlabError, match=r"the lanes are dense:turn.*search.lexical.kinds"):
        ranking(alone)
    assert ranking(tables.updated({"hits": tables["hits"].head(0)})).is_empty()
    for wrong in ({"step": 0.0}, {"folds": 1}, {"folds": "some"}):
        with pytest.raises(ValidationError):
            CrossFitWeight(**wrong)
