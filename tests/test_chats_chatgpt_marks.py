"""Marks of ChatGPT's page: words in their place, the rest counted by kind, to the forms that public exports show."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from memlab.chats.chatgpt_marks import without_marks
from memlab.chats.conversation import Tally
from tests.chat_exports import read, write
from tests.test_chats_chatgpt import conversation, node


def mark(kind: str, *fields: str) -> str:
    return "\ue200" + "\ue202".join([kind, *fields]) + "\ue201"


CASES = (
    ("To Linz ", mark("cite", "turn0search1", "turn0news2"), " now", "To Linz now", "cite"),
    ("File", mark("filecite", "turn0file1", "L42-L98"), ".", "File.", "filecite"),
    ("As you said ", mark("memcite"), ".", "As you said.", "memcite"),
    ("In ", mark("entity", '["city","Linz","Austria"]'), "!", "In Linz!", ""),
    ("In ", '\ue200entity["city","Linz"]\ue201', "!", "In Linz!", ""),
    ("In ", mark("entity", '["city", "Linz", "broken'), "!", "In Linz!", ""),
    ("", mark("entity", '["only"]'), "", "only", ""),
    ("see ", mark("url", "Site", "https://x.y"), ".", "see Site (https://x.y).", ""),
    ("see ", mark("url", "the result", "turn0search0"), ".", "see the result.", ""),
    ("see ", mark("url", "https://x.y"), ".", "see https://x.y.", ""),
    ("", mark("video", "A walk", "turn0youtube12"), "", "A walk", ""),
    ("", mark("link_title", "Open site", "turn0search4"), "", "Open site", ""),
    ("", mark("navlist", "News of Linz", "turn0news3,turn0news10"), "", "News of Linz", ""),
    ("", mark("image_group", '{"layout":"carousel","query":["Toyota MR2","Porsche 924"]}'), "",
     "[image: Toyota MR2, Porsche 924]", ""),
    ("", mark("i", "turn0image0"), "", "[image]", ""),
    ("", mark("products", '{"selections":[["turn0product1","Charger"],["turn0product2","Lamp"]],"tags":["x"]}'), "",
     "Charger, Lamp", ""),
    ("", mark("product_entity", '["turn0product0","Skates"]'), "", "Skates", ""),
    ("", mark("map", '{"query":"cafés in Graz"}'), "", "cafés in Graz", ""),
    ("", mark("genui", '{"math_block_widget":{"content":"a^2 + b^2 = c^2"}}'), "", "a^2 + b^2 = c^2", ""),
    ("", mark("genui", '{"ask_user_input":{"questions":[{"question":"Which?","options":["A","B"]}]}}'), "",
     "Which?, A, B", ""),
    ("a ", mark("genui", '{"app_block":{"content":"<div>x</div>"}}'), " b", "a b", "genui"),
    ("a", mark("genui", "N0Ws"), mark("finance", "turn0finance0") + mark("forecast", "turn0forecast0"), "a",
     "finance, forecast, genui"),
    ("", mark("of_tomorrow", "words", '{"payload":"hidden"}'), "", "words", ""),
    ("It is ", "\ue203fast\ue204", ".\ue206", "It is fast.", ""),
    ("cut ", "\ue200cite\ue202turn0search3", " off", "cut off", "cite"),
    ("cut", " \ue200", "", "cut", "cite"),
    ("old 【4†source】", " and 【12:3†a.pdf】", " and :contentReference[oaicite:2]{index=2}.", "old and and.", "cite"),
    ("【注】 stays", ", ", "[cite] stays", "【注】 stays, [cite] stays", ""))


@pytest.mark.parametrize(("before", "middle", "after", "plain", "kinds"), CASES)
def test_a_mark_gives_its_words_or_is_counted(before: str, middle: str, after: str, plain: str, kinds: str) -> None:
    tally = Tally()
    assert without_marks(before + middle + after, [], tally) == plain
    assert list(tally.counts) == ([f"marks of ChatGPT's page left out ({kinds})"] if kinds else [])


def test_results_are_named_by_the_references_of_the_message(tmp_path: Path) -> None:
    products, nav = mark("products", '{"selections":[]}'), mark("navlist", "Links", "turn0news1")
    references: list[dict[str, Any]] = [
        {"matched_text": products, "type": "products", "products": [{"title": "Kettle"}, {"name": "Pot"}, 3]},
        {"matched_text": nav, "type": "nav_list", "items": [{"title": "One", "url": "https://n.org/1"}]}]
    chat = conversation("x", node("q", None, "user", "icon \ue203 stays"),
                        node("a", "q", "assistant", f"Buy: {products}\n{nav}",
                             metadata={"content_references": references}), current="a")
    assert [text for *_, text in read(write(tmp_path, {"conversations.json": [chat]}))[0][0][2]] == [
        "icon \ue203 stays", "Buy: Kettle, Pot\nLinks: One"]


@pytest.mark.parametrize("text", [
    "\ue200" * 200_000, "\ue200" + "a" * 400_000, "\ue200cite" + "\ue202turn0" * 100_000, "\u3010" + "1" * 200_000,
    "\u30101\u2020" * 100_000, " " * 300_000, mark("entity", "[" * 100_000),
    mark("navlist", "turn1a1," * 100_000 + "x"),
    ":contentReference[oaicite:" * 20_000], ids=range(9))
def test_marks_without_an_end_take_linear_time(text: str) -> None:
    start = time.process_time()
    without_marks(text, [], Tally())
    assert time.process_time() - start < 3


def test_the_titles_of_a_result_are_named_once() -> None:
    reference = {"matched_text": mark("products", "x1"), "products": [{"title": "T" * 1000}]}
    assert without_marks(mark("products", "x1") * 1000, [reference], Tally()).count("T") == 1000
