"""Readers of chat exports on input that is almost right: a folder that data=custom reads, or a MemlabError."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.chats.folder import ImportSettings, update_folder
from memlab.chats.formats import load
from memlab.chats.sessions import to_sessions
from memlab.chats.times import UnreadTime, said_on
from memlab.data.custom import Custom
from tests.chat_exports import as_bytes
from tests.fuzz.mutation import as_json, as_lines, damaged, fuzz, mutated, odd, outcome
from tests.test_chats_chatgpt import LISBON, node
from tests.test_chats_chatgpt import conversation as chatgpt_conversation
from tests.test_chats_chatgpt_marks import CASES as MARKS
from tests.test_chats_claude import conversation, message, text
from tests.test_chats_claude_code import LOG as CLAUDE_CODE
from tests.test_chats_claude_code import line, queue, queued
from tests.test_chats_codex import LOG as CODEX
from tests.test_chats_codex import item
from tests.test_chats_gemini import ENGLISH, KOREAN, SLOVENE, WORKSPACE
from tests.test_chats_grok import EXPORT as GROK
from tests.test_chats_perplexity import EXTENSION, SITE, VENDOR
from tests.test_chats_slack import DAY1, said
from tests.test_chats_slack import EXPORT as SLACK
from tests.test_chats_slack_blocks import BLOCKS
from tests.test_chats_whatsapp import ANDROID_12, ANDROID_24, ELSEWHERE, IOS

pytestmark = pytest.mark.slow

CLAUDE = [
    conversation("A recipe",
                 message("1", "human", "Pesto?", attachments=[{"file_name": "a.txt", "file_type": "txt"}],
                         files=[{"file_name": "b.jpg", "file_kind": "image"}], parent_message_uuid="0"),
                 message("2", "assistant", "", {"type": "thinking", "thinking": "hm"}, text("Basil."),
                         {"type": "tool_use", "name": "search"}, parent_message_uuid="1")),
    conversation("Nothing")]
OLD_CODEX = [{"id": "1", "timestamp": "2025-10-29T00:59:38Z", "instructions": None},
             {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]
MESSAGES: tuple[Any, ...] = (
    [{"role": "user", "content": "Hi", "created_at": 1709286000}, {"role": "assistant", "content": [
        {"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "http://x/cat.png"}}]}],
    {"title": "One", "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi", "name": "Ann"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]}]})
CARDS = [said(DAY1 + number, "U1", "Hi", blocks=[block], attachments=[
    {"is_share": True, "author_id": "U1", "title": "T", "fields": [{"title": "a", "value": "b"}], "blocks": [block],
     "message_blocks": [{"message": {"text": "x", "blocks": [block], "attachments": [{"fallback": "f"}]}}]}],
     files=[{"mode": "quip", "title": "Plan", "transcription": {"preview": {"content": "x"}}}],
     reactions=[{"name": "eyes", "count": 2}]) for number, (block, _) in enumerate(BLOCKS)]
MARKED = chatgpt_conversation("Marks", *(
    node(f"n{number}", f"n{number - 1}", "assistant", before + middle + after, metadata={
        "content_references": [{"matched_text": middle, "items": [{"title": "A"}]}]})
    for number, (before, middle, after, *_) in enumerate(MARKS)), current=f"n{len(MARKS) - 1}")
QUEUE = [line("1", None, "user", "Hi"), queue("enqueue", "a"), queue("remove", "a", reason="absorbed_mid_turn"),
         queue("enqueue", "b"), queue("dequeue"), queue("enqueue", "c"), queue("popAll"), queued("d"),
         queued([{"type": "text", "text": "e"}], origin={"kind": "human"}), {"type": "ai-title", "aiTitle": "T"},
         line("2", "1", "user", [{"type": "tool_result", "is_error": True, "content": "The user doesn't want"}],
              toolUseResult={"answers": {"q": "a"}, "annotations": {"q": {"notes": "n"}}}),
         {"type": "system", "content": "x"}, {"type": "progress", "sessionId": "s"}]
ASKED = [*CODEX[:1], item(type="function_call", name="request_user_input", call_id="c",
                          arguments='{"questions":[{"id":"q","question":"Q?"}]}'),
         item(type="function_call_output", call_id="c", output='{"answers":{"q":{"answers":["A"]}}}'), *CODEX[-5:]]
OFFICIAL = ("general/2024-03-01.json", "users.json", "channels.json")


def imported(folder: Path, files: Mapping[str, bytes], split: str = "day") -> object:
    """Do with an export what ``memlab import`` does; what is written must be read without a fault."""
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    path = folder / "export.zip"
    path.write_bytes(buffer.getvalue())
    return written(folder, path, split)


def written(folder: Path, path: Path, split: str = "day") -> object:
    def run() -> int:
        export = load(path)
        sessions = to_sessions(export.conversations, split, ZoneInfo("Europe/Rome"), export.tally)
        if sessions:
            update_folder(folder / "out", ImportSettings("chat", split, "Europe/Rome"), sessions, fresh=True)
        return len(sessions)

    count = outcome(run)
    if isinstance(count, int) and count:
        assert Custom(path=folder / "out").load()["sessions"].height == count
    return count




SPLITS = st.sampled_from(("day", "conversation", "auto"))


@fuzz
@given(as_json(mutated([LISBON], LISBON, MARKED)), SPLITS)
def test_chatgpt(tmp_path: Path, content: bytes, split: str) -> None:
    imported(tmp_path, {"conversations.json": content}, split)


@fuzz
@given(as_json(mutated(CLAUDE)), SPLITS)
def test_claude(tmp_path: Path, content: bytes, split: str) -> None:
    imported(tmp_path, {"conversations.json": content}, split)


@fuzz
@given(as_json(mutated(ENGLISH, KOREAN)), as_json(mutated(WORKSPACE)), SPLITS)
def test_gemini(tmp_path: Path, activities: bytes, conversation: bytes, split: str) -> None:
    imported(tmp_path, {"MyActivity.json": activities, "conversation_1.txt": conversation}, split)


PAGE_PIECES = ("<", "<br>", "</div>", '<div class="outer-cell', '<div class="content-cell', '<a href="x">', "<li>",
               "&#", "<pre>", "<script>", "\xa0", "3 juli 2026 9:15:00 CEST", "31.31.2026, 25:00:00 CET", "\ud800",
               "]]>", "<!--")


@fuzz
@given(damaged(st.just(SLOVENE.encode())), st.lists(st.sampled_from(PAGE_PIECES)), st.integers(0, len(SLOVENE)))
def test_gemini_pages(tmp_path: Path, page: bytes, pieces: list[str], place: int) -> None:
    middle = "".join(pieces).encode(errors="surrogatepass")
    imported(tmp_path, {"MyActivity.html": page[:place] + middle + page[place:]})


@fuzz
@given(as_json(mutated(GROK)), SPLITS)
def test_grok(tmp_path: Path, content: bytes, split: str) -> None:
    imported(tmp_path, {"prod-grok-backend.json": content}, split)


@fuzz
@given(as_json(mutated(VENDOR, SITE, EXTENSION)), SPLITS)
def test_perplexity(tmp_path: Path, content: bytes, split: str) -> None:
    imported(tmp_path, {"conversations.json": content}, split)


@fuzz
@given(st.tuples(*(as_json(mutated(SLACK[name])) for name in OFFICIAL)))
def test_slack(tmp_path: Path, contents: tuple[bytes, ...]) -> None:
    rest = {name: as_bytes(content) for name, content in SLACK.items() if name not in OFFICIAL}
    imported(tmp_path, {**rest, **dict(zip(OFFICIAL, contents))})


@fuzz
@given(as_json(mutated(CARDS, most=8)))
def test_slack_cards(tmp_path: Path, content: bytes) -> None:
    rest = {name: as_bytes(SLACK[name]) for name in OFFICIAL[1:]}
    imported(tmp_path, {**rest, OFFICIAL[0]: content})


@fuzz
@given(damaged(st.sampled_from([text.encode() for text in (ANDROID_24, ANDROID_12, IOS, *ELSEWHERE)])),
       st.text(alphabet="0123456789٥২/.-:,،[]<>() apmAPM年월下午م•\"\u202f\u200e\u200f\n", max_size=40))
def test_whatsapp(tmp_path: Path, content: bytes, line: str) -> None:
    imported(tmp_path, {"WhatsApp Chat with Ann.txt": content + line.encode()})


@fuzz
@given(as_lines(mutated(CLAUDE_CODE, QUEUE)))
def test_claude_code(tmp_path: Path, content: bytes) -> None:
    imported(tmp_path, {"a.jsonl": content})


@fuzz
@given(as_lines(mutated(CODEX, OLD_CODEX, ASKED)))
def test_codex(tmp_path: Path, content: bytes) -> None:
    imported(tmp_path, {"rollout-1.jsonl": content})


@fuzz
@given(as_json(mutated(*MESSAGES)), as_lines(mutated(list(MESSAGES), MESSAGES[0])), st.booleans())
def test_messages(tmp_path: Path, content: bytes, lines: bytes, both: bool) -> None:
    imported(tmp_path, {"a.json": content, **({"b.jsonl": lines} if both else {})})


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
    written(tmp_path, tmp_path / name)


@fuzz
@given(damaged(st.just(as_bytes([LISBON]))), st.data())
def test_damaged_zips(tmp_path: Path, content: bytes, data: st.DataObject) -> None:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", data.draw(st.sampled_from((0, 8, 12, 14)))) as packed:
        packed.writestr("conversations.json", content)
    (tmp_path / "a.zip").write_bytes(data.draw(damaged(st.just(buffer.getvalue()))))
    written(tmp_path, tmp_path / "a.zip")


@fuzz
@given(damaged(st.just(as_bytes([LISBON]))), st.lists(st.sampled_from(("a.zip", "x/b.ZIP", "c.json")), max_size=4),
       st.data())
def test_zips_in_zips(tmp_path: Path, content: bytes, names: list[str], data: st.DataObject) -> None:
    name = "conversations.json"
    for outer in names:
        method = data.draw(st.sampled_from((0, 8)))
        with zipfile.ZipFile(buffer := io.BytesIO(), "w") as packed:
            packed.writestr(zipfile.ZipInfo(name), content, method)
            packed.writestr(zipfile.ZipInfo("d.json"), "[]", method)
        name, content = outer, data.draw(damaged(st.just(buffer.getvalue())))
    (tmp_path / "export").mkdir(exist_ok=True)
    (tmp_path / "export/a.zip").write_bytes(content)
    written(tmp_path, tmp_path / "export")
    written(tmp_path, tmp_path / "export/a.zip")


@fuzz
@given(as_json(mutated([LISBON], LISBON)), as_json(mutated([LISBON], LISBON)), SPLITS)
def test_later_exports(tmp_path: Path, first: bytes, second: bytes, split: str) -> None:
    def add(content: bytes) -> int:
        (tmp_path / "conversations.json").write_bytes(content)
        export = load(tmp_path / "conversations.json")
        sessions = to_sessions(export.conversations, split, ZoneInfo("Europe/Rome"), export.tally)
        return update_folder(folder, ImportSettings("chat", split, "Europe/Rome"), sessions).stored if sessions else 0

    folder = tmp_path / hashlib.sha256(first + b"," + second + split.encode()).hexdigest()
    stored = [count for count in (outcome(lambda content=content: add(content)) for content in (first, second, second))
              if isinstance(count, int) and count]
    assert stored == sorted(stored)
    assert not stored or Custom(path=folder).load()["sessions"].height == stored[-1]


SESSION = {"corpus": "chat", "session": "a", "said_on": None, "turns": [{"role": "user", "text": "x"}]}


@fuzz
@given(as_lines(mutated([SESSION])))
def test_stored_sessions(tmp_path: Path, content: bytes) -> None:
    settings = ImportSettings("chat", "day", "UTC")
    (tmp_path / "conversations.json").write_bytes(as_bytes([LISBON]))
    export = load(tmp_path / "conversations.json")
    sessions = to_sessions(export.conversations, "day", ZoneInfo("UTC"), export.tally)
    (tmp_path / "sessions.jsonl").write_bytes(content)
    outcome(lambda: update_folder(tmp_path, settings, sessions).stored)
