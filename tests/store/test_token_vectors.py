"""Token vectors in the store: encoded once, mapped, verified, pruned, and in five number formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memlab.pipeline.tables import texts_frame
from memlab.store import Store, segment
from memlab.store.token_vectors import Precision, make_block
from memlab.support.errors import MemlabError
from tests.token_words import DIM, TokenWords

TEXTS = ["the cat sat", "a dog ran home", "tea"]


@pytest.fixture(autouse=True)
def _none_asked() -> None:
    TokenWords.asked.clear()


def expected(text: str) -> np.ndarray:
    ((_, _, (matrix,)),) = TokenWords().token_vectors([text], "document")
    return matrix


def test_each_text_is_encoded_once_whatever_the_process(tmp_path: Path) -> None:
    texts = texts_frame(TEXTS)
    Store(tmp_path).token_vectors(TokenWords(), texts[:2], "document")
    store = Store(tmp_path)
    vectors = store.token_vectors(TokenWords(), texts, "document")
    assert sorted(TokenWords.asked) == sorted(TEXTS)
    assert (store.made["tokens"], store.found["tokens"]) == (1, 2)
    for i, text in enumerate(texts["text"]):
        ids, matrix = vectors.text(i)
        assert ids.tolist() == TokenWords().token_ids([text])[0].tolist()
        np.testing.assert_array_equal(matrix, expected(text))


@pytest.mark.parametrize("least", [0, 1 << 20])  # bytes from which on a segment is mapped
def test_what_is_read_cannot_be_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    monkeypatch.setattr(segment, "MAPPED", least)
    Store(tmp_path).token_vectors(TokenWords(), texts_frame(TEXTS), "document")
    (block,) = Store(tmp_path).token_vectors(TokenWords(), texts_frame(TEXTS), "document").blocks
    assert not block.vectors.flags.owndata
    assert not block.vectors.flags.writeable


@pytest.mark.parametrize(("precision", "error"), [("fp32", 0), ("fp16", 5e-4), ("int8", 0.5 / 127)])
def test_number_formats_are_stored_apart_with_known_error(tmp_path: Path, precision: str, error: float) -> None:
    texts = texts_frame(TEXTS)
    for _ in range(2):
        vectors = Store(tmp_path).token_vectors(TokenWords(), texts, "document", precision)  # type: ignore[arg-type]
        for i, text in enumerate(texts["text"]):
            assert np.abs(vectors.text(i)[1] - expected(text)).max() <= error + 1e-7
    Store(tmp_path).token_vectors(TokenWords(), texts, "query", precision)  # type: ignore[arg-type]
    assert len(list(tmp_path.glob("tokens/*"))) == 2


@pytest.mark.parametrize(("precision", "columns"), [("4bit", DIM // 2), ("2bit", DIM // 4)])
def test_codes_are_read_as_they_were_made(tmp_path: Path, precision: Precision, columns: int) -> None:
    texts = texts_frame(TEXTS)
    for _ in range(2):
        vectors = Store(tmp_path).token_vectors(TokenWords(), texts, "document", precision)
        for i, text in enumerate(texts["text"]):
            wanted = make_block(vectors.keys()[i : i + 1], [np.arange(len(text.split()))], [expected(text)], precision)
            np.testing.assert_allclose(vectors.text(i)[1], wanted.widen(slice(None)), atol=1e-6)
            assert wanted.vectors.shape[1] == columns
    assert vectors.blocks[0].dim == DIM


def test_vectors_that_are_not_finite_are_refused_and_others_kept(tmp_path: Path) -> None:
    class Broken(TokenWords):
        def token_vectors(self, texts, role):  # type: ignore[no-untyped-def]
            for at, ids, (matrix,) in super().token_vectors(texts, role):
                yield at, ids, [matrix * (np.nan if texts[int(at[0])] == "tea" else 1)]

    with pytest.raises(MemlabError, match="not finite for 'tea'"):
        Store(tmp_path).token_vectors(Broken(), texts_frame(TEXTS), "document")
    store = Store(tmp_path)
    store.token_vectors(TokenWords(), texts_frame(TEXTS), "document")
    assert 1 <= store.made["tokens"] < len(TEXTS)
