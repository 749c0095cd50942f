"""The questions page in Chromium: keys alone mark evidence, and each change is in the file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memlab.data.jsonl import QUESTIONS
from memlab.data.jsonl import read as read_folder
from memlab.data.questions.server import PageServer
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


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / QUESTIONS
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def test_keys_mark_search_undo_and_each_change_is_saved(browser: Any, server: PageServer, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, 30, poll_frequency=.1)
    browser.get(server.url)
    body, state = browser.find_element("tag name", "body"), browser.find_element("id", "place")
    wait.until(lambda _: state.text == "1 of 2")
    following = browser.find_element("id", "next")
    assert not following.is_displayed()
    assert browser.find_element("id", "source").text == "English"
    card = browser.find_element("css selector", ".ask").text
    assert "2024-03-01" in card
    assert "My cat is called Tom </script><b>&" in card
    assert "My cat is called Tom </script><b>&" in browser.find_element("id", "candidates").text
    assert "assistant: I live in a cat." in browser.find_element("id", "candidates").text
    body.send_keys("a")
    wait.until(lambda _: lines(tmp_path))
    assert lines(tmp_path) == [{"question": "q1", "corpus": "ann", "text": "What is my cat called?",
                                "answer": "Tom", "evidence": [{"session": "s1", "turn": 0}]}]
    wait.until(lambda _: state.text == "2 of 2")
    assert following.text.endswith("memlab run x=<b>")
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
    assert read_folder(tmp_path).faults == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
