"""PDFs whose contents unpack to far more than their size, each read or refused in a process that is measured."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest

from memlab.data.documents import office
from memlab.errors import MemlabError
from tests.memory_growth import outcome

pytest.importorskip("pypdf")

IMPORTS = "import pypdf\nfrom memlab.data.documents import dataset, office"
SAID = b"BT /F1 12 Tf 72 720 Td (Hi) Tj ET "


def pdf(contents: list[bytes], count: int) -> bytes:
    """A PDF of ``count`` pages, written by hand as the format wants it, which take turns with these packed contents."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for content in contents:
        packed = zlib.compress(content)
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed))
    kids = b" ".join(b"%d 0 R" % (len(objects) + 1 + page) for page in range(count))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count)
    objects += [b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font "
                b"<< /F1 3 0 R >> >> >>" % (4 + page % len(contents)) for page in range(count)]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1, table, len(objects) + 1, len(out))


@pytest.mark.slow
@pytest.mark.parametrize(("contents", "count", "problem"), [
    ([SAID + b" " * (30_000_000 + n) for n in range(5)], 5, "its pages unpack to more than 10 MB, the limit"),
    ([SAID + b" " * 9_000_000], 500, "its pages unpack to more than 10 MB, the limit"),
    ([b"BT /F1 12 Tf " + b"(a) Tj\n" * 700_000 + b"ET" + b" " * n for n in range(50)], 50,
     "its pages unpack to more than 10 MB"),
    ([b"0 0 m " * 20_000_000], 1, "pypdf refuses it (LimitReachedError")], ids=["own", "shared", "operators", "stream"])
def test_pages_that_unpack_to_too_much_are_refused(tmp_path: Path, contents: list[bytes], count: int,
                                                   problem: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(contents, count))
    assert path.stat().st_size < 1_000_000
    assert problem in outcome(IMPORTS, "dataset.load(path, 20.0)", path)


def test_the_limit_is_twenty_times_the_size_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = pdf([SAID + b" " * 3000], 4)
    assert [block.text for block in office.pdf(raw).blocks] == ["Hi"] * 4
    monkeypatch.setattr(office, "AT_LEAST", 4 * (len(SAID) + 3000))
    monkeypatch.setattr(office, "TIMES", 0)
    assert len(office.pdf(raw).blocks) == 4
    monkeypatch.setattr(office, "AT_LEAST", 4 * (len(SAID) + 3000) - 1)
    with pytest.raises(MemlabError, match="its pages unpack to more than 0 MB, the limit. Fix: print it to a new PDF"):
        office.pdf(raw)
    monkeypatch.setattr(office, "TIMES", 20)
    assert len(office.pdf(raw).blocks) == 4


def with_parts(parts: dict[bytes, bytes], content: bytes, resources: bytes = b"") -> bytes:
    """A PDF of one page; ``parts`` are further objects, from number 5 on: dictionary -> bytes of the stream."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << %s >> >>" % resources,
               content, *(b"<< %s /Length %d >>\nstream\n%s\nendstream" % (about, len(data), data)
                          for about, data in parts.items())]
    out = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % one for one in enumerate(objects, start=1))
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n0\n%%%%EOF" % (len(objects) + 2)


NINES = b"".join((n % 256).to_bytes(1, "big") for n in range(9)) * 1_000_000
TWICE = zlib.compress(NINES)


@pytest.mark.slow
@pytest.mark.parametrize("filters", [b"[/FlateDecode /LZWDecode]", b"[/Fl/RL]", b"6 0 R", b"[/FlateDecode /LZWDecod#65]"
                                     ])
def test_what_is_packed_twice_is_refused_before_it_is_unpacked(tmp_path: Path, filters: bytes) -> None:
    path = tmp_path / "a.pdf"
    content = b"<< /Filter %s /Length %d >>\nstream\n%s\nendstream" % (filters, len(TWICE), TWICE)
    elsewhere = b"6 0 obj\n[/FlateDecode /LZWDecod#65]\nendobj\ntrailer" if filters == b"6 0 R" else b"trailer"
    path.write_bytes(with_parts({}, content).replace(b"trailer", elsewhere))
    assert "a part of it is packed twice" in outcome(IMPORTS, "dataset.load(path, 20.0)", path)


@pytest.mark.slow
def test_a_part_that_a_page_shows_a_thousand_times_counts_for_each(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    form = zlib.compress(b"BT " + b"(a) Tj\n" * 100_000 + b"ET")
    shown = b"/F0 Do " * 1000
    path.write_bytes(with_parts({b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Filter /FlateDecode": form},
                                b"<< /Length %d >>\nstream\n%s\nendstream" % (len(shown), shown),
                                b"/XObject << /F0 5 0 R >>"))
    assert "its pages unpack to more than" in outcome(IMPORTS, "dataset.load(path, 20.0)", path)


def test_text_of_a_packed_and_written_stream_is_read() -> None:
    content = base64.a85encode(zlib.compress(SAID)) + b"~>"
    raw = with_parts({}, b"<< /Filter [/ASCII85Decode /FlateDecode] /Length %d >>\nstream\n%s\nendstream" % (
        len(content), content), b"/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>")
    assert [block.text for block in office.pdf(raw).blocks] == ["Hi"]
