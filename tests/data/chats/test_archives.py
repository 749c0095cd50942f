"""Zips in zips and folders of zips: what vendors send is read, and the limits hold for all of them together."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memlab.data.chats.formats import load
from memlab.data.chats.source import open_export
from memlab.support.errors import MemlabError
from tests.chat_exports import as_bytes, pack, read, write
from tests.data.chats.test_chatgpt import LISBON

BIKE, CAT = ({"uuid": key, "name": key, "chat_messages": [
    {"uuid": "m", "sender": "human", "text": f"My {key} is here.", "created_at": "2024-05-02T23:10:00Z"}]}
    for key in ("bike", "cat"))
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


def test_zips_are_at_most_three_deep(tmp_path: Path) -> None:
    content = zipped({"conversations.json": [LISBON]})
    (tmp_path / "three.zip").write_bytes(zipped({"Online Activity/a.ZIP": zipped({"b.zip": content}), "Info.txt": "x"}))
    assert len(load(tmp_path / "three.zip").conversations) == 1
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


def test_the_name_of_an_inner_zip_is_that_of_a_folder(tmp_path: Path) -> None:
    folder = write(tmp_path, {"WhatsApp Chat - Ann.zip": zipped({"_chat.txt": "31/12/23, 21:15 - Ann: Hi"})})
    assert titles(folder) == ["2023-12-31 Ann"]
