from __future__ import annotations

import io
import json
import sys
from datetime import datetime
from pathlib import Path

import pytest

from memlab.data.dataset import Dataset
from memlab.data.documents.dataset import Documents, read_documents
from memlab.experiment.config.instantiate import make_dataset
from memlab.support.errors import Faults, MemlabError

PLAN = "---\ntitle: Plan\ndate: 2023-05-20\n---\n# Shipping\n\nWe ship in May.\n\nAnn signs it off.\n"


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text a page, written by hand as the format wants it."""
    count = len(pages)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>",
               f"<< /Type /Pages /Kids [{' '.join(f'{4 + 2 * i} 0 R' for i in range(count))}] /Count {count} >>",
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for i, said in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({said}) Tj ET" if said else ""
        objects += [f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R "
                    "/Resources << /Font << /F1 3 0 R >> >> >>",
                    f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"]
    out, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF"
    return f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def locked(raw: bytes, password: str) -> bytes:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(raw))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def docx(write) -> bytes:
    library = pytest.importorskip("docx")
    document = library.Document()
    write(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.md").write_text(PLAN)
    (tmp_path / "log.txt").write_bytes(b"\xef\xbb\xbfOne.\r\n\r\nTwo.\r\n")
    (tmp_path / ".hidden").write_bytes(b"\xff")
    return tmp_path


def said(tables) -> list[tuple[int, int, str]]:
    texts = dict(tables["texts"].iter_rows())
    return [(s, t, texts[h]) for s, t, h in tables["turns"].select("session", "turn", "text_id").iter_rows()]


def test_documents_are_sessions_and_their_blocks_turns(folder):
    data = make_dataset("documents", path=str(folder))
    assert isinstance(data, Dataset)
    tables = data.load()
    assert said(tables) == [(0, 0, "One."), (0, 1, "Two."), (1, 0, "# Shipping\n\nWe ship in May."),
                            (1, 1, "Ann signs it off.")]
    assert tables["sessions"]["said_on"].to_list() == [None, datetime(2023, 5, 20)]
    assert tables["turns"]["speaker"].to_list() == ["log.txt"] * 2 + ["notes/plan.md"] * 2
    names = tables["ids"].filter(kind="turn")["name"].to_list()
    assert names[1:] == ["log.txt@8", "notes/plan.md@37", f"notes/plan.md@{PLAN.index('Ann')}"]
    assert tables["questions"].is_empty()
    assert data.name == f"documents-{folder.name}"
    assert data.grouping() == "question"
    before = data.identity()
    assert str(folder) not in str(before)
    (folder / "log.txt").write_text("Three.")
    assert data.identity() != before


def test_questions_are_read_as_in_custom_without_a_corpus(folder):
    lines = [{"question": "q1", "text": "When do we ship?", "asked_on": "2023-06-01", "answer": "in May",
              "evidence": [{"session": "notes/plan.md", "turn": 0}]},
             {"question": "q2", "text": "What is logged?", "evidence": [{"session": "log.txt"}], "category": "log"}]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    tables = Documents(path=folder).load()
    assert tables["evidence"].rows() == [(0, 1, 0), (1, 0, None)]
    assert tables["questions"]["asked_on"].to_list() == [datetime(2023, 6, 1), None]
    assert Documents(path=folder, types=["log"]).load()["questions"].height == 1
    (folder / "questions.jsonl").write_text("\n".join([
        json.dumps({**lines[0], "asked_on": "2023-05-01"}), json.dumps(lines[0]), "no json",
        json.dumps({"question": "q3", "text": "?", "evidence": [{"session": "plan.md"}]}),
        json.dumps({"question": "q4", "text": "?", "evidence": [{"session": "log.txt", "turn": 2}]})]))
    with pytest.raises(Faults) as caught:
        Documents(path=folder).load()
    after, twice, broken, unknown, beyond = caught.value.faults
    assert "line 1, field evidence[0].session: 'notes/plan.md' is of 2023-05-20, after" in after
    assert "line 2, field question: 'q1' was there before" in twice
    assert "line 3" in broken
    assert "there is no document 'plan.md'; did you mean 'notes/plan.md'?" in unknown
    assert "line 5, field evidence[0].turn: 'log.txt' has 2 blocks" in beyond


def test_a_pdf_gives_a_block_a_page(tmp_path):
    pytest.importorskip("pypdf")
    (tmp_path / "a.PDF").write_bytes(pdf("First page.", "", "Third page."))
    tables = Documents(path=tmp_path).load()
    assert said(tables) == [(0, 0, "First page."), (0, 1, "Third page.")]
    assert tables["ids"].filter(kind="turn")["name"].to_list() == ["a.PDF@page 1, 0", "a.PDF@page 3, 0"]
    assert "pypdf" in Documents(path=tmp_path).identity()["libraries"]
    (tmp_path / "b.pdf").write_bytes(locked(pdf("Open to all."), ""))  # encrypted, but no password is asked for
    assert said(Documents(path=tmp_path).load())[-1] == (1, 0, "Open to all.")


def test_a_word_document_gives_a_block_a_paragraph_or_table(tmp_path):
    def write(document):
        document.add_heading("Garden", 1)
        document.add_paragraph(" ")
        document.add_paragraph("Apples in autumn.")
        table = document.add_table(2, 2)
        for cell, text in zip(table._cells, ("tree", "year", "apple", "2021")):
            cell.text = text
        table.add_row().cells[0].merge(table.rows[-1].cells[1]).text = "end"
        document.add_heading("Last", 2)

    (tmp_path / "a.docx").write_bytes(docx(write))
    tables = Documents(path=tmp_path).load()
    assert said(tables) == [(0, 0, "Garden\nApples in autumn."), (0, 1, "tree | year\napple | 2021\nend"),
                            (0, 2, "Last")]
    assert tables["ids"].filter(kind="turn")["name"].to_list() == ["a.docx@1", "a.docx@4", "a.docx@5"]


def test_every_fault_is_told_at_once_with_its_file_and_its_mending(folder):
    pytest.importorskip("pypdf")
    bad = {"a.png": b"x", "empty.txt": b"", "blank.md": b" \n\n", "latin.txt": "café".encode("latin-1"),
           "wide.txt": "hello".encode("utf-16"), "null.txt": b"a\0b", "big.txt": b"x" * 200_000,
           "date.md": b"---\ndate: last May\n---\nx", "broken.json": b'{"a": ', "broken.pdf": b"%PDF-1.4\n%%EOF",
           "scan.pdf": pdf(""), "locked.pdf": locked(pdf("Secret."), "pw"), "broken.docx": b"PK\x03\x04",
           "noend": b"x", "bell\x07.txt": b""}
    for name, raw in bad.items():
        (folder / name).write_bytes(raw)
    with pytest.raises(Faults) as caught:
        Documents(path=folder, max_mb=0.1).load()
    told = dict(fault.split(": ", 1) for fault in caught.value.faults)
    assert set(told) == set(bad) - {"bell\x07.txt", "date.md"} | {"bell\\x07.txt", "date.md, its date"}
    for name, expected in {"a.png": "its ending '.png' is not known", "noend": "its ending '' is not known",
                           "empty.txt": "it is empty", "blank.md": "it is empty", "latin.txt": "byte 3 is not UTF-8",
                           "wide.txt": "it is UTF-16", "null.txt": "it holds null bytes",
                           "big.txt": "it has 0.2 MB, the limit is 0.1", "date.md, its date": "'last May' is no date",
                           "broken.json": "it is not JSON", "broken.pdf": "it is no PDF that can be read",
                           "scan.pdf": "there is no text in it", "locked.pdf": "a password protects it",
                           "broken.docx": "it is no Word document that can be read"}.items():
        assert told[name].startswith(expected)
        assert "Fix: " in told[name]


def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    monkeypatch.setitem(sys.modules, "docx", None)
    (tmp_path / "a.pdf").write_bytes(pdf("x"))
    (tmp_path / "b.docx").write_bytes(b"PK")
    with pytest.raises(Faults) as caught:
        Documents(path=tmp_path).load()
    assert [f"{n}: reading it needs {p}. Fix: pip install 'memlab[documents]'"
            for n, p in (("a.pdf", "pypdf"), ("b.docx", "python-docx"))] == caught.value.faults


def test_no_folder_and_an_empty_one_are_told(tmp_path):
    for path in (None, tmp_path / "none"):
        with pytest.raises(MemlabError, match="give a folder of documents"):
            Documents(path=path)
    with pytest.raises(Faults, match="there is no document in it"):
        Documents(path=tmp_path).load()


def test_days_of_documents_and_questions_are_those_of_the_zone(tmp_path: Path) -> None:
    dates = {"la": "2025-05-20T23:30:00-07:00", "tokyo": "2025-05-21T01:30:00+09:00", "day": "2025-05-20"}
    for name, date in dates.items():
        (tmp_path / f"{name}.md").write_text(f"---\ndate: {date}\n---\n{name}", "utf-8")
    question = {"question": "q1", "text": "Which?", "asked_on": "2025-05-20T23:59Z", "evidence": [{"session": "la.md"}]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question), "utf-8")
    with pytest.raises(Faults, match="'la.md' is of 2025-05-21, after the question"):
        Documents(path=tmp_path).load()
    tables = Documents(path=tmp_path, timezone="Asia/Tokyo").load()
    assert tables["sessions"]["said_on"].to_list()[2] == datetime(2025, 5, 21, 15, 30)
    assert tables["questions"]["asked_on"].to_list() == [datetime(2025, 5, 21, 8, 59)]


def test_a_link_out_of_the_folder_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("A secret.")
    (folder / "a.txt").write_text("Mine.")
    (folder / "b.txt").symlink_to(folder / "a.txt")
    (folder / "c.txt").symlink_to(tmp_path / "secret.txt")
    documents, faults = read_documents(folder, 1)
    assert [*documents] == ["a.txt", "b.txt"]
    assert faults == ["c.txt: it is a link to a file outside the folder. Fix: put a copy in its place"]
