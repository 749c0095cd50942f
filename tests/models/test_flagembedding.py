"""FlagEmbedding's models behind memlab's protocols, against the formulas and against sentence-transformers.

Run here on tiny random models. The published weights (bge-m3, bge-reranker-v2-m3, v2-gemma), fp16 and several GPUs
need a hub or a GPU and are not run by these tests.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("FlagEmbedding", reason="FlagEmbedding is not installed (pip install 'memlab[flag]')")

import torch  # noqa: E402  (only where FlagEmbedding is)

from memlab.models.flagembedding import (  # noqa: E402
    FlagPairScorer,  # noqa: E402
    M3Embedder,
    M3Scorer,
    flag_embedding,  # noqa: E402
)
from memlab.models.protocols import Embedder, PairScorer  # noqa: E402
from memlab.pipeline.tables import texts_frame  # noqa: E402
from memlab.store import Store  # noqa: E402
from memlab.support.errors import MemlabError  # noqa: E402
from tests.models.flag_models import save_classifier, save_language_model, save_m3  # noqa: E402
from tests.models.scores import pair_scores  # noqa: E402

QUERIES = ["where did anna move", "was work good in oslo", "old dog"]
PASSAGES = ["anna moved to lisbon last spring", "bob stayed in oslo because work was good there", "his old dog",
            "and she stayed with bob"]
PAIRS = np.array([(q, p) for p in range(4) for q in range(3)])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for save in (save_classifier, save_m3, save_language_model):
        made[save.__name__] = tmp_path_factory.mktemp(save.__name__)
        save(made[save.__name__])
    return made


def hidden(folder: Path, text: str, max_length: int = 64) -> tuple[list[int], Any]:
    """Token ids and last hidden states (length, width) of one text, straight from transformers."""
    from transformers import AutoModel, AutoTokenizer

    ids = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=max_length)["input_ids"]
    with torch.inference_mode():
        return ids, AutoModel.from_pretrained(folder).eval()(torch.tensor([ids])).last_hidden_state[0]


def head(folder: Path, name: str, states: Any) -> Any:
    weights = torch.load(folder / name, weights_only=True)
    return states @ weights["weight"].T + weights["bias"]


def scores_of(scorer: PairScorer) -> np.ndarray:
    return pair_scores(scorer, QUERIES, PASSAGES, PAIRS)


def test_dense_is_the_first_token_at_unit_length(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = folders["save_m3"]
    model = M3Embedder(path=folder, max_length=64, batch=2)
    assert isinstance(model, Embedder)
    vectors = Store(tmp_path).vectors(model, texts_frame(PASSAGES), "document")
    first = np.stack([hidden(folder, text)[1][0].numpy() for text in PASSAGES])
    np.testing.assert_allclose(vectors, first / np.linalg.norm(first, axis=1, keepdims=True), atol=1e-5)


def test_truncated(folders: dict[str, Path]) -> None:
    length = len(hidden(folders["save_m3"], "old dog")[0])
    model = M3Embedder(path=folders["save_m3"], max_length=length)
    assert model.truncated(["old dog", "old dog " * 9], "document").tolist() == [False, True]


def test_sparse_sums_products_of_shared_tokens_weights(folders: dict[str, Path]) -> None:
    folder = folders["save_m3"]

    def weights(text: str) -> dict[int, float]:
        ids, states = hidden(folder, text)
        found: dict[int, float] = {}
        for token, weight in zip(ids, head(folder, "sparse_linear.pt", states)[:, 0].relu().tolist()):
            if token not in (0, 1, 2, 3):  # <s>, <pad>, </s>, <unk>
                found[token] = max(found.get(token, 0.0), weight)
        return found

    def expected(query: str, passage: str) -> float:
        one, other = weights(query), weights(passage)
        return sum(one[t] * other[t] for t in one.keys() & other.keys())

    want = [expected(QUERIES[q], PASSAGES[p]) for q, p in PAIRS]
    assert max(want) > 0
    np.testing.assert_allclose(scores_of(M3Scorer(path=folder, max_length=64, batch=2)), want, atol=1e-4)


def test_a_model_without_m3s_heads_is_refused(folders: dict[str, Path]) -> None:
    scorer = M3Scorer(path=folders["save_classifier"], max_length=64)
    with pytest.raises(MemlabError, match=r"no sparse_linear\.pt and no colbert_linear\.pt"):
        list(scorer.score(QUERIES, PASSAGES, PAIRS))


def test_the_encoder_reranker_equals_cross_encoders_logits(folders: dict[str, Path]) -> None:
    from sentence_transformers import CrossEncoder

    folder = folders["save_classifier"]
    reference = CrossEncoder(str(folder), max_length=64, device="cpu")
    want = reference.predict([(QUERIES[q], PASSAGES[p]) for q, p in PAIRS], activation_fn=torch.nn.Identity())
    assert np.ptp(want) > 0.1  # the tiny model does tell pairs apart
    got = scores_of(FlagPairScorer(path=folder, name="tiny", max_length=64, batch=3))
    np.testing.assert_allclose(got, want, atol=1e-4)


def test_the_language_model_reranker_is_the_logit_of_yes(folders: dict[str, Path]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = folders["save_language_model"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    prompt = ("Given a query A and a passage B, determine whether the passage contains an answer to the query by "
              "providing a prediction of either 'Yes' or 'No'.")

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    def expected(query: str, passage: str) -> float:
        end = ids("\n")
        line = [tokenizer.bos_token_id, *ids(f"A: {query}"), *end, *ids(f"B: {passage}"), *end, *ids(prompt)]
        with torch.inference_mode():
            return float(model(torch.tensor([line])).logits[0, -1, ids("Yes")[0]])

    got = scores_of(FlagPairScorer(path=folder, name="tiny", kind="llm", max_length=64, batch=3))
    np.testing.assert_allclose(got, [expected(QUERIES[q], PASSAGES[p]) for q, p in PAIRS], atol=1e-4)


def test_its_progress_bars_are_silent(folders: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    scores_of(FlagPairScorer(path=folders["save_language_model"], name="tiny", kind="llm", max_length=64, batch=2))
    assert "it/s" not in capfd.readouterr().err


def test_a_missing_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "FlagEmbedding", None)
    with pytest.raises(MemlabError, match=r"pip install 'memlab\[flag\]'"):
        flag_embedding()
