"""Files of an export: zips in zips, limits, bombs, nesting, damaged files; never a traceback."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memlab.data.chats.formats import load
from memlab.data.chats.source import open_export
from memlab.support.errors import MemlabError
from tests.chat_exports import SAMPLES, as_bytes, pack, read, write

(LISBON,) = SAMPLES["chatgpt"]["files"]["conversations.json"]
CHAT = [{"role": "user", "content": "Hi"}]
BIKE, CAT = ({"uuid": key, "name": key, "chat_messages": [
    {"uuid": "m", "sender": "human", "text": f"My {key} is here.", "created_at": "2024-05-02T23:10:00Z"}]}
    for key in ("bike", "cat"))
MANIFEST = {"data_files": [{"category": "conversations", "filename": f"conversations-00{n}.zip", "export_url": "x"}
                           for n in range(2)] + [{"category": "memories", "filename": "memories-000.zip"}]}
CHAT = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_are_read_in_either_encoding(tmp_path: Path, encoding: str) -> None:
    text = "".join(json.dumps({"role": "user", "content": word}, ensure_ascii=False) + "\r\n\n"
                   for word in ("é\u2028\u2029a", "b\x85😀"))
    path = write(tmp_path, {"a.jsonl": text.encode(encoding)}) / "a.jsonl"
    assert [turn[2] for turn in read(path)[0][0][2]] == ["é\u2028\u2029a", "b\x85😀"]


def test_the_limit_is_of_all_files_together(tmp_path: Path) -> None:
    path = write(tmp_path, {f"{n}.json": b"[]" + b" " * 600_000 for n in range(2)})
    with pytest.raises(MemlabError, match="more than 1 MB of chats"):
        open_export(path, max_mb=1)
    with pytest.raises(MemlabError, match="more than 0 MB"):
        open_export(path / "0.json", max_mb=0.1)
    assert len(open_export(path, max_mb=2)) == 2


@pytest.mark.parametrize(("name", "content", "problem"), [
    ("a.json", "[" * 200_000, "nested too deeply"),
    ("a.json", b"\xff\x00[]", "is not UTF-8"),
    ("a.json", '[{"role": "user"', "cut off"),
    ("a.json", "[" + "1" * 5000 + "]", "not JSON"),
    ("a.jsonl", '{"role": "user"\n{"a": 1}\n', "a.jsonl, line 1: this is not JSON"),
    ("a.jsonl", b'{"role": "user", "content": "Hi"}\n{"role": "\xff"}\n', r"a\.jsonl, line 2: byte 44 is not UTF-8"),
    ("a.jsonl", "[" * 200_000, "nested too deeply"),
    ("a.zip", b"PK\x03\x04 no zip", "zip is damaged"),
    ("a.txt", "Dear Ann,\n12/31/23 is the day.", "no chat export that memlab knows"),
    ("a.json", '{"a": 1}', r"a\.json holds an object with a\. Fix: the formats are chatgpt, "),
    ("a.json", "", "not JSON"),
    ("c.json", '[{"mapping": 3, "current_node": "a"}]', "c.json, conversation 0, field mapping"),
    ("c.json", '[{"chat_messages": 3}]', "c.json, conversation 0, field chat_messages"),
    ("c.json", '{"conversations": [{"conversation": {}, "responses": ""}]}', "conversation 0, field responses"),
])
def test_what_cannot_be_read_is_told(tmp_path: Path, name: str, content: str | bytes, problem: str) -> None:
    with pytest.raises(MemlabError, match=problem):
        load(write(tmp_path, {name: content}) / name)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_with_damaged_content(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as packed:
        packed.writestr("a.json", '[{"role": "user", "content": "Hi"}]')
    data = path.read_bytes()
    path.write_bytes(data[:50] + bytes(byte ^ 255 for byte in data[50:60]) + data[60:])
    with pytest.raises(MemlabError, match="zip is damaged"):
        load(path)


def test_nothing_is_read_from_outside_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"secret.json": CHAT, "export/b.json": CHAT, "export/.hidden/c.json": CHAT})
    (tmp_path / "export" / "a.json").symlink_to(tmp_path / "secret.json")
    assert [file.name for file in open_export(tmp_path / "export")] == ["b.json"]


def test_formats_are_told_apart_and_never_mixed(tmp_path: Path) -> None:
    path = write(tmp_path, {"b.txt": "31/12/23, 21:15 - Ann: Hi", "c.json": {"a": 1},
                            "d.json": [{"chat_messages": []}]})
    with pytest.raises(MemlabError, match="several formats: claude, whatsapp"):
        load(path)
    assert load(path, "claude").others == ["b.txt", "c.json"]
    export = load(write(path / "messages", {"a.json": CHAT, "b.txt": "31/12/23, 21:15 - Ann: Hi"}))
    assert (export.format.name, export.others) == ("whatsapp", [])
    assert any("of another format: a.json (messages" in remark for remark in export.tally.remarks)
    with pytest.raises(MemlabError, match="did you mean 'whatsapp'"):
        load(path, "whatsap")
    with pytest.raises(MemlabError, match="this is no Slack export"):
        load(path, "slack")


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match="no such file"):
        load(tmp_path / "none.json")
    with pytest.raises(MemlabError, match="no file in it that ends in"):
        load(write(tmp_path, {"a.png": b"x"}))
    (tmp_path / "b.json").mkdir()
    with pytest.raises(MemlabError, match="no file in it"):
        load(tmp_path)


def test_the_page_of_the_same_chats_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"a.json": CHAT, "chat.html": b"\xff" * 2_000_000, "b.html": "<p>x</p>"})
    assert load(path, max_mb=1).others == ["b.html"]


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
