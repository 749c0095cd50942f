"""ChatGPT: another vendor's tree, and marks of its page: words in their place, the rest counted by kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.data.chats.chatgpt import without_marks
from memlab.data.chats.conversation import Tally
from memlab.data.chats.formats import load
from memlab.support.errors import MemlabError
from tests.chat_exports import SAMPLES, write


def mark(kind: str, *fields: str) -> str:
    return "\ue200" + "\ue202".join([kind, *fields]) + "\ue201"


CASES = (
    ("To Linz ", mark("cite", "turn0search1", "turn0news2"), " now", "To Linz now", "cite"),
    ("File", mark("filecite", "turn0file1", "L42-L98"), ".", "File.", "filecite"),
    ("In ", mark("entity", '["city","Linz","Austria"]'), "!", "In Linz!", ""),
    ("In ", '\ue200entity["city","Linz"]\ue201', "!", "In Linz!", ""),
    ("In ", mark("entity", '["city", "Linz", "broken'), "!", "In Linz!", ""),
    ("see ", mark("url", "Site", "https://x.y"), ".", "see Site (https://x.y).", ""),
    ("see ", mark("url", "the result", "turn0search0"), ".", "see the result.", ""),
    ("see ", mark("url", "https://x.y"), ".", "see https://x.y.", ""),
    ("", mark("navlist", "News of Linz", "turn0news3,turn0news10"), "", "News of Linz", ""),
    ("", mark("image_group", '{"layout":"carousel","query":["Toyota MR2","Porsche 924"]}'), "",
     "[image: Toyota MR2, Porsche 924]", ""),
    ("", mark("i", "turn0image0"), "", "[image]", ""),
    ("", mark("products", '{"selections":[["turn0product1","Charger"],["turn0product2","Lamp"]],"tags":["x"]}'), "",
     "Charger, Lamp", ""),
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


def test_another_vendor_s_tree_is_not_taken_for_chatgpt_s(tmp_path: Path) -> None:
    write(tmp_path, SAMPLES["deepseek"]["files"])
    assert load(tmp_path).format.name == "deepseek"
    with pytest.raises(MemlabError, match="several formats: chatgpt, deepseek"):
        load(write(tmp_path, {f"chatgpt/{name}": content for name, content in SAMPLES["chatgpt"]["files"].items()}))


@pytest.mark.parametrize(("before", "middle", "after", "plain", "kinds"), CASES)
def test_a_mark_gives_its_words_or_is_counted(before: str, middle: str, after: str, plain: str, kinds: str) -> None:
    tally = Tally()
    assert without_marks(before + middle + after, tally) == plain
    assert list(tally.counts) == ([f"marks of ChatGPT's page left out ({kinds})"] if kinds else [])
