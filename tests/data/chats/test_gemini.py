"""Gemini in Google Takeout: labels in several languages, times of pages, files that are no activities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.support.errors import MemlabError
from tests.chat_exports import read, write

CHAT = "https://gemini.google.com/app/"


def activity(title: str, time: str, answer: str = "", *chats: str, app: str = "Gemini Apps",
             **fields: Any) -> dict[str, Any]:
    """Make an activity of Takeout's JSON."""
    return {"header": app, "title": title, "time": f"{time}.806Z", "products": [app], "activityControls": [app],
            **({"safeHtmlItem": [{"html": answer}]} if answer else {}),
            **({"details": [{"name": CHAT + chat, "url": CHAT + chat} for chat in chats]} if chats else {}), **fields}


@pytest.mark.parametrize(("label", "app"), [
    ("送信したメッセージ: ", "Gemini アプリ"), ("Eingegebener Prompt:\xa0", "Gemini-Apps"),
    ("Poslali ste poziv:\xa0", "Aplikacije Gemini"), ("Gav instruktionen\xa0", "Gemini-appar"),
    ("Fez uma pergunta:\xa0", "Apps do Gemini"), ("", "Bard")])
def test_labels_of_other_languages(tmp_path: Path, label: str, app: str) -> None:
    asked = [activity(f"{label}Where is {place}?", f"2026-01-0{day}T10:00:00", "<p>There.</p>", app=app)
             for day, place in enumerate(("Rome", "Oslo", "Kyiv"), start=1)]
    new = activity("Used Gemini Apps", "2026-01-05T11:00:00", "", "b1", app=app, userInteractions=[{}])
    other = activity("Other: Gemini", "2026-01-05T10:00:00", app=app)
    rows, *_ = read(write(tmp_path, {"a.json": [*asked, other, new]}), split="day")
    assert [turns[0][2] for *_, turns in rows] == ["Where is Rome?", "Where is Oslo?", "Where is Kyiv?"]


def cell(activity: str, when: str, reply: str = "", chat: str = "", product: str = "Aplikacije Gemini") -> str:
    """Make an activity of the page, in the order in which Takeout writes it."""
    body, wide = "content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1", "mdl-cell mdl-cell--12-col"
    link = f'<b>Podrobnosti:</b><br>&emsp;<a href="{CHAT}{chat}">{CHAT}{chat}</a><br>' if chat else ""
    return (f'<div class="outer-cell {wide} mdl-shadow--2dp"><div class="mdl-grid">'
            f'<div class="header-cell {wide}"><p class="mdl-typography--title">{product}<br></p></div>'
            f'<div class="{body}">{activity}<br>{when}<br>{reply}</div>'
            f'<div class="{body} mdl-typography--text-right"><img src="x.png" class="image-preview"></div>'
            f'<div class="content-cell {wide} mdl-typography--caption"><b>Izdelki:</b><br>{product}<br>'
            f"{link}</div></div></div>")


def page(*cells: str) -> str:
    """Make the page of My Activity."""
    return f"<html><head><style>.mdl-grid{{display:flex}}</style></head><body>{''.join(cells)}</body></html>"


@pytest.mark.parametrize(("when", "said_on"), [
    ("Jul 3, 2026, 9:15:00\u202fPM CEST", "2026-07-03 21:15"), ("18.04.2026, 17:38:51 MESZ", "2026-04-18 17:38"),
    ("17 de fev. de 2026, 15:08:20 BRT", "2026-02-17 15:08"), ("2026/05/21 17:47:55 JST", "2026-05-21 17:47"),
    ("6 Jun 2026, 08:53:12 GMT+01:00", "2026-06-06 08:53"),
    ("2025. 11. 5. 오후 1:34:47 KST", "2025-11-05 13:34"), ("5 июл. 2026 г., 01:34:47 MSK", "2026-07-05 01:34")])
def test_times_of_pages(tmp_path: Path, when: str, said_on: str) -> None:
    prompt = "Prompted&nbsp;A log:<br>2024-01-31 10:00:00<br>12:00:00.5 on 1999"
    rows, *_ = read(write(tmp_path, {"MyActivity.html": page(cell(prompt, when, "<p>ok</p>", product="Gemini Apps"))}))
    assert rows == [(f"{said_on[:10]} A log: 2024-01-31 10:00:00 12:00:00.5…", said_on, [
        ("user", None, "A log:\n2024-01-31 10:00:00\n12:00:00.5 on 1999"), ("assistant", None, "ok")])]


def test_what_holds_no_activities_or_no_known_time_is_named(tmp_path: Path) -> None:
    others = {"Gemini/gemini_gems_data.html": "<b>Name:</b>Chef", "conversation_1.txt": {"conversation_turns": []}}
    with pytest.raises(MemlabError, match=r"Gems or scheduled actions, which is not read.*My Activity"):
        read(write(tmp_path / "a", others))
    undated = page(cell("Prompted&nbsp;Ho", "last week"), cell("Prompted&nbsp;Hi", "Jul 3, 2026, 9:15:00 AM UTC", "x"))
    _, counts, _ = read(write(tmp_path / "b", {**others, "MyActivity.html": undated}))
    assert counts == {"other activities left out (uses of the app, feedback, Canvas documents)": 1}
    odd = page(cell("Prompted&nbsp;Hi", "5. brumaire 2025, 01:34:47 CEST", "<p>ok</p>"))
    with pytest.raises(MemlabError, match=r"brumaire.*as JSON"):
        read(write(tmp_path / "c", {"a.html": odd}))
