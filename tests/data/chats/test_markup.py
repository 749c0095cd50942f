"""HTML as plain text: what it shows, and a time that is linear in text that is no HTML at all."""

from __future__ import annotations

import time

import pytest

from memlab.data.chats.markup import MOST_INDENTS, to_text


@pytest.mark.parametrize(("markup", "text"), [
    ("<h3>Steps</h3><ol><li><p>One</p></li><li>Two<ul><li>in</li></ul></li></ol><p>End</p>",
     "Steps\n\n1. One\n2. Two\n  - in\n\nEnd"),
    ("<table><tr><th>A</th><th>B</th></tr>\n<tr><td><p>1</p></td><td>2 3</td></tr></table>after",
     "A | B\n1 | 2 3\n\nafter"),
    ("one<br>two<br/>three<hr>four", "one\ntwo\nthree\n\nfour"),
    ("<p>a\n   b&nbsp;<b>c</b> <i>d</i>, e</p>", "a b c d, e"),
    ('<a href="https://x.org/a">x.org</a> <a href="https://y.org">https://y.org</a> <a href="#top">up</a>',
     "x.org (https://x.org/a) https://y.org up"),
    ('<img src="https://x.org/p/cat.png?v=1"><img alt="A dog" src="d.png"><img src="data:image/png;base64,AAAA">',
     "[image: cat.png][image: A dog][image]"),
    ("run <code>a &lt;b&gt; </code>now<script>alert(1)</script><style>p{}</style>", "run `a <b> `now"),
    ("<pre>if x:\n    <span>y</span>\n</pre>", "```\nif x:\n    y\n```"),
    ("5 < 6 and <<a&b &#x110000; &#99999999999999;", "5 < 6 and <<a&b \ufffd &#99999999999999;"),
    ("<pre></li></ul></code></td>", "```"),
    ("", ""),
])
def test_what_is_shown(markup: str, text: str) -> None:
    assert to_text(markup) == text


def test_nesting_costs_no_stack_and_no_indents() -> None:
    deep = to_text("<ul><li>" * 20_000 + "x")
    assert max(len(line) - len(line.lstrip()) for line in deep.splitlines()) == 2 * MOST_INDENTS
    assert to_text("<div><b>" * 50_000 + "x").strip() == "x"


@pytest.mark.parametrize("piece", ["<a ", "<", "</", "<!--", '<a b="', "<a b='>\"", "<a b ", "&#", "&#9", "<?",
                                   "<script>", "<pre>", "<td><p>x", "<a href='http://x'>y", "<![CDATA[", "<a  "])
def test_broken_markup_takes_linear_time(piece: str) -> None:
    start = time.process_time()
    to_text(piece * (600_000 // len(piece)))
    assert time.process_time() - start < 4
