from __future__ import annotations

import html.parser
import json
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from memlab.experiment.harness.results import ArmRun
from memlab.report import html as report_html
from memlab.report.build import ReportFiles
from memlab.report.html import LISTED, _json, _questions, page, unpack
from memlab.report.view_model import ReportView


class Reader(html.parser.HTMLParser):
    """Collects elements, the text of scripts by id, and addresses that a browser would ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.data: dict[str, str] = {}
        self._script: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v for k, v in attrs if k in ("src", "href", "action") and v and not v.startswith("#")]
        self._script = dict(attrs).get("id") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script:
            self.data[self._script] = self.data.get(self._script, "") + data


@pytest.fixture(scope="module")
def text(report: ReportFiles) -> str:
    return report.html.read_text(encoding="utf-8")


def test_hostile_text_makes_no_element_and_stays_readable_as_data(text: str) -> None:
    read = Reader(text)
    assert read.tags.count("script") == 3  # the questions, and two of ours
    assert "img" not in read.tags
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029]", text.split("<script>")[0])
    drill = json.loads(unpack(read.data["drill"]))
    question = next(q for q in drill["questions"] if q["q"] == 3)
    assert "</script><script>window.broken = 1</script>" in question["text"]
    assert "שלום עולם" in question["text"]
    assert not {"\x1b", "\u202e"} & {*question["text"]}


def test_the_file_is_one_asks_for_nothing_is_small_and_has_the_shared_design(text: str) -> None:
    assert Reader(text).addresses == []
    assert "default-src 'none'" in text
    assert len(text.encode()) < 300_000
    assert Path(report_html.__file__).with_name("templates").joinpath("design.css").read_text() in text
    assert text.count("light-dark(#") >= 20


def test_the_page_is_read_from_top_to_bottom(text: str) -> None:
    order = ["<h1>", '<section id="verdict"', '<section id="picture"', '<section id="arms"', '<section id="questions"',
             '<section id="more-detail"', *(f'<details id="{name}"' for name in (
                 "contrasts", "types", "reliability", "importances", "settings", "statistics", "provenance"))]
    places = [text.index(mark) for mark in order]
    assert places == sorted(places)
    assert text.count("<details open") == 0
    assert "memlab run +exp=adaptive_k &lt;b&gt;</pre>" in text
    assert "budget has no finished run" in text
    assert "looks at gold: " in text
    for term in ("CR2", "sign-flip p", "power", "Holm"):
        assert term in text.partition('<dl class="terms">')[2].partition("</dl>")[0]


def test_the_verdict_stands_first_with_what_to_do_to_copy(text: str, view: ReportView) -> None:
    verdict = re.sub(r"<[^>]+>", "", text.partition('<section id="verdict"')[2].partition("</section>")[0])
    shown = unescape(" ".join(verdict.split()))
    assert view.opening.sentence in shown
    assert all(" ".join(sentence.split()) in shown for sentence in view.opening.sure)
    commands = [["run it", "memlab run 'a <b>'"]]
    acting = page(ReportView({**view.comparison, "act": commands}, view.arms))
    assert '<div class="copy"><code>memlab run &#39;a &lt;b&gt;&#39;</code></div>' in acting


def test_without_scripting_the_differing_questions_are_a_table(text: str, view: ReportView) -> None:
    plain = text.partition('<div id="plain">')[2].partition('<ol id="list"')[0]
    assert view.differing
    assert [int(q) for q in re.findall(r'<td dir="auto">#(\d+) ', plain)] == [
        q.question for q in view.differing][:LISTED]


def test_names_are_escaped_wherever_they_stand(view: ReportView) -> None:
    evil = "<img src=x onerror=alert(1)>"
    comparison = json.loads(json.dumps(view.comparison).replace("fixed_5", evil))
    comparison |= {"experiment": evil, "notes": [evil], "missing": [evil]}
    arms = [replace(arm, name=arm.name.replace("fixed_5", evil)) for arm in view.arms]
    assert "img" not in Reader(page(ReportView(comparison, arms))).tags


def test_json_has_no_number_and_no_character_that_a_browser_cannot_read() -> None:
    value = {"a": "</script>&\u2028", "b": [math.nan, math.inf, 1.5], "c": "\ud800"}
    assert json.loads(_json(value)) == {"a": value["a"], "b": [None, None, 1.5], "c": "?"}


def test_questions_are_left_out_only_where_they_take_too_much(
        view: ReportView, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(unpack(_questions(view)))
    assert whole["left_out"] == 0
    monkeypatch.setattr(report_html, "QUESTIONS", 6_000)
    packed = _questions(view)
    part = json.loads(unpack(packed))
    assert len(packed) <= 6_000
    assert 0 < len(part["questions"]) < len(whole["questions"])
    assert len(part["questions"]) + part["left_out"] == len(whole["questions"])


def test_a_report_of_one_arm_without_contrasts_says_so(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    one = arms[0]
    comparison = report.comparison | {"arms": {one.name: report.comparison["arms"][one.name]}, "contrasts": [],
                                      "exploratory": [], "noop": [], "constant_k": {}, "rule_curves": {},
                                      "missing": [], "notes": [], "experiment": "single", "verdict": None}
    text = page(ReportView(comparison, [one]))
    assert f"<h1>What does {one.name} find in synthetic?</h1>" in text
    assert '<details id="contrasts"' not in text
    assert "Question by question" in text
