"""Documents in a live memory: chunks with their places, found by fields, forgotten whole."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from memlab.memory.documents import session_of_document
from memlab.memory.memory import Memory, Session, Turn
from memlab.support.errors import MemlabError
from tests.data.documents.test_dataset import docx, pdf
from tests.small import lexical

PLAN = "---\ndate: 2023-05-20\n---\n# Plan\n\nWe ship the boat in May.\n\nThe harbour opens on a Monday.\n"


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_file_is_a_session_of_chunks_with_places(tmp_path: Path) -> None:
    session = session_of_document(written(tmp_path / "plan.md", PLAN), None)
    assert session == Session(date(2023, 5, 20), [
        Turn("user", "# Plan\n\nWe ship the boat in May.", "plan.md", 25),
        Turn("user", "The harbour opens on a Monday.", "plan.md", 59)], "plan.md", source="plan.md", kind="document")
    assert all(PLAN[turn.offset:].startswith(turn.text) for turn in session.turns if turn.offset is not None)


def test_each_kind_of_file_has_offsets_and_a_pdf_pages(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")

    def places(name: str, content: str | bytes) -> list[tuple[str, int | None, int | None]]:
        return [(turn.text, turn.offset, turn.page)
                for turn in session_of_document(written(tmp_path / name, content), None).turns]

    assert places("a.pdf", pdf("First page.", "", "Third page.")) == [("First page.", 0, 1), ("Third page.", 0, 3)]
    assert places("a.txt", "One.\n\n\nTwo.\n") == [("One.", 0, None), ("Two.", 7, None)]
    assert places("a.json", json.dumps({"pet": "cat", "age": 3})) == [("pet: cat", 0, None), ("age: 3", 10, None)]

    def write(document):
        document.add_heading("Garden", 1)
        document.add_paragraph("Apples.")
        document.add_paragraph("Pears.")

    assert places("a.docx", docx(write)) == [("Garden\nApples.", 0, None), ("Pears.", 16, None)]


def test_documents_are_found_by_fields_and_results_tell_the_chunk(tmp_path: Path) -> None:
    with Memory(tmp_path / "ann", lexical()) as memory:
        memory.add(Session("2023-05-01", [("user", "The boat is blue.")], user="ann"))
        number = memory.add_document(written(tmp_path / "plan.md", PLAN), user="ann", metadata={"project": "boat"})
        assert memory.add_document(tmp_path / "plan.md", user="ann", metadata={"project": "boat"}) == number
        for where in ({"kind": "document"}, {"source": "plan.md"}, {"metadata.project": "boat"}):
            found = memory.search("Which boat?", "2023-06-01", 10, where=where)
            assert set(found["session"]) == {number}
        rows = memory.search("harbour boat", "2023-06-01", 10).sort("session", "turns").rows(named=True)
        assert [row["chunk"] for row in rows] == [
            None, {"index": 0, "total": 2, "offset": 25, "page": None},
            {"index": 1, "total": 2, "offset": 59, "page": None}]
    with Memory(tmp_path / "ann", lexical()) as memory:  # as it is on the disk
        (row,) = memory.look("harbour", "2023-06-01", 1).results.rows(named=True)
        assert row["chunk"] == {"index": 1, "total": 2, "offset": 59, "page": None}
        assert memory.get("plan.md") == session_of_document(tmp_path / "plan.md", None, user="ann",
                                                            metadata={"project": "boat"})
        memory.forget("plan.md", [0])
        assert memory.search("harbour", "2023-06-01", 1)["chunk"].to_list() == [
            {"index": 0, "total": 1, "offset": 59, "page": None}]
        memory.forget("plan.md")
        assert memory.search("harbour", "2023-06-01", 10)["session"].to_list() == [0]
    assert not [path for path in (tmp_path / "ann").rglob("*") if path.is_file() and b"harbour" in path.read_bytes()]


def test_what_is_no_document_is_refused_in_a_sentence(tmp_path: Path) -> None:
    picture = written(tmp_path / "a.png", b"x")
    with Memory(tmp_path / "ann", lexical()) as memory:
        for options, problem in (
                ({"path": picture}, r"a\.png: its ending '\.png' is not known. Fix: make it one of \.md"),
                ({"path": tmp_path / "none.md"}, r"none\.md: there is no such file"),
                ({"path": tmp_path}, "a folder is there. Fix: give a file"),
                ({"path": written(tmp_path / "b.txt", "word " * 50_000), "max_mb": 0.1}, "it has 0.2 MB, the limit is"),
                ({"text": "word " * 50_000, "name": "b", "max_mb": 0.1}, "b: it has 0.2 MB, the limit is 0.1"),
                ({"text": "x"}, "a text has no name"),
                ({"path": picture, "text": "x"}, "both are given"),
                ({}, "none is given"),
                ({"path": written(tmp_path / "c.pdf", b"%PDF-1.4\n%%EOF")}, "it is no PDF that can be read")):
            with pytest.raises(MemlabError, match=problem):
                memory.add_document(**options)
        assert len(memory) == 0


def test_offsets_are_those_of_the_text_that_was_given() -> None:
    for text in ("one\r\n\r\ntwo cat\r\nand\r\n\r\nthree", "---\r\ndate: 2023-05-20\r\n---\r\none\r\n\r\ntwo",
                 "one\n\n  two", "\n\n\tone\r\rtwo", "one\n\r\n\rtwo"):
        for name in ("a.txt", "a.md"):
            turns = session_of_document(None, text, name=name).turns
            assert turns
            for turn in turns:
                first = turn.text.split()[0]
                assert text[turn.offset:].startswith(first), (text, turn)
