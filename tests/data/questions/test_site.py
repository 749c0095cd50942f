"""Answers of the page's server, without one: who may ask, what it shows, and what it writes."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memlab.data.jsonl import QUESTIONS, read
from memlab.data.questions.log import Log
from memlab.data.questions.marking import Marking
from memlab.data.questions.pool import Asked, Pools
from memlab.data.questions.propose import propose
from memlab.data.questions.site import PageReply, Site
from memlab.store import Store
from tests.chat_exports import json_lines, write
from tests.data.questions.test_propose import LINES, SESSIONS
from tests.small import lexical

HOST = "127.0.0.1:4321"


def make_site(folder: Path) -> Site:
    write(folder, {"sessions.jsonl": json_lines(*LINES)})
    marking = Marking(folder, Log(SESSIONS), propose(SESSIONS), [])
    return Site(marking, Pools(SESSIONS, {"words": lexical()}, Store(), 2),
                {"folder": "f", "file": "f/q", "next": "memlab run x=<b>", "source": "English"})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


def ask(site: Site, path: str, body: object = None, **more: Any) -> PageReply:
    method = "GET" if body is None else "POST"
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    target = more.pop("target", f"/{site.token}/{path}")
    return site.answer(method, target, more.get("host", HOST), more.get("origin"), content)


CHANGE: dict[str, Any] = {"name": "q1", "revision": 0, "status": "kept", "text": "What is my cat called?",
                          "answer": "Tom", "evidence": [{"session": "s1", "turn": 0}]}


def test_only_this_page_of_this_machine_is_answered(site: Site) -> None:
    for more, status in (({"host": "evil.example"}, 403), ({"host": "evil.example:4321"}, 403), ({"host": ""}, 403),
                         ({"origin": "http://evil.example"}, 403), ({"origin": "null"}, 403),
                         ({"origin": "http://127.0.0.1:9"}, 403), ({"target": "/wrong/change"}, 404),
                         ({"target": "/change"}, 404), ({"target": "//[/"}, 400), ({"target": "/ü/change"}, 404)):
        assert ask(site, "change", CHANGE, **more).status == status
    assert not (site.marking.folder / QUESTIONS).exists()
    assert ask(site, "change", CHANGE, origin=f"http://{HOST}").status == 200
    assert not [name for name in ask(site, "state").headers if name.lower().startswith("access-control")]


def test_the_page_loads_nothing_and_runs_only_its_own_script(site: Site) -> None:
    page = ask(site, "")
    text, policy = page.content.decode(), page.headers["Content-Security-Policy"]
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert text.count(f'nonce="{nonce}"') == 2
    assert "default-src 'none'" in policy
    for foreign in ("NONCE", "http://", "https://", "innerHTML", "Tom"):  # the log comes as data
        assert foreign not in text


def test_a_question_has_candidates_with_neighbours_and_its_source(site: Site) -> None:
    shown = json.loads(ask(site, "question?name=q1").content)
    (source,) = [turn for turn in shown["candidates"] if turn["source"]]
    assert source["after"] == {"speaker": "assistant", "text": "I live in a cat."}
    assert [(copy["session"], copy["turn"]) for copy in source["copies"]] == [("s1", 0)]
    assert shown["source"] == {"speaker": "user", "said_on": "2024-03-01", "title": "s1", "text": source["text"]}
    assert json.loads(ask(site, "search?name=q1&text=rain").content)["count"] == 1


def test_changes_are_saved_and_two_windows_do_not_overwrite_each_other(site: Site) -> None:
    assert ask(site, "change", CHANGE).status == 200
    assert ask(site, "change", {**CHANGE, "answer": "Tim"}).status == 409
    assert [line.answer for line in read(site.marking.folder).questions] == ["Tom"]
    state = json.loads(ask(site, "state").content)
    assert state["plan"].startswith("With 1 question no difference can be shown")
    assert state["entries"][0] == {"name": "q1", "corpus": "ann", "text": "What is my cat called?", "status": "kept",
                                   "evidence": 1, "revision": 1}


def test_own_questions_get_the_pool_of_the_systems(site: Site) -> None:
    added = json.loads(ask(site, "add", {"corpus": "ann", "text": "Does it rain?"}).content)
    until = time.monotonic() + 30
    while site.pools.waiting and time.monotonic() < until:
        time.sleep(.05)
    shown = json.loads(ask(site, f"question?name={added['name']}").content)
    assert "It rains." in [turn["text"] for turn in shown["candidates"]]
    assert [one.text for one in read(site.marking.folder).questions] == ["Does it rain?"]


def test_an_interrupt_ends_the_search_for_pools_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt  # polars does so in the thread that it works in

    hooked: list[object] = []
    monkeypatch.setattr(threading, "excepthook", hooked.append)
    before = set(threading.enumerate())
    pools = Pools(SESSIONS, {"words": SimpleNamespace(run=interrupted)}, Store(), 2)  # type: ignore[dict-item]
    pools.ask([Asked("ann", "Does it rain?")])
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
    assert hooked == []
    assert pools.waiting == 1  # so the command ends the process at once


def test_odd_bodies_are_refused(site: Site) -> None:
    for body in (b"", b"{", b"[]", b"\xff", b'{"name": "q1"}', b"[" * 100_000, b'{"corpus": "ann", "text": "  "}',
                 b'{"corpus": "x", "text": "Q?"}'):
        replies = [ask(site, path, body) for path in ("change", "add")]
        assert [reply.status for reply in replies] == [400, 400]
        assert all(json.loads(reply.content)["error"] for reply in replies)
    assert not (site.marking.folder / QUESTIONS).exists()
    assert [ask(site, path).status for path in ("nothing", "question?name=q77")] == [404, 400]
