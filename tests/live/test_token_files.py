"""Mapped token vectors: what is added is found, alone and again; free rows are used again and hold nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.live.token_files import IDS, VECTORS, TokenFiles, clear_free_tokens, forget_other_tokens
from memlab.search.placed_tokens import PlacedTokens
from memlab.store.token_vectors import Precision, TokenBlock, TokenVectors, make_block

DIM = 8


def block(texts: Sequence[tuple[int, int]], precision: Precision = "int8") -> TokenBlock:
    """A block of texts (key, tokens), whose vectors depend on the key alone."""
    draws = [np.random.default_rng(key).standard_normal((tokens, DIM)) for key, tokens in texts]
    return make_block(np.array([[key, key + 1] for key, _ in texts], np.uint64),
                      [np.arange(tokens) + key for key, tokens in texts],
                      [(rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32) for rows in draws],
                      precision)


def mapped(database: Database, precision: Precision = "int8") -> TokenFiles:
    return TokenFiles(database, database.folder / "store/tokens/model", precision)


def key_of(number: int) -> bytes:
    return np.array([number, number + 1], np.uint64).tobytes()


def texts_of(tokens: TokenFiles) -> dict[bytes, tuple[list[int], bytes]]:
    """The ids and vectors of each text, as a search reads them."""
    mapped_block = tokens.block()
    if mapped_block is None:
        return {}
    rows = np.flatnonzero(mapped_block.keys.any(axis=1))
    lengths = np.diff(mapped_block.starts)[rows]
    found = TokenVectors([mapped_block], np.zeros(len(rows), np.int64), mapped_block.starts[:-1][rows], lengths)
    assert (found.keys() == mapped_block.keys[rows]).all()
    return {mapped_block.keys[row].tobytes(): (ids.tolist(), vectors.tobytes())
            for row, (ids, vectors) in zip(rows, map(found.text, range(len(rows))))}


def expected(texts: Sequence[tuple[int, int]], precision: Precision = "int8") -> dict[bytes, tuple[list[int], bytes]]:
    whole = block(texts, precision)
    found = TokenVectors([whole], np.zeros(len(texts), np.int64), whole.starts[:-1], np.diff(whole.starts))
    return {key_of(key): (ids.tolist(), vectors.tobytes())
            for (key, _), (ids, vectors) in zip(texts, map(found.text, range(len(texts))))}


def forget(database: Database, tokens: TokenFiles, kept: Sequence[int]) -> None:
    keys = {key_of(key) for key in kept}
    with database.transaction():
        forget_other_tokens(database, keys)
    tokens.forget_other_keys(keys)
    clear_free_tokens(database, tokens.folder.parent)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "4bit", "2bit"])
def test_each_number_format_is_read_again(database: Database, precision: Precision) -> None:
    texts = [(5, 3), (6, 1), (7, 4)]
    tokens = mapped(database, precision)
    assert tokens.block() is None
    tokens.add(block(texts[:2], precision), "{}")
    tokens.add(block(texts[2:], precision), "{}")
    assert texts_of(tokens) == texts_of(mapped(database, precision)) == expected(texts, precision)


def test_two_fingerprints_have_their_own_files(database: Database) -> None:
    one = mapped(database)
    other = TokenFiles(database, database.folder / "store/tokens/other", "fp32")
    one.add(block([(5, 3)]), "{}")
    other.add(block([(5, 2), (6, 2)], "fp32"), "{}")
    forget(database, one, [5])
    assert texts_of(mapped(database)) == expected([(5, 3)])
    again = TokenFiles(database, other.folder, "fp32")
    assert texts_of(again) == expected([(5, 2)], "fp32")


def test_short_texts_take_small_gaps(database: Database) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3), (3, 2), (4, 4), (5, 1)]), "{}")
    forget(database, tokens, [1, 3, 5])  # free: three rows from 2 on, four from 7 on
    tokens.add(block([(6, 4), (7, 2), (8, 1), (9, 5)]), "{}")
    rows = database.rows("SELECT key, first, tokens FROM token_texts ORDER BY first")
    assert [(np.frombuffer(key, np.uint64)[0], first, count) for key, first, count in rows] == [  # type: ignore[call-overload]
        (1, 0, 2), (8, 2, 1), (7, 3, 2), (3, 5, 2), (6, 7, 4), (5, 11, 1), (9, 12, 5)]
    assert texts_of(mapped(database)) == expected([(1, 2), (3, 2), (5, 1), (6, 4), (7, 2), (8, 1), (9, 5)])


def test_forgotten_rows_are_zeros_or_cut_off(database: Database) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3), (3, 2), (4, 4)]), "{}")
    forget(database, tokens, [1, 3])
    vectors = np.fromfile(tokens.folder / VECTORS, np.int8).reshape(-1, DIM)
    heads = np.fromfile(tokens.folder / IDS, "<i8")
    assert len(vectors) == len(heads) == 7
    assert vectors.any(axis=1).tolist() == (heads > 0).tolist() == [True, True, False, False, False, True, True]
    forget(database, tokens, [])
    assert [path.stat().st_size for path in (tokens.folder / VECTORS, tokens.folder / IDS)] == [0, 0]
    assert texts_of(mapped(database)) == {}


def test_rows_of_a_killed_process_are_overwritten(database: Database) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3)]), "{}")
    whole = (tokens.folder / VECTORS).read_bytes()
    with (tokens.folder / VECTORS).open("ab") as file:
        file.write(b"left" * DIM)
    clear_free_tokens(database, tokens.folder.parent)
    assert (tokens.folder / VECTORS).read_bytes() == whole
    with database.transaction():  # it was killed between the commit and the overwriting
        database.run("DELETE FROM token_texts WHERE first = ?", (0,))
    clear_free_tokens(database, tokens.folder.parent)
    assert (tokens.folder / VECTORS).read_bytes() == bytes(2 * DIM) + whole[2 * DIM:]


@pytest.mark.parametrize("name", [IDS, VECTORS])
@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_text_whose_bytes_changed_is_free(database: Database, name: str, damage: str) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3)]), "{}")
    path = tokens.folder / name
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + (bytes([raw[-1] ^ 1]) if damage == "flipped" else b""))
    if damage == "gone":
        path.unlink()
        with pytest.warns(UserWarning, match="token vectors are computed again"):
            again = mapped(database)
        assert texts_of(again) == {}
    else:
        again = mapped(database)
        assert texts_of(again) == expected([(1, 2)])
    again.add(block([(2, 3)]), "{}")
    assert texts_of(again) == texts_of(mapped(database)) == expected([(1, 2), (2, 3)] if damage != "gone" else [(2, 3)])


def test_files_that_cannot_be_read_this_time_are_kept(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2)]), "{}")
    with monkeypatch.context() as patch:
        def fail(*_: object) -> bytes:
            raise OSError(5, "Input/output error")
        patch.setattr(os, "pread", fail)
        with pytest.raises(MemlabError, match="cannot be read: Input/output error"):
            mapped(database)
    assert texts_of(mapped(database)) == expected([(1, 2)])


def test_an_addition_that_failed_costs_no_later_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemlabError("the disk is full")

    tokens = mapped(database)
    with monkeypatch.context() as patch:
        patch.setattr(database, "_check_files", fail)  # just before the commit
        with pytest.raises(MemlabError, match="disk is full"):
            tokens.add(block([(1, 2)]), "{}")
    assert texts_of(tokens) == {}
    tokens.add(block([(2, 3)]), "{}")
    assert texts_of(tokens) == texts_of(mapped(database)) == expected([(2, 3)])


def test_a_text_that_is_added_again_is_there_once(database: Database) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3)]), "{}")
    tokens.add(block([(1, 2), (3, 1)]), "{}")
    for kept in ([1, 2, 3], [1, 3], [1]):  # rows of the first copy are overwritten
        forget(database, tokens, kept)
        assert texts_of(tokens) == texts_of(mapped(database)) == expected(
            [text for text in [(1, 2), (2, 3), (3, 1)] if text[0] in kept])


@pytest.mark.parametrize("change", ["deleted", "replaced", "cut"])
@pytest.mark.parametrize("name", [IDS, VECTORS])
def test_files_that_change_while_they_are_open_are_named(database: Database, name: str, change: str) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3)]), "{}")
    assert tokens.block() is not None
    tokens.check_files()
    path = tokens.folder / name
    whole = path.read_bytes()
    if change == "cut":
        os.truncate(path, len(whole) - 1)
    else:
        path.rename(path.with_name("aside"))
        if change == "replaced":
            path.write_bytes(whole)
    for use in (tokens.check_files, lambda: tokens.add(block([(3, 1)]), "{}")):
        with pytest.raises(MemlabError, match=f"{name} was deleted, replaced or cut while the memory was open"):
            use()
    if change == "cut":
        with pytest.raises(MemlabError, match="it was cut"):
            tokens.block()


def test_a_key_that_became_a_word_is_forgotten_too(database: Database) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3)]), "{}")
    with database.transaction():
        database.run("UPDATE token_texts SET key = CAST(key AS TEXT) WHERE first = ?", (2,))
    forget(database, tokens, [1])
    assert (tokens.folder / VECTORS).stat().st_size == 2 * DIM
    with database.transaction():
        database.run("UPDATE token_texts SET key = CAST(key AS TEXT)", ())
    assert texts_of(mapped(database)) == {}
    assert database.rows("SELECT key FROM token_texts") == []


def test_texts_that_claim_all_rows_are_not_all_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = mapped(database)
    tokens.add(block([(key, 2) for key in range(1, 101)]), "{}")
    with database.transaction():
        database.run("UPDATE token_texts SET tokens = 200 - first", ())
    sizes: list[int] = []
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: (sizes.append(size), read(file, size, at))[1])
    assert texts_of(mapped(database)) == expected([(100, 2)])
    assert sum(sizes) <= 2 * 200 * (DIM + 8) + 200 * (DIM + 8)  # and once to overwrite what is free


def test_of_texts_that_claim_the_same_rows_the_others_are_free(database: Database) -> None:
    tokens = mapped(database)
    tokens.add(block([(1, 2), (2, 3)]), "{}")
    ids, vectors = ((tokens.folder / name).read_bytes() for name in (IDS, VECTORS))
    digest = hashlib.blake2b(key_of(9) + ids[8:32] + vectors[DIM : 4 * DIM], digest_size=8).digest()
    with database.transaction():  # a forger knows how digests are made
        database.run("INSERT INTO token_texts SELECT file, ?, 1, 3, ? FROM token_texts WHERE first = 0",
                     (key_of(9), digest))
    assert texts_of(mapped(database)) == expected([(1, 2), (2, 3)])
    assert len(database.rows("SELECT key FROM token_texts")) == 2


def test_pages_leave_the_process_after_each_piece_and_are_read_again(database: Database) -> None:
    tokens = mapped(database)
    tokens.add(block([(key, 40_000) for key in range(40)]), "{}")
    whole = tokens.block()
    assert whole is not None
    content, counted = whole.vectors * whole.scales[:, None], Path("/proc/self/smaps").exists()
    whole.release()
    every = TokenVectors([whole], np.zeros(40, np.int64), whole.starts[:-1], np.diff(whole.starts))
    for _ in range(2):
        for rows, _, vectors in every.pieces(20_000):
            np.testing.assert_array_equal(vectors, content[whole.starts[rows[0]]:whole.starts[rows[-1] + 1]])
            assert not counted or resident(tokens.folder / VECTORS) < 6000  # of 12,500 kB
        assert not counted or resident(tokens.folder / VECTORS) == resident(tokens.folder / IDS) == 0
    assert len(every.ids()[0]) == len(content)
    unfinished = every.pieces(20_000)
    next(unfinished)
    unfinished.close()
    assert not counted or resident(tokens.folder / VECTORS) == resident(tokens.folder / IDS) == 0
    placed = PlacedTokens(every).pieces(20_000)
    _, _, stored, at = next(placed)
    assert stored.take(at).vectors.any()
    placed.close()
    assert not counted or resident(tokens.folder / VECTORS) == resident(tokens.folder / IDS) == 0


def resident(path: Path) -> int:
    """Kilobytes of a mapped file in the memory of this process."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if line.endswith(str(path))]
    assert starts
    return sum(int(next(line for line in lines[start:] if line.startswith("Rss:")).split()[1]) for start in starts)


ADDITION = st.lists(st.integers(1, 6), min_size=1, max_size=5)
"""Tokens of each new text."""

FORGETTING = st.sets(st.integers(1, 40)).map(frozenset)
"""Keys of texts that stay."""


@given(steps=st.lists(ADDITION | FORGETTING | st.none(), max_size=12))  # None: the memory is loaded
def test_any_order_of_additions_and_forgetting(steps: list[list[int] | frozenset[int] | None],
                                               tmp_path_factory: pytest.TempPathFactory) -> None:
    database = Database(tmp_path_factory.mktemp("memory"))
    database.open()
    tokens, texts, following = mapped(database), dict[int, int](), 1
    for step in steps:
        if step is None:
            tokens = mapped(database)
        elif isinstance(step, frozenset):
            texts = {key: length for key, length in texts.items() if key in step}
            forget(database, tokens, list(texts))
        else:
            new = dict(enumerate(step, following))
            following += len(step)
            tokens.add(block(list(new.items())), "{}")
            texts |= new
        assert texts_of(tokens) == (expected(list(texts.items())) if texts else {})
        if (tokens.folder / VECTORS).exists():
            rows = np.fromfile(tokens.folder / VECTORS, np.int8).reshape(-1, DIM)
            assert np.count_nonzero(rows.any(axis=1)) == sum(texts.values())
    database.close()
