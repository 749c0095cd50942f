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
from tests.data.chats.test_chatgpt import LISBON, node
from tests.data.chats.test_chatgpt import conversation as chatgpt_conversation
from tests.data.chats.test_chatgpt_marks import CASES as MARKS
from tests.data.chats.test_claude_code import LOG as CLAUDE_CODE
from tests.data.chats.test_claude_code import line, queue, queued
from tests.data.chats.test_codex import LOG as CODEX
from tests.data.chats.test_codex import item
from tests.data.chats.test_gemini import ENGLISH, KOREAN, SLOVENE
from tests.data.chats.test_messages import HELLO
from tests.data.chats.test_slack import DAY1, said
from tests.data.chats.test_slack import EXPORT as SLACK
from tests.data.chats.test_slack_blocks import BLOCKS
from tests.data.chats.test_whatsapp import ANDROID_12, ANDROID_24, IOS
from tests.fuzz.mutation import as_json, as_lines, damaged, fuzz, mutated, odd, outcome

pytestmark = pytest.mark.slow

TABLE = {name: max(sample["files"].items(), key=lambda file: len(str(file[1]))) for name, sample in SAMPLES.items()}
CARDS = [said(DAY1 + number, "U1", "Hi", blocks=[block], attachments=[
    {"is_share": True, "author_id": "U1", "title": "T", "fields": [{"title": "a", "value": "b"}], "blocks": [block],
     "message_blocks": [{"message": {"text": "x", "blocks": [block], "attachments": [{"fallback": "f"}]}}]}],
     files=[{"mode": "quip", "title": "Plan", "transcription": {"preview": {"content": "x"}}}],
     reactions=[{"name": "eyes", "count": 2}]) for number, (block, _) in enumerate(BLOCKS)]
MARKED = chatgpt_conversation("Marks", *(
    node(f"n{number}", f"n{number - 1}", "assistant", before + middle + after)
    for number, (before, middle, after, *_) in enumerate(MARKS)), current=f"n{len(MARKS) - 1}")
QUEUE = [line("1", None, "user", "Hi"), queue("enqueue", "a"), queue("remove", "a", reason="absorbed_mid_turn"),
         queue("enqueue", "b"), queue("dequeue"), queue("enqueue", "c"), queue("popAll"), queued("d"),
         queued([{"type": "text", "text": "e"}], origin={"kind": "human"}), {"type": "ai-title", "aiTitle": "T"},
         line("2", "1", "user", [{"type": "tool_result", "is_error": True, "content": "The user doesn't want"}],
              toolUseResult={"answers": {"q": "a"}, "annotations": {"q": {"notes": "n"}}})]
ASKED = [*CODEX[:1], item(type="function_call", name="request_user_input", call_id="c",
                          arguments='{"questions":[{"id":"q","question":"Q?"}]}'),
         item(type="function_call_output", call_id="c", output='{"answers":{"q":{"answers":["A"]}}}'), *CODEX[-5:]]
DAY = "general/2024-03-01.json"
PHONES = [text.encode() for text in (ANDROID_24, ANDROID_12, IOS)]
DATED = st.text(alphabet="0123456789٥२/.-:,،[]<>() apmAPM年월下午م•\"\u202f\u200e\u200f\n", max_size=40)
PIECES = st.lists(st.sampled_from((
    "<", "<br>", "</div>", '<div class="outer-cell', '<div class="content-cell', '<a href="x">', "<li>", "&#", "<pre>",
    "<script>", "\xa0", "3 juli 2026 9:15:00 CEST", "31.31.2026, 25:00:00 CET", "\ud800", "]]>", "<!--")))
EXPORTS: dict[str, tuple[str, st.SearchStrategy[bytes]]] = {
    "chatgpt": ("conversations.json", as_json(mutated([LISBON], LISBON, MARKED))),
    **{name: (file, as_json(mutated(content)) if not isinstance(content, str) else damaged(st.just(content.encode())))
       for name, (file, content) in TABLE.items()},
    "gemini": ("MyActivity.json", as_json(mutated(ENGLISH, KOREAN))),
    "gemini_page": ("MyActivity.html", st.builds(
        lambda page, pieces, place: page[:place] + "".join(pieces).encode(errors="surrogatepass") + page[place:],
        damaged(st.just(SLOVENE.encode())), PIECES, st.integers(0, len(SLOVENE)))),
    "slack": (DAY, as_json(mutated(SLACK[DAY]))), "slack_people": ("users.json", as_json(mutated(SLACK["users.json"]))),
    "slack_cards": (DAY, as_json(mutated(CARDS, most=8))),
    "whatsapp": ("WhatsApp Chat with Ann.txt", st.builds(
        lambda chat, end: chat + end.encode(), damaged(st.sampled_from(PHONES)), DATED)),
    "claude_code": ("a.jsonl", as_lines(mutated(CLAUDE_CODE, QUEUE))),
    "codex": ("rollout-1.jsonl", as_lines(mutated(CODEX, ASKED))),
    "messages": ("a.json", as_json(mutated(HELLO, {"title": "One", "messages": HELLO}))),
    "message_lines": ("b.jsonl", as_lines(mutated([{"messages": HELLO}], HELLO)))}
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
@pytest.mark.parametrize("vendor", EXPORTS)
@given(st.data(), SPLITS)
def test_an_export(tmp_path: Path, vendor: str, data: st.DataObject, split: Split) -> None:
    name, contents = EXPORTS[vendor]
    rest = {name: as_bytes(content) for name, content in SLACK.items()} if vendor.startswith("slack") else {}
    (tmp_path / "export.zip").write_bytes(packed({**rest, name: data.draw(contents)}))
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
@given(damaged(st.just(as_bytes([LISBON]))), st.lists(st.sampled_from(("a.zip", "x/b.ZIP", "c.json")), max_size=4),
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
