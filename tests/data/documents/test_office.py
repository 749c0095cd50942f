"""Word documents as python-docx opens them: what a paragraph, a table and a heading give."""

from __future__ import annotations

import io
import zipfile

import pytest

from memlab.data.documents import office
from memlab.support.errors import MemlabError

library = pytest.importorskip("docx")

RUN = b"<w:r><w:t>a</w:t></w:r>"
START, GOES_ON = b'<w:vMerge w:val="restart"/>', b"<w:vMerge/>"


def package(body: bytes) -> bytes:
    """A Word document with this XML in its body."""
    usual, out = io.BytesIO(), io.BytesIO()
    library.Document().save(usual)
    with zipfile.ZipFile(usual) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "word/document.xml":
                content = content.replace(b"<w:body>", b"<w:body>" + body)
            packed.writestr(entry.filename, content)
    return out.getvalue()


def texts(body: bytes) -> list[str]:
    return [block.text for block in office.docx(package(body)).blocks]


def cell(text: bytes, *properties: bytes) -> bytes:
    inner = b"<w:tcPr>" + b"".join(properties) + b"</w:tcPr>" if properties else b""
    return b"<w:tc>%s<w:p><w:r><w:t>%s</w:t></w:r></w:p></w:tc>" % (inner, text)


def span(columns: int) -> bytes:
    return b'<w:gridSpan w:val="%d"/>' % columns


def table(*rows: bytes) -> bytes:
    return b"<w:tbl>" + b"".join(b"<w:tr>" + row + b"</w:tr>" for row in rows) + b"</w:tbl>"


def test_a_merged_cell_stands_once_in_each_of_its_rows() -> None:
    body = table(cell(b"a", span(2), START) + cell(b"b"), cell(b"hidden", span(2), GOES_ON) + cell(b"c"),
                 cell(b"d") + cell(b"e") + cell(b"f", GOES_ON), cell(b"g", span(3)))
    assert texts(body) == ["a | b\na | c\nd | e | c\ng"]


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
    (b"<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>" + RUN, "a")],
    ids=["link", "signs", "tracked", "moved", "tabs", "form field", "field", "ruby", "text box"])
def test_a_paragraph_has_the_text_that_word_shows(paragraph: bytes, expected: str) -> None:
    assert texts(b"<w:p>" + paragraph + b"</w:p>") == [expected]


def test_content_controls_and_tables_in_tables_are_read() -> None:
    control = b"<w:sdt><w:sdtContent>%s</w:sdtContent></w:sdt>"
    inner = table(cell(b"x") + cell(b"y"), cell(b"z"))
    outer = b"<w:tc><w:p><w:r><w:t>before</w:t></w:r></w:p>" + inner + b"<w:p/></w:tc>"
    rows = b"<w:tbl>" + control % (b"<w:tr>" + control % cell(b"a") + outer + b"</w:tr>") + b"</w:tbl>"
    assert texts(control % (b"<w:p>" + RUN + b"</w:p>") + control % (control % rows)) == ["a", "a | before\nx | y\nz"]


def test_headings_stand_with_what_follows_by_the_name_of_their_style() -> None:
    styled = b'<w:p><w:pPr><w:pStyle w:val="%s"/></w:pPr>' + RUN + b"</w:p>"
    names = (b"Heading1", b"Heading2", b"Title", b"absent")
    assert texts(b"".join(styled % name for name in names)) == ["a\na\na", "a"]


def test_a_document_unpacks_to_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MOST_UNPACKED", 1_000_000)
    with pytest.raises(MemlabError, match=r"it unpacks to \d MB, the limit is 1\. Fix: take the pictures out"):
        office.docx(package(b"<w:p>" + RUN * 100_000 + b"</w:p>"))
