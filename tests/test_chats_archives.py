"""Zips in zips and folders of zips: what vendors send is read, and the limits hold for all of them together."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memlab.chats import archives
from memlab.chats.formats import load
from memlab.chats.source import open_export
from memlab.errors import MemlabError
from tests.chat_exports import as_bytes, pack, read, write
from tests.test_chats_chatgpt import LISBON
from tests.test_chats_claude import conversation, message, text

BIKE = {**conversation("Bike", message("m1", "human", "My bike is a Kona.", text("My bike is a Kona."))), "uuid": "u1"}
CAT = {**conversation("Cat", message("m2", "human", "My cat is Mio.", text("My cat is Mio."))), "uuid": "u2"}
MANIFEST = {"data_files": [{"category": "conversations", "filename": f"conversations-00{n}.zip", "export_url": "x"}
                           for n in range(2)] + [{"category": "memories", "filename": "memories-000.zip"}]}
CHAT = [{"role": "user", "content": "Hi"}]


def zipped(files: Mapping[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", method) as packed:
        for name, content in files.items():
            packed.writestr(name, as_bytes(content))
    return buffer.getvalue()


def titles(path: Path) -> list[str]:
    return [name for name, *_ in read(path)[0]]


@pytest.mark.parametrize("deep", [1, 2, 3])
def test_a_zip_in_a_zip_is_read(tmp_path: Path, deep: int) -> None:
    content = zipped({"conversations-000.json": [LISBON], "conversations-001.json": [], "user.json": {}})
    for _ in range(deep - 1):
        content = zipped({"User Online Activity/Conversations__a-0001.ZIP": content, "Info.txt": "x"})
    (tmp_path / "export.zip").write_bytes(content)
    assert len(load(tmp_path / "export.zip").conversations) == 1
    assert load(write(tmp_path / "folder", {"a/export.zip": content})).conversations


def test_zips_are_at_most_three_deep(tmp_path: Path) -> None:
    content = zipped({"conversations.json": [LISBON]})
    for _ in range(3):
        content = zipped({"a.zip": content})
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(MemlabError, match=r"a\.zip/a\.zip/a\.zip: zips are inside each other more than 3 times"):
        load(tmp_path / "a.zip")
    assert load(write(tmp_path / "b", {"a.zip": content, "conversations.json": [LISBON]})).conversations


def test_a_folder_of_zips_with_a_manifest(tmp_path: Path) -> None:
    folder = write(tmp_path, {"manifest-1.json": MANIFEST,
                              "conversations-000.zip": zipped({"conversations.json": [BIKE]}),
                              "conversations-001.zip": zipped({"conversations.json": [CAT]}),
                              "memories-000.zip": zipped({"memories.json": [{}]})})
    assert len(titles(folder)) == 2
    assert not load(folder).tally.remarks
    (folder / "conversations-001.zip").unlink()
    assert load(folder).tally.remarks == ["the export's list names archives that are not here: conversations-001.zip"]
    with pytest.raises(MemlabError, match=r"list of an export's archives.* download conversations-000\.zip"):
        load(folder / "manifest-1.json")


def test_chats_about_designs_are_claude_s(tmp_path: Path) -> None:
    design = {"uuid": "d", "title": "Logo", "created_at": "2026-02-03T10:00:00Z", "messages": [
        {"role": "user", "created_at": "2026-02-03T10:00:00Z",
         "content": {"content": "A logo, please.", "attachments": [{"name": "old.png", "type": "image/png"}]}},
        {"role": "assistant", "content": {"timestamp": "2026-02-03T10:01:00Z", "contentBlocks": [
            {"type": "thinking", "text": "hm"}, {"type": "tool_call", "toolCall": {"name": "draw"}},
            {"type": "user_interjection", "message": {"content": "In green."}}, {"type": "error", "message": "x"},
            {"type": "text", "text": "Here it is."}]}}, {"role": "x", "content": {"content": "y"}}]}
    plain = {"uuid": "e", "messages": [{"role": "user", "content": {"content": "A poster."}}]}
    path = pack(tmp_path / "a.zip", {"conversations.json": [BIKE], "design_chats/d.json": design,
                                     "users/1/design_chats/e.json": plain})
    rows, counts, _ = read(path)
    assert [row[2] for row in rows if "Logo" in row[0]] == [[
        ("user", None, "A logo, please.\n[image: old.png]"), ("assistant", None, "[tool: draw]"),
        ("user", None, "In green."), ("assistant", None, "Here it is.")]]
    assert ("A poster.", None, [("user", None, "A poster.")]) in rows
    assert (len(rows), counts["errors of the model's server left out"]) == (3, 1)


def test_uploads_do_not_stop_an_import(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {
        "User Online Activity/Conversations__0001.zip": zipped({"conversations-000.json": [LISBON]}),
        "Files__0001.zip": zipped({"file-1.json": "{", "file-2.zip": b"PK\x03\x04 no zip", "file-3.json": CHAT})})
    export = load(path)
    assert len(export.conversations) == 1
    assert sorted(remark.split(" (")[0] for remark in export.tally.remarks) == [
        "left out, since it cannot be read: Files__0001.zip/file-1.json",
        "left out, since it cannot be read: Files__0001.zip/file-2.zip",
        "left out, since of another format: Files__0001.zip/file-3.json"]


def test_a_part_of_the_chats_that_is_damaged_does(tmp_path: Path) -> None:
    whole = zipped({"conversations.json": [BIKE]})
    folder = write(tmp_path, {"conversations-000.zip": whole, "conversations-001.zip": whole[:-30]})
    with pytest.raises(MemlabError, match=r"conversations-001\.zip: the zip is damaged"):
        load(folder)


def test_bombs_are_measured_over_all_zips(tmp_path: Path) -> None:
    blank = b"[" + b" " * 400_000 + b"]"
    inner = zipped({"a.json": blank, "b.json": blank})
    path = pack(tmp_path / "bomb.zip", {f"{n}.zip": inner for n in range(3)})
    assert path.stat().st_size < 10_000
    with pytest.raises(MemlabError, match="more than 2 MB of chats"):
        open_export(path, max_mb=2)
    assert len(open_export(path, max_mb=3)) == 6


def test_an_inner_zip_takes_memory_only_while_it_is_open(tmp_path: Path) -> None:
    inner = zipped({"a.json": b"[]", "b.bin": bytes(600_000)}, zipfile.ZIP_STORED)
    path = pack(tmp_path / "a.zip", {"1.zip": inner, "2.zip": inner})
    assert [file.name for file in open_export(path, max_mb=0.7)] == ["1.zip/a.json", "2.zip/a.json"]
    assert all(file.fault for file in open_export(path, max_mb=0.5))


def test_files_of_all_zips_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zipped({f"{n}.json": b"[]" for n in range(4)})
    path = pack(tmp_path / "a.zip", {"1.zip": inner, "2.zip": inner})
    assert len(open_export(path)) == 8
    monkeypatch.setattr(archives, "MAX_FILES", 9)
    with pytest.raises(MemlabError, match="more than 9 files"):
        open_export(path)


def test_a_zip_that_holds_itself_ends(tmp_path: Path) -> None:
    content = zipped({"a.zip": b"x" * 100})
    for _ in range(20):
        content = zipped({"a.zip": content})
    (tmp_path / "a.zip").write_bytes(content)
    assert [file.fault is not None for file in open_export(tmp_path / "a.zip")] == [True]


def test_the_name_of_an_inner_zip_is_that_of_a_folder(tmp_path: Path) -> None:
    folder = write(tmp_path, {"WhatsApp Chat - Ann.zip": zipped({"_chat.txt": "31/12/23, 21:15 - Ann: Hi"})})
    assert titles(folder) == ["2023-12-31 Ann"]
