"""Files of HTTP, FlagEmbedding and newer models construct, with settings that their classes know, and load nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from memlab.models.protocols import Embedder, PairScorer

CONF = Path(__file__).parents[2] / "conf"
EMBEDDERS = ["openai", "voyage", "bge_m3_flag", "arctic_embed_s"]
SCORERS = ["http_rerank", "bge_reranker_v2_m3_flag", "bge_reranker_v2_gemma_flag", "bge_m3_sparse_flag",
           "bge_m3_colbert_flag", "ettin_reranker_17m", "ettin_reranker_32m", "ettin_reranker_150m"]


@pytest.mark.parametrize(("file", "protocol"), [*((f"embedder/{name}", Embedder) for name in EMBEDDERS),
                                                *((f"cross_encoder/{name}", PairScorer) for name in SCORERS)])
def test_a_configuration_constructs(file: str, protocol: type) -> None:
    config = OmegaConf.load(CONF / f"{file}.yaml")
    model = instantiate(config, _convert_="all")
    assert isinstance(model, protocol)
    assert set(config) - {"_target_"} <= {field.name for field in dataclasses.fields(model)}
