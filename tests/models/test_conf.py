"""HTTP, FlagEmbedding and newer models construct with settings that their classes know, and load nothing."""

from __future__ import annotations

import dataclasses

import pytest
from hydra.utils import instantiate

from memlab.experiment.config.instantiate import choice_settings
from memlab.models.protocols import Embedder, PairScorer

EMBEDDERS = ["openai", "text_embedding_3_small", "voyage", "bge_m3_flag", "arctic_embed_s", "e5_large_v2"]
SCORERS = ["http_rerank", "bge_reranker_v2_m3_flag", "bge_reranker_v2_gemma_flag", "bge_m3_sparse_flag",
           "ettin_reranker_17m", "ettin_reranker_32m", "ettin_reranker_150m"]


@pytest.mark.parametrize(("file", "protocol"), [*((f"embedder/{name}", Embedder) for name in EMBEDDERS),
                                                *((f"cross_encoder/{name}", PairScorer) for name in SCORERS)])
def test_a_configuration_constructs(file: str, protocol: type) -> None:
    config = choice_settings(file)
    model = instantiate(config, _convert_="all")
    assert isinstance(model, protocol)
    assert set(config) - {"_target_"} <= {field.name for field in dataclasses.fields(model)}


def test_text_embedding_3_small_has_its_own_1536_numbers() -> None:
    model = instantiate(choice_settings("embedder/text_embedding_3_small"), _convert_="all")
    assert (model.dim(), model.form, model.model) == (1536, "openai", "text-embedding-3-small")


def test_gemini_is_asked_for_1536_numbers_at_its_own_address() -> None:
    model = instantiate(choice_settings("embedder/gemini"), _convert_="all")
    assert (model.dim(), model.ask_dimensions, model.form, model.batch) == (1536, True, "openai", 100)
    assert model.url.startswith("https://generativelanguage.googleapis.com/")


def test_nomic_v2_has_its_prefixes_and_window() -> None:
    model = instantiate(choice_settings("embedder/nomic_v2"), _convert_="all")
    assert isinstance(model, Embedder)
    assert (model.max_length, model.query_prefix, model.document_prefix) == (512, "search_query: ", "search_document: ")
