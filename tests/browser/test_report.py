"""The report in a real browser: it draws, filters, sorts, and nothing in the data comes alive."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memlab.harness.results import finished_arms
from memlab.report.build import ReportFiles

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser: Any, report: ReportFiles) -> Any:
    return opened(browser, report)


def opened(browser: Any, report: ReportFiles, address: str = "") -> Any:
    """Load the page afresh and wait until it has unpacked and drawn everything."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get("about:blank")
    browser.get_log("browser")  # what other pages wrote is no matter of this one
    browser.get(report.html.as_uri() + address)
    WebDriverWait(browser, 60).until(lambda page: page.execute_script("return document.documentElement.dataset.ready"))
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


def test_a_question_tells_why_its_first_turn_is_ahead_in_learned_fusion(page: Any, report: ReportFiles) -> None:
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
    assert len(box.find_elements("css selector", ".bar")) == 4
    assert page.execute_script("return window.broken === undefined && document.images.length === 0")


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


def sizes(page: Any) -> dict[str, tuple[int, int]]:
    """Width and height of each chart's drawing."""
    found = page.execute_script(
        "return [...document.querySelectorAll('.chart')].map(e => [e.id, e.querySelector('svg.main-svg')"
        ".getBoundingClientRect()]).map(([id, box]) => [id, box.width, box.height])")
    return {name: (width, height) for name, width, height in found}


def test_charts_keep_their_height_when_the_window_changes(page: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    before = sizes(page)
    try:
        for width in (700, 1100, 700):
            page.set_window_size(width, 900)
            WebDriverWait(page, 20).until(lambda p: width - 120 < sizes(p)["chart-tokens"][0] <= width)  # noqa: B023
            now = sizes(page)
            assert {name: size[1] for name, size in now.items()} == {name: size[1] for name, size in before.items()}
    finally:
        page.set_window_size(1280, 1700)
    WebDriverWait(page, 20).until(lambda p: sizes(p) == before)


def test_on_a_phone_nothing_is_wider_than_the_screen_and_the_legend_lies_below(
        browser: Any, report: ReportFiles) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
    try:
        page = opened(browser, report)
        assert page.execute_script("return document.documentElement.scrollWidth") == 390
        plot, legend = (page.execute_script(
            f"return document.querySelector('#chart-tokens {part}').getBoundingClientRect().toJSON()")
            for part in (".xy .plot, #chart-tokens .cartesianlayer", ".legend"))
        assert legend["top"] >= plot["bottom"]
        assert plot["width"] > 250
        frame = page.find_element("id", "chart-heat")
        assert int(frame.get_property("scrollWidth")) > int(frame.get_property("clientWidth"))  # it scrolls inside
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def luminance(colour: str) -> float:
    """Relative luminance of an rgb(...) colour (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


SMALL_PRINT = """
const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (!/^rgba\\(.*, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
const all = 'p, li, small, dt, dd, th, td, .chip, .id, .scale span, .badge, summary, .tool, label';
return [...document.querySelectorAll(all)].filter((e) => e.offsetParent && e.textContent.trim())
  .map((e) => [getComputedStyle(e).color, behind(e), e.outerHTML.slice(0, 80)]);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_by_day_and_by_night(browser: Any, report: ReportFiles, scheme: str) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                            {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    try:
        page = opened(browser, report, "#?open=3")
        paper = luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
        assert (paper > 0.5) == (scheme == "light")
        pairs = page.execute_script(SMALL_PRINT)
        assert len(pairs) > 200
        for ink, ground, where in pairs:
            low, high = sorted((luminance(ink), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground, where)
        axis = page.execute_script("return getComputedStyle(document.querySelector('#chart-tokens .xtick text')).fill")
        assert abs(luminance(axis) - paper) > 0.3
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_an_address_leads_back_to_what_was_on_the_page(page: Any, browser: Any, report: ReportFiles) -> None:
    next(h for h in heads_of(page) if "tokens" in h.text).find_element("tag name", "button").click()
    choose(page, "f-a", "gap")
    choose(page, "f-b", "fixed_10")
    page.find_element("id", "f-differ").click()
    page.find_element("css selector", "#list .row").click()
    metric = page.find_element("css selector", "select[data-chart=heat]").find_elements("tag name", "option")[1]
    metric.click()
    questions, metric_name = listed(page), metric.text
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
    assert again.find_element("css selector", "select[data-chart=heat]").get_attribute("value") == metric_name
    assert "arm=gap" in again.current_url


@pytest.mark.parametrize("address", ["#?open=x.9999&arm=nobody&by=&arms-table=99.up&tokens=no&type=<b>", "#?%zz", "#?"])
def test_an_address_that_fits_nothing_opens_the_page_as_it_is(browser: Any, report: ReportFiles, address: str) -> None:
    page = opened(browser, report, address)
    assert css(page, "#chart-tokens svg.main-svg")
    assert page.get_log("browser") == []


def saved(page: Any, folder: Path, name: str) -> bytes:
    """Wait for a download, and return what it holds."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 30).until(lambda _: (folder / name).is_file() and (folder / name).stat().st_size)
    return (folder / name).read_bytes()


def test_tables_and_charts_are_saved_as_files(page: Any, report: ReportFiles, tmp_path: Path) -> None:
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    name = f"{report.comparison['experiment']}-on-{report.comparison['data']}"
    for label in ("CSV", "LaTeX"):
        page.find_element("css selector", "#arms .tools").find_element("xpath", f"button[.='{label}']").click()
    rows = list(csv.reader(saved(page, tmp_path, f"{name}-arms.csv").decode().splitlines()))
    arms = report.comparison["arms"]
    assert [row[0].split()[0] for row in rows[1:]] == list(arms)
    column = rows[0].index("tokens")
    assert [float(row[column].replace(",", "")) for row in rows[1:]] == [
        pytest.approx(arm["tokens_mean"], abs=0.6) for arm in arms.values()]
    assert any(head.endswith(": 95 % interval") for head in rows[0])
    lines = saved(page, tmp_path, f"{name}-arms.tex").decode().splitlines()
    body = lines[lines.index("\\midrule") + 1:lines.index("\\bottomrule")]
    assert len(body) == len(arms)
    assert {line.count(" & ") for line in body} == {len(heads_of(page)) - 1}
    assert all(line.endswith("\\\\") for line in body)
    assert any("fixed\\_10" in line for line in body)
    for label, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        page.find_element("css selector", "#cost .tools").find_element("xpath", f"button[.='{label}']").click()
        assert saved(page, tmp_path, f"{name}-tokens.{label.lower()}").startswith(begins)
    assert page.get_log("browser") == []


def heads_of(page: Any) -> list[Any]:
    return css(page, "#arms-table thead th")
