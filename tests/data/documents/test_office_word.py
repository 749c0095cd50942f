"""Hostile Word documents, each read or refused in a process of its own that is measured; tables and headings."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from memlab.data.documents import office
from memlab.errors import MemlabError
from tests.memory_growth import outcome

library = pytest.importorskip("docx")

IMPORTS = "import docx\nfrom memlab.data.documents import dataset, office"
RUN = b"<w:r><w:t>a</w:t></w:r>"
CELL = b"<w:tc>%s<w:p><w:r><w:t>%s</w:t></w:r></w:p></w:tc>"


def package(body: bytes, styles: bytes = b"") -> bytes:
    """A Word document with this XML in its body, and these styles beside the usual ones."""
    usual, out = io.BytesIO(), io.BytesIO()
    library.Document().save(usual)
    with zipfile.ZipFile(usual) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "word/document.xml":
                content = content.replace(b"<w:body>", b"<w:body>" + body)
            if entry.filename == "word/styles.xml":
                content = content.replace(b"</w:styles>", styles + b"</w:styles>")
            packed.writestr(entry.filename, content)
    return out.getvalue()


def cell(text: bytes, *properties: bytes) -> bytes:
    inner = b"<w:tcPr>" + b"".join(properties) + b"</w:tcPr>" if properties else b""
    return CELL % (inner, text)


def span(columns: int) -> bytes:
    return b'<w:gridSpan w:val="%d"/>' % columns


def table(*rows: bytes) -> bytes:
    return b"<w:tbl>" + b"".join(b"<w:tr>" + row + b"</w:tr>" for row in rows) + b"</w:tbl>"


START, GOES_ON = b'<w:vMerge w:val="restart"/>', b"<w:vMerge/>"


@pytest.mark.slow
@pytest.mark.parametrize(("body", "expected"), [
    (table(cell(b"a", span(1_000_000_000)) + cell(b"b")), "read"),
    (table(*[cell(b"a", span(2_000_000))] * 50), "read"),
    (b"<w:p>" + RUN * 1_000_000 + b"</w:p>", "more than 500,000 XML elements"),
    ((b"<w:p>" + RUN + b"</w:p>") * 100_000, "read"),
    (table(cell(b"a", START), *[cell(b"", GOES_ON)] * 50_000), "read"),
    (table(cell(b"a" * 1_000_000, START), *[cell(b"", GOES_ON)] * 20_000), "a table has more than 10 MB of text"),
    (b"<w:p><w:r><w:t>" + b"a" * 60_000_000 + b"</w:t></w:r></w:p>", "it unpacks to 61 MB, the limit is 50"),
    (b"<w:p>" + (b"<w:r><w:t>" + b"a" * 6_000_000 + b"</w:t></w:r>") * 2 + b"</w:p>", "one text has more than 10 MB")],
    ids=["span", "spans", "runs", "paragraphs", "rows", "long rows", "unpacked", "one text"])
def test_hostile_documents_end_soon_and_need_little_memory(tmp_path: Path, body: bytes, expected: str) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(package(body))
    assert path.stat().st_size < 10_000_000
    assert expected in outcome(IMPORTS, "dataset.load(path, 20.0)", path)


@pytest.mark.slow
def test_many_styles_and_paragraphs_of_as_many_are_read_in_linear_time(tmp_path: Path) -> None:
    names = [b"s%d" % n for n in range(50_000)]
    path = tmp_path / "a.docx"
    path.write_bytes(package(
        b"".join(b'<w:p><w:pPr><w:pStyle w:val="%s"/></w:pPr>%s</w:p>' % (name, RUN) for name in names),
        b"".join(b'<w:style w:type="paragraph" w:styleId="%s"><w:name w:val="%s"/></w:style>' % (name, name)
                 for name in names)))
    assert outcome(IMPORTS, "dataset.load(path, 20.0)", path) == "read"


def test_a_merged_cell_stands_once_in_each_of_its_rows() -> None:
    body = table(cell(b"a", span(2), START) + cell(b"b"), cell(b"hidden", span(2), GOES_ON) + cell(b"c"),
                 cell(b"d") + cell(b"e") + cell(b"f", GOES_ON), cell(b"g", span(3)))
    (block,) = office.docx(package(body)).blocks
    assert block.text == "a | b\na | c\nd | e | c\ng"
    (merged,) = library.Document(io.BytesIO(package(body))).tables
    rows = [list({id(c._tc): c.text for c in row.cells}.values()) for row in merged.rows]
    assert block.text == "\n".join(map(" | ".join, rows))  # as python-docx unfolds it


@pytest.mark.parametrize(("paragraph", "expected"), [
    (RUN + b'<w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink>', "alink"),
    (b"<w:r><w:t>a</w:t><w:tab/><w:br/><w:t>b</w:t><w:br w:type='page'/><w:noBreakHyphen/><w:cr/><w:t>c</w:t></w:r>",
     "a\t\nb-\nc"),
    (RUN + b"<w:ins><w:r><w:t>+</w:t></w:r></w:ins><w:del><w:r><w:delText>-</w:delText></w:r></w:del>", "a+"),
    (b"<w:moveFrom>" + RUN + b"</w:moveFrom><w:moveTo><w:r><w:t>b</w:t></w:r></w:moveTo>", "b"),
    (b"<w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>" + RUN, "a"),
    (b"<w:sdt><w:sdtPr><w:text/></w:sdtPr><w:sdtContent>" + RUN + b"</w:sdtContent></w:sdt>", "a"),
    (b'<w:fldSimple w:instr="DATE">' + RUN + b"</w:fldSimple><w:r><w:instrText>PAGE</w:instrText></w:r>", "a"),
    (b"<w:r><w:ruby><w:rt><w:r><w:t>kana</w:t></w:r></w:rt><w:rubyBase>" + RUN + b"</w:rubyBase></w:ruby></w:r>", "a"),
    (b"<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>" + RUN, "a"),
    (b'<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>x=2</m:t></m:r></m:oMath>',
     "x=2")],
    ids=["link", "signs", "tracked", "moved", "tabs", "form field", "field", "ruby", "text box", "formula"])
def test_a_paragraph_has_the_text_that_word_shows(paragraph: bytes, expected: str) -> None:
    (block,) = office.docx(package(b"<w:p>" + paragraph + b"</w:p>")).blocks
    assert block.text == expected


def test_content_controls_and_tables_in_tables_are_read() -> None:
    control = b"<w:sdt><w:sdtContent>%s</w:sdtContent></w:sdt>"
    inner = table(cell(b"x") + cell(b"y"), cell(b"z"))
    outer = b"<w:tc><w:p><w:r><w:t>before</w:t></w:r></w:p>" + inner + b"<w:p/></w:tc>"
    rows = b"<w:tbl>" + control % (b"<w:tr>" + control % cell(b"a") + outer + b"</w:tr>") + b"</w:tbl>"
    body = control % (b"<w:p>" + RUN + b"</w:p>") + control % (control % rows)
    assert [block.text for block in office.docx(package(body)).blocks] == ["a", "a | before\nx | y\nz"]


def test_headings_are_those_of_python_docx() -> None:
    styles = b"".join(b'<w:style w:type="%s" w:styleId="%s"><w:name w:val="%s"/></w:style>' % row for row in [
        (b"paragraph", b"one", b"heading 1"), (b"character", b"two", b"heading 2"), (b"paragraph", b"one", b"plain")])
    body = b"".join(b'<w:p><w:pPr><w:pStyle w:val="%s"/></w:pPr>%s</w:p>' % (name, RUN)
                    for name in (b"one", b"two", b"Heading2", b"Title", b"absent")) + b"<w:p>" + RUN + b"</w:p>"
    document = library.Document(io.BytesIO(package(body, styles)))
    is_heading = office._headings(document.styles, library.enum.style.WD_STYLE_TYPE.PARAGRAPH)
    found = [is_heading(paragraph._p) for paragraph in document.paragraphs]
    assert found == [paragraph.style.name.startswith("Heading") for paragraph in document.paragraphs]
    assert found[:4] == [True, False, True, False]


def test_the_size_is_that_of_the_parts_not_of_the_package() -> None:
    raw = package(b"<w:p>" + RUN * 10_000 + b"</w:p>")
    office.check_word(raw, 10_000_000)
    with pytest.raises(MemlabError, match=r"it unpacks to 1 MB, the limit is 0\. Fix: take the pictures out"):
        office.check_word(raw, 100_000)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp037"])
def test_elements_are_counted_whatever_the_name_and_encoding_of_a_part(encoding: str) -> None:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.bin", ("<?xml version='1.0'?><d>" + "<p/>" * 500_001).encode(encoding))
    with pytest.raises(MemlabError, match="more than 500,000 XML elements"):
        office.check_word(raw.getvalue(), 1 << 30)


def test_a_picture_has_no_elements() -> None:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/media/image1.png", b"\x89PNG" + b"<" * 600_000)
    office.check_word(raw.getvalue(), 1 << 30)
