from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.documents.blocks import DocumentBlock, json_file, markdown, paragraphs, text
from memlab.support.errors import MemlabError


def test_markdown_keeps_code_whole_and_headings_with_what_follows():
    raw = b"Intro.\n# A\n## B\n\nUnder B.\n\n```\nx\n\ny\n```\ntail\n\n# C\n\nUnder C.\n\n# Last"
    assert [b.text for b in markdown(raw).blocks] == [
        "Intro.", "# A\n## B\n\nUnder B.", "```\nx\n\ny\n```\ntail", "# C\n\nUnder C.", "# Last"]
    assert [b.text for b in text(raw).blocks] == [
        "Intro.\n# A\n## B", "Under B.", "```\nx", "y\n```\ntail", "# C", "Under C.", "# Last"]


@pytest.mark.parametrize(("front", "said_on", "first"), [
    ("---\ndate: 2023-05-20T18:30+02:00\n---\n", datetime(2023, 5, 20, 16, 30, tzinfo=UTC), "Body."),
    ("---\ntags:\n  - a\nsaid_on: '2023-05-20'  # then\n...\n", date(2023, 5, 20), "Body."),
    ("---\ntitle: x\n---\n", None, "Body."),
    ("---\n# a comment\ntitle: x\n\n---\n", None, "Body."),
    ("---\n\n---\n", None, "Body."),
    ("---\nA sentence, then a rule.\n---\n", None, "---\nA sentence, then a rule.\n---\nBody."),
    ("---\n- Buy milk\n- Call Ann\n---\n", None, "---\n- Buy milk\n- Call Ann\n---\nBody."),
    ("", None, "Body."),
])
def test_front_matter_gives_the_date_and_is_no_text(front, said_on, first):
    document = markdown(f"{front}Body.\n".encode())
    assert document.said_on == said_on
    assert document.blocks[0].text == first


def test_keys_in_plain_text_are_front_matter_only_with_a_date():
    talk = b"---\nAnn: I come on Monday.\nBob: Fine.\n---\nBody."
    assert text(talk).blocks[0].text == talk.decode()
    dated = text(b"---\nauthor: Ann\ndate: 2023-05-20\n---\nBody.")
    assert (dated.said_on, dated.blocks[0].text) == (date(2023, 5, 20), "Body.")


def test_json_becomes_lines_under_their_paths():
    value = {"date": "2023-05-20", "pets": [{"name": "Tom", "age": 3, "owner": None}], "note": "Hi\nyou", "none": []}
    document = json_file(json.dumps(value).encode())
    assert document.said_on == date(2023, 5, 20)
    assert document.blocks == [DocumentBlock("date", "date: 2023-05-20", 0),
                               DocumentBlock("pets", "pets[0].name: Tom\npets[0].age: 3", 18),
                               DocumentBlock("note", "note: Hi\nyou", 52)]
    assert json_file(b'"alone"').blocks == [DocumentBlock("", "alone", 0)]
    assert json_file(b"[[1, [2]], true]").blocks == [DocumentBlock("[0]", "[0]: 1\n[1][0]: 2", 0),
                                                     DocumentBlock("[1]", "true", 18)]
    assert json_file(b'{"[2024] budget": 5000}').blocks[0].text == "[2024] budget: 5000"
    deep = b"[" * 100 + b"1" + b"]" * 100
    assert json_file(deep).blocks[0].text == "[0]" * 99 + ": 1"
    with pytest.raises(MemlabError, match="it is not JSON .*too deeply"):
        json_file(b"[" * 200_000)


@given(st.lists(st.sampled_from(["# Head\n", "```\n", "~~~~\n", "A line.\n", "\n", "two\n  three", "  \n", "\u2028"])),
       st.booleans())
def test_paragraphs_hold_every_letter_at_its_place(parts, marked):
    whole = "".join(parts)
    found = list(paragraphs(whole, markdown=marked))
    assert all(whole[at:].lstrip().startswith(said) and said for at, said in found)
    assert "".join("".join(said for _, said in found).split()) == "".join(whole.split())
    assert all(a + len(s) <= b for (a, s), (b, _) in zip(found, found[1:]))
