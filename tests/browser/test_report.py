"""The report in a real browser: it draws, filters, sorts, and nothing in the data comes alive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.harness.results import finished_arms
from memlab.report.build import ReportFiles

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser: Any, report: ReportFiles) -> Any:
    browser.get(report.html.as_uri())
    return browser


def css(page: Any, selector: str) -> list[Any]:
    return page.find_elements("css selector", selector)


def choose(page: Any, field: str, label: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(page.find_element("id", field)).select_by_visible_text(label)


def listed(page: Any) -> set[int]:
    while css(page, "#more:not([hidden])"):
        page.execute_script("document.getElementById('more').click()")
    return set(page.execute_script("return [...document.querySelectorAll('#list > li')].map(e => +e.dataset.question)"))


def values(report: ReportFiles, arm: str, metric: str) -> dict[int, float | None]:
    table = next(a.questions for a in finished_arms(report.html.parent).arms if a.name == arm)
    return dict(table.select("question", metric).iter_rows())


def test_it_draws_every_chart_without_an_error_or_a_request(page: Any) -> None:
    for name in ("heat", "tokens", "paired", "reliability"):
        assert css(page, f"#chart-{name} svg.main-svg"), name
    assert len(css(page, "#chart-tokens .scatterlayer .trace")) == 7  # the curve and six arms
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    place = os.environ.get("MEMLAB_SCREENSHOT")
    if place:  # the README's picture
        Path(place).write_bytes(page.get_screenshot_as_png())


def test_only_questions_on_which_the_chosen_arms_differ(page: Any, report: ReportFiles) -> None:
    metric = "selected/session/recall_all"
    assert len(listed(page)) == 60
    choose(page, "f-a", "gap")
    choose(page, "f-b", "fixed_10")
    page.find_element("id", "f-differ").click()
    one, two = values(report, "gap", metric), values(report, "fixed_10", metric)
    expected = {q for q in one if one[q] != two[q]}
    assert 0 < len(expected) < 60
    assert listed(page) == expected
    assert page.find_element("id", "f-count").text.startswith(f"{len(expected)} of 60 questions")
    choose(page, "f-b", "gap")
    assert listed(page) == set()


def test_words_and_types_filter_and_combine(page: Any, report: ReportFiles) -> None:
    from selenium.webdriver.common.keys import Keys

    table = finished_arms(report.html.parent).arms[0].questions
    page.find_element("id", "f-text").send_keys("CELLO")  # in answers only, and whatever the case
    assert listed(page) == set(table.filter(pl.col("answer").str.contains("cello"))["question"])
    choose(page, "f-type", "multi-session")
    assert listed(page) == set()
    page.find_element("id", "f-text").send_keys(Keys.CONTROL, "a", Keys.DELETE)
    assert listed(page) == set(table.filter(category="multi-session")["question"])
    choose(page, "f-type", "all types")
    page.find_element("id", "f-text").send_keys("#7")
    assert listed(page) == {7}


def test_a_question_opens_with_answer_evidence_and_cut(page: Any, report: ReportFiles) -> None:
    gap = next(a for a in finished_arms(report.html.parent).arms if a.name == "gap")
    rows = gap.shown.sort("question", "rank")
    cut = rows.filter(pl.col("gold") & ~pl.col("selected"))["question"][0]
    mine = rows.filter(question=cut)
    choose(page, "f-a", "gap")
    choose(page, "f-b", "fixed_10")
    page.find_element("id", "f-text").send_keys(f"#{cut}")
    from selenium.webdriver.common.keys import Keys

    page.find_element("css selector", "#list .row").send_keys(Keys.ENTER)  # by keyboard
    detail = page.find_element("css selector", "#list .detail")
    assert str(gap.questions.filter(question=cut)["answer"][0]) in detail.text
    left = detail.find_elements("css selector", ".sides > div")[0]
    units = left.find_elements("css selector", ".units li:not(.cut)")
    assert ["in" in u.get_attribute("class").split() for u in units] == mine["selected"].to_list()
    assert ["gold" in u.get_attribute("class").split() for u in units] == mine["gold"].to_list()
    assert "evidence, cut" in left.text
    assert f"cut here: {mine['selected'].sum()} shown" in left.text
    assert "dense:turn 0." in left.text
    page.find_element("css selector", "#list .row").send_keys(Keys.SPACE)
    assert css(page, "#list .detail") == []


def test_hostile_text_is_shown_and_never_runs(page: Any) -> None:
    page.find_element("id", "f-text").send_keys("#3")
    page.find_element("css selector", "#list .row").click()
    text = page.find_element("id", "list").text
    assert "</script><script>window.broken = 1</script>" in text
    assert "שלום עולם" in text
    assert "⟨U+202E⟩" in text
    assert page.execute_script("return window.broken === undefined && document.images.length === 0")


def test_the_arms_table_sorts_by_any_column_and_says_so(page: Any, report: ReportFiles) -> None:
    heads = css(page, "#arms-table thead th")
    tokens = next(h for h in heads if "tokens" in h.text)
    tokens.find_element("tag name", "button").click()
    assert tokens.get_attribute("aria-sort") == "descending"
    arms = report.comparison["arms"]
    expected = sorted(arms, key=lambda name: -arms[name]["tokens_mean"])
    assert [th.get_attribute("data-sort") for th in css(page, "#arms-table tbody th")] == expected
    tokens.find_element("tag name", "button").click()
    assert [th.get_attribute("data-sort") for th in css(page, "#arms-table tbody th")] == expected[::-1]


def test_another_metric_redraws_the_heat_map(page: Any) -> None:
    cells = "return [...document.querySelectorAll('#chart-heat .heatmap-label')].map(e => e.textContent)"
    before = page.execute_script(cells)
    select = page.find_element("css selector", "select[data-chart=heat]")
    select.find_elements("tag name", "option")[1].click()
    after = page.execute_script(cells)
    assert len(before) == len(after) == 36
    assert before != after
