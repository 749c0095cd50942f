"""The report in a real browser: it steps, filters, sorts, copies, and nothing in the data comes alive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.experiment.harness.results import finished_arms
from memlab.report import units
from memlab.report.build import ReportFiles
from tests.browser.pages import choose, css, everything, heads_of, listed, opened, values

pytestmark = pytest.mark.nightly


@pytest.fixture
def page(browser: Any, report: ReportFiles) -> Any:
    return opened(browser, report)


def test_it_shows_one_picture_without_an_error_or_a_request(page: Any) -> None:
    assert page.find_element("id", "chart-wide").is_displayed()
    assert not page.find_element("id", "chart-narrow").is_displayed()
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    place = os.environ.get("MEMLAB_SCREENSHOT")
    if place:  # the picture of the docs
        Path(place).write_bytes(page.get_screenshot_as_png())


def test_the_list_begins_with_the_verdicts_metric_its_arms_and_where_they_differ(
        page: Any, report: ReportFiles) -> None:
    pair = report.view.pair
    assert pair is not None
    chosen = {field: page.execute_script(
        "const e = document.getElementById(arguments[0]); return e.options[e.selectedIndex].text", field)
        for field in ("f-a", "f-b", "f-metric")}
    assert chosen == {"f-a": pair.arm, "f-b": pair.other, "f-metric": units.label(pair.metric)}
    assert page.find_element("id", "f-differ").is_selected()
    one, two = values(report, pair.arm, pair.metric), values(report, pair.other, pair.metric)
    assert listed(page) == {q for q in one if one[q] != two[q]}


def test_n_and_p_step_through_the_questions(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    def at() -> list[int]:
        return [int(e.get_attribute("data-question")) for e in css(page, "#list > li:has(.detail)")]

    everything(page)
    every = page.execute_script("return [...document.querySelectorAll('#list > li')].map(e => +e.dataset.question)")
    page.execute_script("document.activeElement.blur()")
    for key, expected in (("n", every[0]), ("n", every[1]), ("p", every[0])):
        page.switch_to.active_element.send_keys(key)
        assert at() == [expected]
    page.find_element("id", "next").click()
    assert at() == [every[1]]
    page.find_element("id", "f-text").send_keys("n", Keys.BACKSPACE)  # a letter in a field is a letter
    assert at() == [every[1]]


def test_only_questions_on_which_the_chosen_arms_differ(page: Any, report: ReportFiles) -> None:
    metric = "selected/session/recall_all"
    everything(page)
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
    everything(page)
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
    everything(page)
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


def test_a_question_tells_why_its_first_turn_is_ahead_in_learned_fusion(page: Any, report: ReportFiles) -> None:
    everything(page)
    choose(page, "f-a", "gap")
    choose(page, "f-b", "fixed_10")
    page.find_element("id", "f-text").send_keys("#7")
    page.find_element("css selector", "#list .row").click()
    left, right = css(page, "#list .sides > div")
    assert right.find_elements("css selector", ".reason") == []
    (box,) = left.find_elements("css selector", ".reason")
    gap = next(arm for arm in finished_arms(report.html.parent).arms if arm.name == "gap")
    table = gap.ranking.filter(question=7).sort("rank")
    summary = box.find_element("tag name", "summary")
    assert f"session {table['session'][0]}, turn 0 is ahead of session {table['session'][1]}, turn 0" in summary.text
    summary.click()
    rows = [row.text for row in box.find_elements("css selector", "tbody tr")]
    assert [row.split()[:2] for row in rows] == [["z", "dense"], ["z", "lexical"], ["<img", "src=x"], ["all", "others"]]
    assert rows[3].endswith("+0.25")
    assert len(box.find_elements("css selector", ".bars i")) == 4
    assert page.execute_script("return window.broken === undefined && document.images.length === 0")


def test_hostile_text_is_shown_and_never_runs(page: Any) -> None:
    everything(page)
    page.find_element("id", "f-text").send_keys("#3")
    page.find_element("css selector", "#list .row").click()
    text = page.find_element("id", "list").text
    assert "</script><script>window.broken = 1</script>" in text
    assert "שלום עולם" in text
    assert "\\u202e" in text
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


def test_on_a_phone_the_table_has_the_columns_that_fit_and_all_on_demand(
        browser: Any, report: ReportFiles) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
    try:
        page = opened(browser, report)
        page.execute_script("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
        assert page.execute_script("return document.documentElement.scrollWidth") == 390
        assert page.find_element("id", "chart-narrow").is_displayed()
        assert not page.find_element("id", "chart-wide").is_displayed()
        frame = page.find_element("css selector", "#arms .scroll")
        assert frame.get_property("scrollWidth") == frame.get_property("clientWidth")
        page.find_element("id", "columns").click()
        assert frame.get_property("scrollWidth") > frame.get_property("clientWidth")
        left = page.execute_script("""
            const frame = document.querySelector('#arms .scroll');
            const name = document.querySelector('#arms-table tbody th');
            frame.scrollLeft = 200;
            return name.getBoundingClientRect().left - frame.getBoundingClientRect().left""")
        assert 0 <= left <= 2
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_an_address_leads_back_to_what_was_on_the_page(page: Any, browser: Any, report: ReportFiles) -> None:
    next(h for h in heads_of(page) if "tokens" in h.text).find_element("tag name", "button").click()
    choose(page, "f-a", "gap")
    choose(page, "f-b", "fixed_10")
    page.find_element("css selector", "#list .row").click()
    questions = listed(page)
    opened_one = page.find_element("css selector", "#list .row[aria-expanded=true]").text
    order = [th.get_attribute("data-sort") for th in css(page, "#arms-table tbody th")]
    address = page.current_url.removeprefix(report.html.as_uri())
    assert address.startswith("#?")

    again = opened(browser, report, address)
    assert listed(again) == questions
    row = again.find_element("css selector", "#list .row[aria-expanded=true]")
    assert row.text == opened_one
    top = again.execute_script("return arguments[0].getBoundingClientRect().top", row)
    assert 0 <= top < again.execute_script("return innerHeight")
    assert [th.get_attribute("data-sort") for th in css(again, "#arms-table tbody th")] == order
    assert "arm=gap" in again.current_url


@pytest.mark.parametrize("address", ["#?open=x.9999&arm=nobody&by=&arms-table=99.up&differ=no&type=<b>", "#?%zz", "#?"])
def test_an_address_that_fits_nothing_opens_the_page_as_it_is(browser: Any, report: ReportFiles, address: str) -> None:
    page = opened(browser, report, address)
    assert css(page, "#list > li")
    assert page.get_log("browser") == []
