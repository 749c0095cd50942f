"""Readers of chat exports on input that is almost right: a folder that data=custom reads, or a MemlabError."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.chats.conversation import Split, to_sessions
from memlab.data.chats.folder import ImportSettings, update_folder
from memlab.data.chats.formats import load
from memlab.data.chats.times import UnreadTime, said_on
from memlab.data.custom import Custom
from tests.chat_exports import SAMPLES, as_bytes
from tests.fuzz.mutation import as_json, as_lines, damaged, fuzz, mutated, odd, outcome

pytestmark = pytest.mark.slow

LISBON = SAMPLES["chatgpt"]["files"]["conversations.json"]

DATED = st.text(alphabet="0123456789٥२/.-:,،[]<>() apmAPM年월下午م•\"\u202f\u200e\u200f\n", max_size=40)
PIECES = st.lists(st.sampled_from((
    "<", "<br>", "</div>", '<div class="outer-cell', '<div class="content-cell', '<a href="x">', "<li>", "&#", "<pre>",
    "<script>", "\xa0", "3 juli 2026 9:15:00 CEST", "31.31.2026, 25:00:00 CET", "\ud800", "]]>", "<!--")))
MORE = {"whatsapp": DATED, "gemini": PIECES.map("".join)}
"""Pieces of dates and of pages, which are put into the texts of these formats."""


def contents(vendor: str, name: str, content: Any) -> st.SearchStrategy[bytes]:
    """Return versions of a file that are almost right."""
    if isinstance(content, str):
        pieces = MORE.get(vendor.partition("_")[0], st.just(""))
        return st.builds(lambda text, piece, place: text[:place] + piece.encode(errors="surrogatepass") + text[place:],
                         damaged(st.just(content.encode())), pieces, st.integers(0, len(content)))
    return as_lines(mutated(content)) if name.endswith(".jsonl") else as_json(mutated(content, most=8))


SPLITS: st.SearchStrategy[Split] = st.sampled_from(get_args(Split))


def imported(folder: Path, path: Path, split: Split = "day", fresh: bool = True) -> object:
    """Do with an export what ``memlab import`` does; what is written must be read without a fault."""
    def run() -> int:
        export = load(path)
        sessions = to_sessions(export.conversations, split, ZoneInfo("Europe/Rome"), export.tally)
        settings = ImportSettings("chat", split, "Europe/Rome")
        return update_folder(folder / "out", settings, sessions, fresh=fresh).stored if sessions else 0

    count = outcome(run)
    if isinstance(count, int) and count:
        assert Custom(path=folder / "out").load()["sessions"].height == count
    return count


def packed(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)  # a day that never changes
    return buffer.getvalue()


@fuzz
@pytest.mark.parametrize("vendor", SAMPLES)
@given(st.data(), SPLITS)
def test_an_export(tmp_path: Path, vendor: str, data: st.DataObject, split: Split) -> None:
    files = SAMPLES[vendor]["files"]
    name = max(files, key=lambda name: len(str(files[name])))
    rest = {other: as_bytes(content) for other, content in files.items() if other != name}
    changed = data.draw(contents(vendor, name, files[name]))
    (tmp_path / "export.zip").write_bytes(packed({**rest, name: changed}))
    imported(tmp_path, tmp_path / "export.zip", split)


TIMES = st.sampled_from((b"Fri, 01 Mar 2024 09:40:00 +0000", b"2024-03-01T09:40:00+01:00", b"20240301094000", b"1e9"))


@fuzz
@given(st.dictionaries(st.sampled_from(("createdAt", "ts", "date", "x")) | st.text(),
                       odd() | damaged(TIMES).map(lambda text: text.decode(errors="replace"))))
def test_times(fields: dict[str, Any]) -> None:
    found = outcome(lambda: said_on(fields))
    assert found is None or isinstance(found, UnreadTime | date)


@fuzz
@given(st.binary(max_size=300), st.sampled_from(("a.json", "a.jsonl", "a.txt", "a.html", "a.zip", "a")))
def test_bytes(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(content)
    imported(tmp_path, tmp_path / name)


@fuzz
@given(damaged(st.just(as_bytes(LISBON))), st.lists(st.sampled_from(("a.zip", "x/b.ZIP", "c.json")), max_size=4),
       st.data())
def test_zips_in_zips(tmp_path: Path, content: bytes, names: list[str], data: st.DataObject) -> None:
    name = "conversations.json"
    for outer in names:
        whole = packed({name: content, "d.json": b"[]"}, data.draw(st.sampled_from((0, 8, 12, 14))))
        name, content = outer, data.draw(damaged(st.just(whole)))
    (tmp_path / "export").mkdir(exist_ok=True)
    (tmp_path / "export/a.zip").write_bytes(content)
    imported(tmp_path, tmp_path / "export")
    imported(tmp_path, tmp_path / "export/a.zip")
