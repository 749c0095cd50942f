"""ColBERT models as Stanford's code and PyLate save them, and bge-m3's layer of token vectors, recomputed by hand."""

from __future__ import annotations

import json
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.commands.train import main as train_main
from memlab.models.local.backend import read_head
from memlab.models.local.base import M3_HEAD, files_digest, projected_width
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import ColbertEmbedder, ColbertEncoder, LateInteraction
from memlab.models.local.loading import load_on_devices
from memlab.support.errors import MemlabError
from tests.learn.small_models import save_bert
from tests.models.scores import pair_scores

pytestmark = pytest.mark.slow

QUERIES = ["where did Anna move?", "dog"]
PASSAGES = ["Anna moved to Lisbon.", "Bob stayed in Oslo, with his dog!", "a dog"]
WIDTH, LENGTH = 12, 16  # numbers of a token, and tokens of an expanded question


def stanford(folder: Path) -> tuple[Any, list[Any]]:
    """Save what Stanford's code does, as answerai-colbert-small-v1; return the transformer and its projections."""
    import torch
    from safetensors.torch import load_file, save_file

    model, linear = save_bert(folder), torch.randn(WIDTH, 32)
    save_file({**load_file(folder / "model.safetensors"), "linear.weight": linear}, folder / "model.safetensors",
              {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    (folder / "artifact.metadata").write_text(json.dumps({
        "query_maxlen": LENGTH, "doc_maxlen": 64, "dim": WIDTH, "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]", "attend_to_mask_tokens": False, "mask_punctuation": True}))
    return model, [linear]


def pylate(folder: Path) -> tuple[Any, list[Any]]:
    """Save what PyLate does, without expansion and with two projections, as mxbai-edge-colbert-v0."""
    import torch
    from safetensors.torch import save_file

    model, projections = save_bert(folder), [torch.randn(48, 32), torch.randn(WIDTH, 48)]
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for number, weight in enumerate(projections, start=1):
        path = folder / f"{number}_Dense"
        path.mkdir()
        (path / "config.json").write_text(json.dumps({
            "in_features": weight.shape[1], "out_features": weight.shape[0], "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity"}))
        save_file({"linear.weight": weight}, path / "model.safetensors")
        modules.append({"idx": number, "name": str(number), "path": path.name, "type": "pylate.models.Dense.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": False}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({
        "model_type": "ColBERT", "query_prefix": "[unused0] ", "document_prefix": "[unused1] ", "query_length": 32,
        "document_length": 64, "attend_to_expansion_tokens": False, "do_query_expansion": False,
        "skiplist_words": list(string.punctuation)}))
    return model, projections


def by_hand(model: Any, projections: list[Any], tokenizer: Any, text: str, role: str, expand: bool
            ) -> tuple[list[str], np.ndarray]:
    """The tokens of a text that count, and their unit vectors."""
    import torch

    tokens = ["[CLS]", "[unused0]" if role == "query" else "[unused1]", *tokenizer.tokenize(text), "[SEP]"]
    real = len(tokens)
    if role == "query" and expand:
        tokens += ["[MASK]"] * (LENGTH - real)
    mask = torch.tensor([[1] * real + [0] * (len(tokens) - real)])
    with torch.inference_mode():
        vectors = model(input_ids=torch.tensor([tokenizer.convert_tokens_to_ids(tokens)]), attention_mask=mask)[0][0]
        for weight in projections:
            vectors = vectors @ weight.T
        vectors = torch.nn.functional.normalize(vectors, dim=1).numpy()
    counts = [role == "query" or token not in string.punctuation for token in tokens]
    return [token for token, one in zip(tokens, counts) if one], vectors[counts]


@pytest.mark.parametrize(("save", "expand"), [(stanford, True), (pylate, False)])
def test_prefixes_projections_and_maxsim_are_those_of_the_models_files(
        save: Callable[[Path], tuple[Any, list[Any]]], expand: bool, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    model, projections = save(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    encoder = ColbertEmbedder(path=tmp_path, name="tiny")
    matcher = LateInteraction(embedder=encoder)
    assert encoder.token_width() == WIDTH
    expected = {}
    for role, texts in (("query", QUERIES), ("document", PASSAGES)):
        for at, ids, matrices in matcher.token_vectors(texts, role):  # type: ignore[arg-type]
            for i, found, matrix in zip(at, ids, matrices):
                tokens, vectors = expected[role, i] = by_hand(model, projections, tokenizer, texts[i], role, expand)
                np.testing.assert_allclose(matrix, vectors, atol=1e-5)
                outside = {"[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"}
                assert found.tolist() == tokenizer.convert_tokens_to_ids(
                    ["[PAD]" if token in outside else token for token in tokens])
    pairs = np.array([(q, p) for q in range(len(QUERIES)) for p in range(len(PASSAGES))])
    np.testing.assert_allclose(pair_scores(matcher, QUERIES, PASSAGES, pairs), [
        (expected["query", q][1] @ expected["document", p][1].T).max(axis=1).mean() for q, p in pairs], atol=1e-5)


def test_a_model_of_the_other_kind_is_refused(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    colbert = tmp_path / "colbert"
    colbert.mkdir()
    stanford(colbert)
    assert projected_width(base) is None
    with pytest.raises(MemlabError, match=r"(?s)is a ColBERT model.*embedder=answerai_colbert"):
        SentenceEmbedder(path=colbert, name="wrong")
    with pytest.raises(MemlabError, match=r"(?s)is no ColBERT model.*embedder=minilm"):
        ColbertEncoder(path=base)
    assert train_main(["encoder", f"base={colbert}", f"out_model={tmp_path / 'm'}", "data.path=/nowhere"]) in (1, 2)
    assert "an update holds changes of the transformer alone" in capsys.readouterr().err


def test_token_vectors_go_through_the_layer_beside_the_model(base: Path, tiny: SentenceEmbedder, tmp_path: Path
                                                             ) -> None:
    import torch

    copy = tmp_path / "copy"
    shutil.copytree(base, copy)
    torch.manual_seed(1)
    layer = torch.nn.Linear(32, WIDTH)
    torch.save(layer.state_dict(), copy / M3_HEAD)
    headed = SentenceEmbedder(path=copy, name="headed")
    (_, _, (after,)), = LateInteraction(embedder=headed).token_vectors(PASSAGES[:1], "document")
    encoded = headed._encoders()[0]
    inputs = encoded.tokenizer(PASSAGES[:1], return_tensors="pt")
    with torch.inference_mode():
        hidden = encoded._forward(inputs["input_ids"].numpy(), inputs["attention_mask"].numpy())["token_embeddings"]
        expected = torch.nn.functional.normalize(layer(hidden[0]), dim=1).numpy()
    np.testing.assert_allclose(after, expected[1:-2], atol=1e-5)  # without [CLS], the full stop and [SEP]
    assert headed.identity() != tiny.identity()
    (_, sentence), (_, plain) = (next(model.encode(PASSAGES[:1], "document")) for model in (headed, tiny))
    np.testing.assert_allclose(sentence, plain, atol=1e-6)
    torch.save(torch.nn.Linear(31, WIDTH).state_dict(), copy / M3_HEAD)
    files_digest.cache_clear()  # a process takes a folder's files to stay as they are
    load_on_devices.cache_clear()
    with pytest.raises(MemlabError, match="takes 31 numbers a token, and this model gives 32"):
        list(LateInteraction(embedder=SentenceEmbedder(path=copy, name="narrow")).token_vectors(["a"], "document"))
    for content, message in ((b"damaged", "is no linear layer of token vectors"), (None, "the shapes")):
        torch.save({"weight": layer.weight, "bias": torch.zeros(3)}, copy / M3_HEAD)
        if content:
            (copy / M3_HEAD).write_bytes(content)
        with pytest.raises(MemlabError, match=message):
            read_head(copy / M3_HEAD)
