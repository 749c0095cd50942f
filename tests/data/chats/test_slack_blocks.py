"""Slack's blocks, attachments and files, by hand to the Block Kit reference and to conversations.history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.data.chats.conversation import Tally
from memlab.data.chats.slack_texts import People, file_text
from memlab.data.chats.source import ExportFile
from tests.chat_exports import read, write
from tests.data.chats.test_slack import ANN, BOB, CHANNELS, DAY1, USERS, said


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": True}


def mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text, "verbatim": False}


def section(*elements: Any, kind: str = "section") -> dict[str, Any]:
    return {"type": f"rich_text_{kind}", "elements": [e if isinstance(e, dict) else {"type": "text", "text": e}
                                                      for e in elements]}


def rich(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text", "block_id": "x", "elements": list(parts)}


RICH = rich(
    section("Hi ", {"type": "user", "user_id": BOB}, ", see ",
            {"type": "link", "url": "https://x.org/a", "text": "the plan", "style": {"bold": True}}, " in ",
            {"type": "channel", "channel_id": "C1"}, " ", {"type": "broadcast", "range": "here"}, " ",
            {"type": "usergroup", "usergroup_id": "S1"}, " ", {"type": "emoji", "name": "wave"}),
    section({"type": "date", "timestamp": DAY1, "format": "{date}", "fallback": "1 March"}, "\n",
            {"type": "new", "name": "gizmo"}),
    {"type": "rich_text_list", "style": "bullet", "indent": 0, "elements": [section("milk"), section("eggs")]},
    {"type": "rich_text_list", "style": "ordered", "indent": 1, "offset": 1, "elements": [section("boil & peel")]},
    section("so she said\nand left", kind="quote"),
    section("x = 1\n  y = 2", kind="preformatted"))
RICH_LINES = [
    "Hi @Bob Jones, see the plan (https://x.org/a) in #general @here @S1 :wave:",
    "1 March", "gizmo", "• milk", "• eggs", "• boil & peel", "so she said", "and left",
    "x = 1", "  y = 2"]
CARD = {"type": "card", "title": mrkdwn("Ticket 9"), "subtitle": mrkdwn("open"), "body": mrkdwn("by <@U0BOB>"),
        "hero_image": {"type": "image", "alt_text": "a map", "image_url": "https://x.org/m.png"},
        "actions": [{"type": "button", "text": plain("Close")}]}
BLOCKS: tuple[tuple[Any, list[str]], ...] = (
    (RICH, RICH_LINES),
    ({"type": "header", "text": plain("Build <7> &amp; more")}, ["Build <7> & more"]),
    ({"type": "section", "text": mrkdwn("on *main*"), "fields": [mrkdwn("owner:\n<@U0ANN>"), plain("red")],
      "accessory": {"type": "overflow", "options": [{"text": plain("Hide")}]}},
     ["on *main*", "owner:", "@Ann 🐈", "red"]),
    ({"type": "image", "title": plain("Graph"), "alt_text": "load", "image_url": "u"}, ["[image: Graph, load]"]),
    ({"type": "file", "external_id": "E", "file": {"name": "a.pdf"}}, ["[file: a.pdf]"]),
    ({"type": "input", "label": plain("Why?"), "element": {"type": "plain_text_input"}}, ["Why?"]),
    (CARD, ["Ticket 9", "open", "by @Bob Jones", "[image: a map]"]),
    ({"type": "table", "rows": [[{"type": "raw_text", "text": "host"}, {"type": "raw_text", "text": "load"}],
                                [rich(section("db3")), {"type": "raw_number", "value": 9, "text": "9 %"}]]},
     ["host | load", "db3 | 9 %"]),
    ({"type": "data_visualization", "title": "Pies", "chart": {"type": "pie", "segments": [
        {"label": "Kiwi", "value": 45}, {"label": "Fig", "value": 2.5}]}}, ["Pies", "Kiwi", "Fig"]),
    ({"type": "plan", "title": "Trip", "tasks": [{
        "type": "task_card", "title": "Book", "details": rich(section("3 beds")),
        "sources": [{"type": "url", "url": "https://y.z", "text": "Inn"}]}]},
     ["Trip", "Book", "3 beds", "Inn"]),
    ({"type": "of_tomorrow", "title": "New", "panel": {"rows": [{"text": mrkdwn("deep")}]}}, ["New", "deep"]),
    ({"type": "divider"}, []), ({"type": "actions", "elements": [{"type": "static_select"}]}, []), (None, []))


@pytest.mark.parametrize(("block", "lines"), BLOCKS)
def test_each_kind_of_block_gives_its_texts(block: Any, lines: list[str]) -> None:
    tally = Tally()
    people = People([ExportFile("users.json", USERS), ExportFile("channels.json", CHANNELS)], tally)
    assert people.blocks([block]) == lines
    assert not [what for what in tally.counts if "without a text" in what]


def one(tmp_path: Path, *messages: dict[str, Any]) -> tuple[list[str], dict[str, int]]:
    rows, counts, _ = read(write(tmp_path, {"users.json": USERS, "channels.json": CHANNELS,
                                            "general/2024-03-01.json": list(messages)}))
    return [text for *_, turns in rows for *_, text in turns], counts


def test_what_people_type_stands_in_the_text_and_in_a_block_and_is_given_once(tmp_path: Path) -> None:
    typed = ("Hi <@U0BOB>, *bold* <!subteam^S1|@ops> <https://x.org|it> &amp; <!date^1^{date}|1 May>\n"
             "1. one\n    a. two\n&gt; q")
    block = rich(section("Hi ", {"type": "user", "user_id": BOB}, ", ", {"type": "text", "text": "bold",
                 "style": {"bold": True}}, " ", {"type": "usergroup", "usergroup_id": "S1"}, " ",
                 {"type": "link", "url": "https://x.org", "text": "it"}, " & ",
                 {"type": "date", "timestamp": 1, "format": "{date}", "fallback": "1 May"}),
                 {"type": "rich_text_list", "style": "ordered", "elements": [section("one")]},
                 {"type": "rich_text_list", "style": "ordered", "indent": 1, "elements": [section("two")]},
                 section("q", kind="quote"))
    texts, counts = one(tmp_path, said(DAY1, ANN, typed, blocks=[block]), said(DAY1 + 1, ANN, "", blocks=[RICH]),
                        said(DAY1 + 2, ANN, "", blocks=[{"type": "divider"}]))
    assert texts == ["Hi @Bob Jones, *bold* @ops it (https://x.org) & 1 May\n1. one\n    a. two\n> q",
                     "\n".join(RICH_LINES).replace("@S1", "@ops")]
    assert counts == {"messages without a text left out": 1}


def test_cards_of_bots_in_blocks_and_attachments(tmp_path: Path) -> None:
    header = {"type": "header", "text": plain("Build 77 failed")}
    buttons = {"type": "actions", "elements": [{"type": "button", "text": plain("Retry")}, {"type": "overflow"}]}
    bot = {"subtype": "bot_message", "username": "ci"}
    alert = {"pretext": "Alert", "title": "Disk full", "title_link": "https://x.org/d", "text": "on <https://db3|db3>",
             "actions": [{"type": "button", "text": "Ack"}],
             "fields": [{"title": "host", "value": "db3", "short": True}, {"value": "since 9"}], "footer": "Grafana",
             "image_url": "https://x.org/g.png", "fallback": "Disk full"}
    texts, counts = one(
        tmp_path,
        said(DAY1, None, "This content can't be displayed.", blocks=[header, buttons], **bot),
        said(DAY1 + 1, None, "Build 77 failed", blocks=[header, {"type": "section", "text": mrkdwn("on main")}], **bot),
        said(DAY1 + 2, None, "CI", blocks=[header], **bot),
        said(DAY1 + 3, None, "", attachments=[alert], **bot),
        said(DAY1 + 4, None, "", attachments=[{"fallback": "only this"}, {"fallback": "[no preview available]"},
                                              {"blocks": [header], "fallback": "[no preview available]"}], **bot))
    assert texts == ["Build 77 failed", "Build 77 failed\non main", "CI\nBuild 77 failed",
                     "Alert\nDisk full\non db3 (https://db3)\nhost: db3\nsince 9\n[image]\nGrafana",
                     "only this\nBuild 77 failed"]
    assert counts == {"buttons and menus of cards left out": 3, "messages of bots, under the role assistant": 5}


def test_forwarded_messages_and_previews_of_links(tmp_path: Path) -> None:
    block = rich(section("the launch is on ", {"type": "text", "text": "May 3", "style": {"bold": True}}))
    share = {"is_share": True, "is_msg_unfurl": True, "author_id": BOB, "author_name": "bobby", "ts": f"{DAY1 - 99}",
             "from_url": "https://x.slack.com/archives/C1/p1", "fallback": "[March 1st] bob: the launch is on *May 3*",
             "text": "the launch is on *May 3*", "message_blocks": [{"team": "T", "channel": "C1", "message": {
                 "blocks": [block], "files": [{"name": "a.png", "mimetype": "image/png"}]}}]}
    nested = {"is_share": True, "author_name": "Rita", "message_blocks": [{"message": {
        "text": "", "blocks": [block], "attachments": [{"text": "deeper"}]}}]}
    page = {"from_url": "https://n.org/1", "title": "News", "title_link": "https://n.org/1", "text": "It rains.",
            "service_name": "N"}
    texts, _ = one(tmp_path, said(DAY1, ANN, "see this", attachments=[share]),
                   said(DAY1 + 1, ANN, "", attachments=[nested]),
                   said(DAY1 + 2, ANN, "<https://n.org/1>", attachments=[page]),
                   said(DAY1 + 3, ANN, "the launch is on May 3, says Bob Jones", attachments=[
                       {**share, "author_name": "", "author_id": "", "message_blocks": []}]))
    assert texts == ["see this\nBob Jones: the launch is on *May 3*\n[image: a.png]",
                     "Rita: the launch is on May 3\ndeeper", "https://n.org/1\nNews\nIt rains.",
                     "the launch is on May 3, says Bob Jones"]


@pytest.mark.parametrize(("file", "text"), [
    ({"title": "Plan", "filetype": "quip", "mode": "quip"}, "[file: Plan]"),
    ({"name": "v.m4a", "mimetype": "audio/mp4", "transcription": {"preview": {"content": "Call Lena"}}},
     "[audio: v.m4a]\nCall Lena"),
    ({"mode": "hidden_by_limit"}, "[file]")])
def test_files_are_named_by_their_kind(file: dict[str, Any], text: str) -> None:
    assert file_text(file) == text
