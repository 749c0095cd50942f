"""A headless Chromium with a profile of its own, and the report of made-up runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from memlab.report.build import ReportFiles, build
from tests.report.samples import make_runs

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--window-size=1280,1700", "--force-prefers-reduced-motion")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReportFiles:
    """The report of six made-up arms on sixty questions."""
    folder = tmp_path_factory.mktemp("runs") / "adaptive_k" / "synthetic"
    return build(make_runs(folder), expected=["fixed_10", "fixed_5", "gap", "budget"])


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, driven by selenium; tests skip with a reason where either is absent."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install -e '.[test]'")
    for path in (CHROMIUM, DRIVER):
        if not shutil.which(path):
            pytest.skip(f"{path} is not here: apt-get install chromium chromium-driver")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    os.environ.setdefault("SE_OFFLINE", "true")  # selenium must not look for drivers on the network
    driver = selenium.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()
