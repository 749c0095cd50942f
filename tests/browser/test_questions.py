"""The questions page in Chromium: keys alone mark evidence, and each change is in the file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memlab.data.jsonl import QUESTIONS
from memlab.data.questions.server import PageServer
from tests.data.questions.test_marking import lines
from tests.data.questions.test_site import make_site

pytestmark = pytest.mark.nightly


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    with PageServer(make_site(tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_keys_mark_search_undo_and_each_change_is_saved(browser: Any, server: PageServer, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, 30, poll_frequency=.1)
    browser.get(server.url)
    body, state = browser.find_element("tag name", "body"), browser.find_element("id", "place")
    wait.until(lambda _: state.text == "1 of 2")
    assert "2024-03-01" in browser.find_element("css selector", ".ask").text
    found = browser.find_element("id", "candidates").text
    assert "My cat is called Tom </script><b>&" in found
    assert "assistant: I live in a cat." in found
    body.send_keys("a")
    wait.until(lambda _: (tmp_path / QUESTIONS).exists())
    assert [(line["answer"], line["evidence"]) for line in lines(tmp_path)] == [("Tom", [{"session": "s1", "turn": 0}])]
    wait.until(lambda _: state.text == "2 of 2")
    assert browser.find_element("id", "next").text.endswith("memlab run x=<b>")
    body.send_keys("s")
    wait.until(lambda _: "2 of 2 decided" in browser.find_element("id", "count").text)
    body.send_keys("u")
    wait.until(lambda _: "1 of 2 decided" in browser.find_element("id", "count").text)
    body.send_keys("/")
    browser.switch_to.active_element.send_keys("rains", Keys.ENTER)
    wait.until(lambda _: browser.find_elements("css selector", "#results .turn"))
    body.send_keys("x")
    wait.until(lambda _: len(lines(tmp_path)) == 2)
    assert lines(tmp_path)[1]["evidence"] == [{"session": "s2", "turn": 2}]
    body.send_keys("e")
    browser.switch_to.active_element.send_keys(Keys.END, " Really?", Keys.ESCAPE)
    wait.until(lambda _: lines(tmp_path)[1]["text"].endswith("Really?"))
    body.send_keys("o")
    browser.switch_to.active_element.send_keys("Where do I live?", Keys.ENTER)
    wait.until(lambda _: len(lines(tmp_path)) == 3)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
