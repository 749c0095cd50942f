"""Tables: schemas hold at every boundary, digests follow content."""

from __future__ import annotations

import warnings
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import (
    SCHEMAS,
    Notes,
    Tables,
    add_texts,
    as_of,
    check,
    distinct_texts,
    empty,
    frame,
    text_hash,
    texts_frame,
    with_text,
)
from memlab.support.errors import MemlabError


def test_texts_are_stored_once_in_order_of_appearance() -> None:
    table = texts_frame(["b", "a", "b"])
    assert table["text"].to_list() == ["b", "a"]
    assert table["text_id"].to_list() == [text_hash("b"), text_hash("a")]


def test_few_rows_get_their_texts_of_many() -> None:
    texts = texts_frame(map(str, range(40)))
    rows = pl.DataFrame({"key_id": [text_hash("7"), None, text_hash("none"), text_hash("39"), text_hash("7")]})
    shown = with_text(rows, texts, "key_id", "key")
    assert shown.select("key_id").equals(rows)
    assert shown["key"].to_list() == ["7", None, None, "39", "7"]
    for some in ([0], [1], [2], [3, 4], [1, 3], [0, 3], [0, 4]):  # one or two ids, null, unknown or twice
        assert with_text(rows[some], texts, "key_id", "key")["key"].to_list() == shown[some]["key"].to_list()
    assert with_text(rows.clear(), texts, "key_id", "key").schema == {"key_id": pl.String, "key": pl.String}


@given(st.lists(st.text(max_size=3)), st.lists(st.text(max_size=3)))
def test_added_texts_are_found_by_their_ids_and_stored_once(old: list[str], new: list[str]) -> None:
    ids, texts = add_texts(texts_frame(old), new)
    assert with_text(ids.to_frame(), texts)["text"].to_list() == new
    assert texts.equals(texts_frame([*old, *new]))
    rows, at = distinct_texts(texts, ids)
    assert [rows["text"][i] for i in at.tolist()] == new
    assert set(rows["text"]) == set(new)


MOMENTS = st.none() | st.datetimes(datetime(2023, 5, 19), datetime(2023, 5, 22))


@given(st.lists(st.tuples(MOMENTS, MOMENTS)))
def test_nothing_of_a_later_day_is_known(pairs: list[tuple[datetime | None, datetime | None]]) -> None:
    rows = pl.DataFrame(pairs, schema={"said_on": pl.Datetime("us"), "asked_on": pl.Datetime("us")}, orient="row")
    known = [said is None or asked is None or said.date() <= asked.date() for said, asked in pairs]
    assert rows.select(as_of()).to_series().to_list() == known
    days = rows.select(end=pl.col("said_on").dt.date(), now=pl.col("asked_on").dt.date())
    assert days.select(as_of("end", "now")).to_series().to_list() == known
    for said, asked in pairs:
        one = pl.DataFrame({"end": [said]}, schema={"end": pl.Datetime("us")})
        assert one.select(as_of("end", pl.lit(asked, pl.Datetime("us")))).item() == (
            said is None or asked is None or said.date() <= asked.date())


def test_a_wrong_type_a_missing_and_an_unknown_column_are_all_named() -> None:
    table = pl.DataFrame({"text_id": [1], "colour": ["red"]})
    with pytest.raises(MemlabError) as error:
        check("texts", table)
    told = str(error.value)
    assert "text_id is Int64, expected String" in told
    assert "text is missing" in told
    assert "colour is not a column" in told


def test_only_ranking_takes_further_columns_and_only_floats() -> None:
    ranking = empty("ranking").with_columns(pl.lit(0.5).alias("dense:turn"))
    assert check("ranking", ranking) is ranking
    with pytest.raises(MemlabError, match="note is not a column"):
        check("ranking", empty("ranking").with_columns(pl.lit("x").alias("note")))


def test_frame_fills_missing_columns_with_nulls_of_the_right_type() -> None:
    table = frame("gold", {"question": [3], "answer": ["blue"]})
    assert dict(table.schema) == SCHEMAS["gold"]
    assert table.row(0) == (3, "blue", None, None, None, None)


def test_digest_follows_content_not_order_of_names_or_history() -> None:
    one = Tables(texts=texts_frame(["x"]), gold=empty("gold"))
    other = Tables(gold=empty("gold"), texts=empty("texts"))
    assert one.digest(["texts"]) != other.digest(["texts"])
    other = other.updated({"texts": texts_frame(["x"])})
    assert one.digest(["gold", "texts"]) == other.digest(["texts", "gold"])


def test_texts_are_known_by_their_ids() -> None:
    """The id of a text is a digest of it, so that the letters of a large memory are not read for each question."""
    ids = texts_frame(["a", "b"]).select("text_id")
    digests = {Tables(texts=ids.with_columns(text=pl.lit(text))).digest(["texts"]) for text in ("a", "b")}
    assert len(digests) == 1


def test_notes_are_counted_and_only_warnings_name_consequences() -> None:
    notes = Notes()
    with pytest.warns(UserWarning, match="1,000 of 2,000 replies were lost; those are none"):
        notes.warn(1000, 2000, "replies were lost; those are none")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notes.add(1, 4, "replies were lost; another consequence")
        notes.add(0, 9, "replies were found")
        notes.warn(0, 7, "replies were lost")
    assert notes.table().rows() == [("replies were lost", 1000, 2000), ("replies were lost", 1, 4)]
    assert dict(notes.table().schema) == SCHEMAS["notes"]


def test_tables_are_shown_by_size_and_no_name_is_markup() -> None:
    ranking = frame("ranking", {"question": [0], "unit": [0], "score": [1.0], "rank": [1], "selected": [True],
                                "<b>signal": [0.5]})
    tables = Tables(texts=texts_frame(["a", "b"]), ranking=ranking)
    assert repr(tables) == "<Tables, rows: texts 2, ranking 1>"
    assert repr(Tables()) == "<Tables: none>"
    page = tables._repr_html_()
    assert "<td>texts</td><td>2</td>" in page
    assert "&lt;b&gt;signal</td>" in page
