"""What the report saves and copies: tables, charts, and the words of its verdict."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from memlab.report.build import ReportFiles, build
from tests.browser.pages import css, heads_of, opened
from tests.report.samples import make_runs
from tests.sealing import seal

pytestmark = pytest.mark.nightly


@pytest.fixture
def page(browser: Any, report: ReportFiles) -> Any:
    return opened(browser, report)


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
    order = [row[0] for row in rows[1:]]
    assert sorted(order) == sorted(arms)
    column = rows[0].index("context tokens (tokens)")
    assert [float(row[column].replace(",", "")) for row in rows[1:]] == [
        pytest.approx(arms[name]["tokens_mean"], abs=0.6) for name in order]
    metric = next(i for i, head in enumerate(rows[0]) if head.endswith("recall_all) low"))
    assert all(float(low) <= float(value) <= float(high) for value, low, high in (
        row[metric - 1:metric + 2] for row in rows[1:] if row[metric]))
    lines = saved(page, tmp_path, f"{name}-arms.tex").decode().splitlines()
    body = lines[lines.index("\\midrule") + 1:lines.index("\\bottomrule")]
    assert len(body) == len(arms)
    assert {line.count(" & ") for line in body} == {len(heads_of(page)) - 1}
    assert all(line.endswith("\\\\") for line in body)
    assert any("fixed\\_10" in line and "\\scriptsize [" in line for line in body)
    for label, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        page.find_element("css selector", "#picture .tools").find_element("xpath", f"button[.='{label}']").click()
        assert saved(page, tmp_path, f"{name}-chart.{label.lower()}").startswith(begins)
    assert page.get_log("browser") == []


@pytest.mark.parametrize("cell", ["=1+1", "-1+cmd|' /C calc'!A0", "+cmd", "@SUM(1)", "\u2212-1+x"])
def test_what_a_spreadsheet_would_run_is_saved_as_text(page: Any, tmp_path: Path, cell: str) -> None:
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.execute_script("""
        const table = document.querySelector('#arms-table');
        table.tBodies[0].rows[0].cells[0].dataset.sort = arguments[0];
        delete table.tBodies[0].rows[0].cells[1].dataset.sort;
        table.tBodies[0].rows[0].cells[1].textContent = '\u22123.1 points';""", cell)
    page.find_element("css selector", "#arms .tools").find_element("xpath", "button[.='CSV']").click()
    (file,) = (path for path in [tmp_path / "adaptive_k-on-synthetic-arms.csv"])
    row = next(iter(list(csv.reader(saved(page, tmp_path, file.name).decode().splitlines()))[1:]))
    assert row[0] == (cell if cell[0] == "\u2212" else f"'{cell}")
    assert row[1] == "-3.1"


def test_words_to_do_are_copied(browser: Any, tmp_path: Path) -> None:
    folder = make_runs(tmp_path / "adaptive_k" / "synthetic")
    for one in folder.iterdir():
        seal(one, overrides=["rank/select=budget"])
    report = build(folder)
    page = opened(browser, report)
    box = css(page, ".copy")[0]
    box.find_element("tag name", "button").click()
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 10).until(lambda _: box.find_element("tag name", "button").text in ("Copied", "Marked"))
    assert box.find_element("tag name", "code").text == report.view.opening.act[0][1]
