"""The page of proposed questions in Chromium: keys alone mark evidence and save a file that data=custom reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlab.data.jsonl import read as read_folder
from memlab.questions.pool import Candidate, page
from tests.chat_exports import json_lines, write
from tests.questions.test_propose import CAT, LINES, SESSIONS, TEA

pytestmark = pytest.mark.slow


def test_keys_mark_evidence_and_the_saved_lines_are_valid(browser: Any, tmp_path: Path) -> None:
    pools = [[Candidate("s1", 0, ()), Candidate("s1", 1, ()), Candidate("s2", 0, ())], [Candidate("s2", 1, ())]]
    write(tmp_path, {"questions.html": page(SESSIONS, [CAT, TEA], pools, 3), "sessions.jsonl": json_lines(*LINES)})
    browser.get((tmp_path / "questions.html").as_uri())
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    body = browser.find_element("tag name", "body")
    state = browser.find_element("id", "state")
    assert state.text == ("Question 1 of 2. Pool depth 3; 1 of 4 candidates not looked at (25 %); "
                          "0 of 2 questions with evidence.")
    assert "My cat is called Tom </script><b>&" in browser.find_element("id", "candidates").text
    body.send_keys("jjx")
    body.send_keys("kkx")
    body.send_keys("jxx")
    assert len(browser.find_elements("css selector", "li.evidence")) == 2
    body.send_keys("n")
    assert "Question 2 of 2" in state.text
    assert "0 of 4 candidates not looked at (0 %); 1 of 2 questions with evidence." in state.text
    body.send_keys("x")
    body.send_keys("e")
    field = browser.switch_to.active_element
    field.send_keys(" Really?")
    assert "Question 2 of 2" in state.text  # letters in the field are no commands
    saved = browser.execute_script("return lines()")
    assert [json.loads(line) for line in saved.splitlines()] == [
        {"question": "q1", "corpus": "ann", "text": "What is my cat called?",
         "evidence": [{"session": "s1", "turn": 0}, {"session": "s2", "turn": 0}]},
        {"question": "q2", "corpus": "ann", "text": "What do I prefer? Really?",
         "evidence": [{"session": "s2", "turn": 1}]}]
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.find_element("tag name", "body").send_keys("s")
    WebDriverWait(browser, 30).until(lambda _: (tmp_path / "questions.jsonl").exists())
    assert (tmp_path / "questions.jsonl").read_text("utf-8") == saved
    assert read_folder(tmp_path).faults == []
    browser.refresh()
    assert json.loads(browser.execute_script("return lines()").splitlines()[0])["evidence"]  # kept by the browser
    browser.find_element("tag name", "body").send_keys("d")
    assert "(dropped)" in browser.find_element("id", "state").text
    assert len(browser.execute_script("return lines()").splitlines()) == 1
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
