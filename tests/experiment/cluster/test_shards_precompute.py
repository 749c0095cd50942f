"""Preparation: the union of the texts that arms encode, each once, in any number of parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.experiment.cluster.shards import asks_before_search, prepare, run_part, write
from memlab.pipeline.pipeline import _MEMO, Pipeline
from memlab.stages.search.dense import Dense
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.write.chunk import RoundChunker, TurnChunker
from memlab.stages.write.context import LLMContext
from memlab.store import Store
from tests.chats import ScriptedChat
from tests.small import arm, lexical
from tests.stages.search.world import WordEmbedder
from tests.token_words import TokenWords


def arms(root: Path) -> list:
    """Two arms that search turns, one that searches rounds; all have the same questions."""
    made = [Pipeline(chunk=chunk, dense=Dense(embedder=WordEmbedder(), name=name))
            for chunk, name in ((TurnChunker(), "dense"), (TurnChunker(), "other"), (RoundChunker(), "dense"))]
    return [arm(root, pipeline, name=str(n)) for n, pipeline in enumerate(made)]


@pytest.mark.parametrize("of", [1, 3])
def test_after_it_no_arm_encodes_anything(of: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    for part in range(of):
        store = Store(tmp_path / "store")
        prepare(arms(tmp_path), store, part, of)
        assert store.made["vectors"] > 0
        made += store.made["vectors"]
    one_by_one = Store(tmp_path / "alone")
    for one in arms(tmp_path / "alone-runs"):
        one.run(one_by_one)
    assert made == one_by_one.made["vectors"]
    store = Store(tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(WordEmbedder, "truncated", pytest.fail)  # nor does any ask for it, which would load the model
        for one in arms(tmp_path):
            one.run(store)
    assert store.made["vectors"] == 0


@pytest.mark.parametrize("of", [1, 3])
def test_after_it_no_shard_makes_token_vectors_and_each_text_got_them_once(of: int, tmp_path: Path) -> None:
    lanes = [late(matcher=TokenWords(), precision=precision)
             for late, precision in ((WeightedLate, "fp32"), (LateIndex, "fp32"), (WeightedLate, "int8"))]
    some = [arm(tmp_path, lexical(late=late), name=str(n)) for n, late in enumerate(lanes)]
    tables = some[0].dataset.load()
    keys, asked = tables["turns"]["text_id"].n_unique(), tables["questions"]["text_id"].n_unique()
    TokenWords.asked.clear()
    for part in range(of):
        prepare(some, Store(tmp_path / "store"), part, of)
    assert len(TokenWords.asked) == 2 * keys + asked  # fp32 and int8 are stored on their own
    _MEMO.clear()
    store = Store(tmp_path / "store")
    for one in some:
        for part in range(of):
            run_part(one, store, part, of)
    assert len(TokenWords.asked) == 2 * keys + asked
    assert store.made["tokens"] == 0 < store.found["tokens"]


def test_what_is_asked_before_the_searches_is_asked_once_for_all_parts(tmp_path: Path) -> None:
    chat = ScriptedChat(lambda prompt: "it is said")
    asking = arm(tmp_path, lexical(context=LLMContext(chat=chat), dense=Dense(embedder=WordEmbedder())))
    assert asks_before_search(asking)
    assert not any(asks_before_search(one) for one in arms(tmp_path))  # their models work as they search
    _MEMO.clear()
    write([asking], Store(tmp_path / "store"))
    asked = len(chat.asked)
    assert asked > 0
    for part in range(3):
        _MEMO.clear()  # as in a job of its own
        prepare([asking], Store(tmp_path / "store"), part, 3)
    assert len(chat.asked) == asked
