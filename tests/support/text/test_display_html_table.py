from __future__ import annotations

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from memlab.support.text.display import html_table, paragraphs


@given(st.text(alphabet="<>&\"'ab /", max_size=30))
def test_every_text_is_shown_as_it_is_written(text: str) -> None:
    page = html_table([text], [[text]], text) + paragraphs([text])
    assert re.findall(r"<(/?\w+)", page) == [
        *("table", *(("caption", "/caption") if text else ()), "tr", "th", "/th", "/tr", "tr", "td", "/td", "/tr",
          "/table", "p", "/p")]
    (cell,) = re.findall("<td>(.*?)</td>", page)
    assert unescape(cell) == text.strip()


def test_control_characters_are_visible() -> None:
    assert "\\x1b" in html_table(["a"], [["\x1b[31m"]])
