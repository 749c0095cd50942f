from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import Tables, empty, frame
from memlab.stages.query.original import ShuffledQueries
from memlab.store import Store
from memlab.support.errors import MemlabError


def wrong(corpora: list[int], seed: int = 0) -> pl.DataFrame:
    """Queries of questions 0, 1, ... about these corpora; the text of question i is named i."""
    asked = frame("questions", {"question": range(len(corpora)), "corpus": corpora,
                                "text_id": [str(i) for i in range(len(corpora))]})
    return ShuffledQueries(seed=seed).run(Tables(questions=asked, turns=empty("turns")), Store())["queries"]


@given(st.lists(st.integers(0, 4), min_size=2, max_size=30), st.integers(0, 5))
def test_nobody_asks_their_own_question_and_every_text_is_used_once(corpora: list[int], seed: int) -> None:
    queries = wrong(corpora, seed)
    pairs = [(row["question"], int(row["text_id"])) for row in queries.to_dicts()]
    assert [q for q, _ in pairs] == list(range(len(corpora)))
    assert sorted(t for _, t in pairs) == list(range(len(corpora)))
    assert all(q != t for q, t in pairs)
    if max(corpora.count(c) for c in corpora) * 2 <= len(corpora):
        assert all(corpora[q] != corpora[t] for q, t in pairs)


def test_the_seed_alone_decides() -> None:
    assert wrong(list(range(20))).equals(wrong(list(range(20))))
    assert not wrong(list(range(20))).equals(wrong(list(range(20)), seed=1))
    assert set(wrong([0, 1])["kind"]) == {"wrong"}


def test_one_question_has_no_other() -> None:
    with pytest.raises(MemlabError, match="load more questions"):
        wrong([0])
