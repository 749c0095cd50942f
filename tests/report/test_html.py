from __future__ import annotations

import html.parser
import io
import json
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from memlab.evaluate.contrast import UNKNOWN
from memlab.harness.results import ArmRun, finished_arms
from memlab.report import differing, view_model
from memlab.report import html as report_html
from memlab.report.build import ReportFiles
from memlab.report.console import print_comparison
from memlab.report.effects import bars
from memlab.report.html import LISTED, _json, _questions, page, unpack
from memlab.report.markdown import escape
from memlab.report.opening import opening


class Reader(html.parser.HTMLParser):
    """Collects elements, the text of scripts by id, and addresses that a browser would ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.data: dict[str, str] = {}
        self._script: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.addresses += [v for k, v in attrs if k in ("src", "href", "action") and v and not v.startswith("#")]
        self._script = found.get("id") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script:
            self.data[self._script] = self.data.get(self._script, "") + data


@pytest.fixture(scope="module")
def text(report: ReportFiles) -> str:
    return report.html.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_hostile_text_makes_no_element_and_stays_readable_as_data(text: str, read: Reader) -> None:
    assert read.tags.count("script") == 3  # the questions, and two of ours
    assert "img" not in read.tags
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029]", text.split("<script>")[0])
    drill = json.loads(unpack(read.data["drill"]))
    question = next(q for q in drill["questions"] if q["q"] == 3)
    assert "</script><script>window.broken = 1</script>" in question["text"]
    assert "שלום עולם" in question["text"]
    assert "\x1b" not in question["text"]
    assert "\u202e" not in question["text"]


def test_the_file_is_one_asks_for_nothing_and_is_small(text: str, read: Reader) -> None:
    assert read.addresses == []
    assert "default-src 'none'" in text
    assert len(text.encode()) < 300_000


def test_the_page_is_read_from_top_to_bottom(text: str, report: ReportFiles) -> None:
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


def test_the_verdict_stands_first_with_what_to_do_to_copy(text: str, report: ReportFiles) -> None:
    found = opening(report.comparison)
    reader = re.sub(r"<[^>]+>", "", text.partition('<section id="verdict"')[2].partition("</section>")[0])
    shown = unescape(" ".join(reader.split()))
    assert found.sentence in shown
    assert all(" ".join(sentence.split()) in shown for sentence in found.sure)
    acts = re.findall(r'<div class="copy"><code>(.*?)</code></div>', text, re.S)
    assert [unescape(act) for act in acts] == [what for _, what in found.act]


def test_without_scripting_the_differing_questions_are_a_table(text: str, report: ReportFiles) -> None:
    pair = differing.pair(report.comparison, opening(report.comparison))
    assert pair is not None
    arms = finished_arms(report.html.parent).arms
    found = differing.questions(arms, pair)
    plain = text.partition('<div id="plain">')[2].partition('<ol id="list"')[0]
    assert found
    assert [int(q) for q in re.findall(r'<td dir="auto">#(\d+) ', plain)] == [q.question for q in found][:LISTED]


def test_the_design_is_the_shared_file_in_light_and_dark(text: str) -> None:
    design = Path(report_html.__file__).with_name("templates").joinpath("design.css").read_text()
    assert design in text
    assert text.count("light-dark(#") >= 20


def test_names_are_escaped_wherever_they_stand(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    evil = "<img src=x onerror=alert(1)>"
    comparison = json.loads(json.dumps(report.comparison).replace("fixed_5", evil))
    comparison |= {"experiment": evil, "notes": [evil], "missing": [evil]}
    reader = Reader()
    reader.feed(page(comparison, [replace(arm, name=arm.name.replace("fixed_5", evil)) for arm in arms]))
    assert "img" not in reader.tags


def test_json_has_no_number_and_no_character_that_a_browser_cannot_read() -> None:
    value = {"a": "</script>&\u2028", "b": [math.nan, math.inf, 1.5], "c": "\ud800"}
    assert json.loads(_json(value)) == {"a": value["a"], "b": [None, None, 1.5], "c": "?"}


def test_questions_are_left_out_only_where_they_take_too_much(
        arms: tuple[ArmRun, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["session/recall_all@5"]
    whole = json.loads(unpack(_questions(arms, columns, None)))
    assert whole["left_out"] == 0
    monkeypatch.setattr(report_html, "QUESTIONS", 6_000)
    packed = _questions(arms, columns, None)
    part = json.loads(unpack(packed))
    assert len(packed) <= 6_000
    assert 0 < len(part["questions"]) < len(whole["questions"])
    assert len(part["questions"]) + part["left_out"] == len(whole["questions"])


def test_intervals_lie_on_one_scale_with_zero_and_amounts_on_their_own() -> None:
    rate = {**UNKNOWN, "metric": "session/mrr", "difference": 0.1, "low": 0.0, "high": 0.2}
    tokens = {**UNKNOWN, "metric": "context/tokens", "difference": -500.0, "low": -800.0, "high": -200.0}
    none = {**UNKNOWN, "metric": "session/mrr"}
    one, two, three = bars([view_model.ContrastRow("", "open", (), row) for row in (rate, tokens, none)])
    assert one is not None
    assert two is not None
    assert three is None
    assert one.low == one.zero < one.at < one.high
    assert one.at == pytest.approx((one.low + one.high) / 2)
    assert 0 < two.low < two.at < two.high < two.zero <= 100


def test_a_report_of_one_arm_without_contrasts_says_so(report: ReportFiles, arms: tuple[ArmRun, ...]) -> None:
    one = arms[0]
    comparison = report.comparison | {"arms": {one.name: report.comparison["arms"][one.name]}, "contrasts": [],
                                      "exploratory": [], "noop": [], "constant_k": {}, "rule_curves": {},
                                      "missing": [], "notes": []}
    text = page(comparison, [one])
    alone = page(comparison | {"experiment": "single"}, [one])
    assert f"<h1>What does {one.name} find in synthetic?</h1>" in alone
    assert '<details id="contrasts"' not in text
    assert "Question by question" in text


def test_the_page_the_document_and_the_terminal_begin_with_the_verdict(report: ReportFiles) -> None:
    sentence = opening(report.comparison).sentence
    markdown = report.markdown.read_text()
    assert markdown.index(escape(sentence)) < markdown.index("| arm |")
    out = io.StringIO()
    print_comparison(report.comparison, Console(file=out, width=200))
    assert sentence in out.getvalue()


def test_the_highest_figure_of_a_column_is_bold_and_none_of_an_arm_that_looks_at_gold(report: ReportFiles) -> None:
    columns = view_model.metric_columns(report.comparison)
    rows = {row.name: row for row in view_model.arm_rows(report.comparison, opening(report.comparison))}
    for at, metric in enumerate(columns):
        values = {name: arm["metrics"][metric]["value"] for name, arm in report.comparison["arms"].items()
                  if not arm["oracle"] and metric in arm["metrics"]}
        highest = {name for name in values if values[name] == max(values.values())}
        top = highest if len(set(values.values())) > 1 else set()
        assert {name for name, row in rows.items() if row.cells[at].best} == top
    assert any(cell.best for row in rows.values() for cell in row.cells)
