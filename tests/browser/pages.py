"""What the tests of the report's page do with it."""

from __future__ import annotations

from typing import Any

from memlab.experiment.harness.results import finished_arms
from memlab.report.build import ReportFiles


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


def everything(page: Any) -> None:
    """List also the questions on which the two arms agree."""
    page.find_element("id", "f-differ").click()


def listed(page: Any) -> set[int]:
    while css(page, "#more:not([hidden])"):
        page.execute_script("document.getElementById('more').click()")
    return set(page.execute_script("return [...document.querySelectorAll('#list > li')].map(e => +e.dataset.question)"))


def values(report: ReportFiles, arm: str, metric: str) -> dict[int, float | None]:
    table = next(a.questions for a in finished_arms(report.html.parent).arms if a.name == arm)
    return dict(table.select("question", metric).iter_rows())


def heads_of(page: Any) -> list[Any]:
    return css(page, "#arms-table thead th")
