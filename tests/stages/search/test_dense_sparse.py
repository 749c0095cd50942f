"""The learned sparse lane on a tiny random model, against the model's own similarity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.encoders.small_models import save_sparse
from memlab.models.local.embedder import SparseTermEncoder, term_matrix
from memlab.models.protocols import Embedder, embedders_in
from memlab.stages.search.dense import SparseSearch
from memlab.store import Store
from tests.stages.search.world import day, world

TEXTS = ["I moved to Oslo in May", "the cat is called Miso", "we had dinner by the sea", "cats and dogs " * 300]
ASKED = "What is the name of the cat?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model in the form of the published one; the idf of token number n is 1 + n mod 7."""
    import torch

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("sparse")
    save_sparse(made)
    return made


def lane(folder: Path, **more: object) -> SparseSearch:
    return SparseSearch(encoder=SparseTermEncoder(path=str(folder), terms=30522), **more)


@pytest.mark.slow
def test_scores_are_the_models_own_inner_products(folder: Path) -> None:
    from sentence_transformers import SparseEncoder

    model = SparseEncoder(str(folder), device="cpu")
    expected = model.similarity(model.encode_query([ASKED]), model.encode_document(TEXTS))[0].numpy()
    tables = world([(0, text, None) for text in TEXTS], [(0, ASKED, None)])
    hits = lane(folder).run(tables, Store())["hits"].sort("memory", descending=True)
    np.testing.assert_allclose(hits["score"].to_numpy(), expected, rtol=1e-4)
    assert hits["lane"].unique().to_list() == ["lexical:turn"]
    assert hits["rank"].to_list() == (np.argsort(np.argsort(-expected)) + 1).tolist()


@pytest.mark.slow
def test_a_question_asks_no_transformer_and_weighs_each_token_by_its_idf(folder: Path) -> None:
    from transformers import BertForMaskedLM

    encoder = SparseTermEncoder(path=str(folder), terms=16)
    (model,) = encoder._load("SparseEncoder")
    for module in model.modules():
        if isinstance(module, BertForMaskedLM):
            module.register_forward_pre_hook(lambda *_: pytest.fail("a question went through the transformer"))
    ((_, vectors),) = encoder.encode([ASKED], "query")
    vocabulary = model.tokenizer.get_vocab()
    numbers = {vocabulary[word] for word in ("what", "is", "the", "name", "of", "cat", "?")}
    weights = term_matrix(vectors).toarray()[0]
    assert {*np.flatnonzero(weights)} == numbers
    assert all(weights[number] == 1 + number % 7 for number in numbers)


@pytest.mark.slow
def test_later_memories_are_out_of_reach_and_vectors_are_stored(folder: Path, tmp_path: Path) -> None:
    tables = world([(0, TEXTS[0], day(1)), (0, TEXTS[1], day(9)), (1, TEXTS[1], day(1))],
                   [(0, ASKED, day(2)), (1, ASKED, day(2))])
    store = Store(tmp_path)
    hits = lane(folder).run(tables, store)["hits"]
    assert {(row["query"], row["memory"]) for row in hits.iter_rows(named=True)} <= {(10, 1003), (11, 1001)}
    assert store.made["vectors"] == 3  # two texts and one question
    lane(folder).run(tables, store)
    assert store.made["vectors"] == 3


def test_it_is_an_embedder_of_its_lane(tmp_path: Path) -> None:
    encoder = SparseTermEncoder(path="some/model")
    assert isinstance(encoder, Embedder)
    assert embedders_in(SparseSearch(encoder=encoder)) == [encoder]
