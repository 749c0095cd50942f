"""Answers of the questions page to its browser, and who may ask.

Other pages of the same browser can reach a server on loopback. So each address begins with a random token, a request
must name this machine as its host (against names that are rebound to 127.0.0.1) and, where it names an origin, this
page; and no answer allows another origin to read it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError

from memlab.data.questions import planning
from memlab.data.questions.log import Log, TurnPlace
from memlab.data.questions.marking import Change, Conflict, MarkedQuestion, Marking, NewQuestion
from memlab.data.questions.pool import Asked, Pools
from memlab.support.errors import MemlabError, error_message
from memlab.support.text.display import shorten

MOST = 1_000_000
"""Bytes of a request at most; a question with a thousand pieces of evidence has some 100,000."""

SEARCHED = 500
"""Characters of a search that are read."""

EXCERPT = 400
"""Characters of a turn that are shown beside the question that it was proposed for."""

FOUND = 30
"""Turns that a search shows."""

LOOPBACK = ("127.0.0.1", "localhost")

_JSON, _HTML = "application/json", "text/html; charset=utf-8"


@dataclass(frozen=True)
class PageReply:
    """An answer: its status, its content, and headers beside those of every answer."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(status: int, value: Mapping[str, Any]) -> PageReply:
    """Return an answer that holds a JSON object."""
    return PageReply(status, json.dumps(value).encode(), {"Content-Type": _JSON})


class Site:
    """The page and what it asks for: ``state``, ``question``, ``search``; ``change`` and ``add`` write."""

    def __init__(self, marking: Marking, pools: Pools, about: Mapping[str, Any]) -> None:
        self.marking, self.pools, self.about = marking, pools, about
        self.log: Log = marking.log
        self.token = secrets.token_urlsafe(24)

    def answer(self, method: str, target: str, host: str, origin: str | None, body: bytes = b"") -> PageReply:
        """Answer a request with these headers Host and Origin; never raises."""
        try:
            url = urlsplit(target)
            _, token, *rest = [*url.path.split("/", 2), ""]
            if urlsplit(f"//{host}").hostname not in LOOPBACK or origin not in (None, f"http://{host}"):
                return PageReply(403)
            if not secrets.compare_digest(token.encode(), self.token.encode()):
                return PageReply(404)
            fields = {name: values[0] for name, values in parse_qs(url.query, max_num_fields=10).items()}
        except ValueError:  # of an address
            return PageReply(400)
        try:
            return self._answer(method, rest[0], fields, body)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            return as_json(400, {"error": f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"})
        except Conflict as conflict:
            return as_json(409, {"error": str(conflict)})
        except Exception as error:  # the page shows it, and goes on
            return as_json(400 if isinstance(error, MemlabError) else 500, {"error": error_message(error)})

    def _answer(self, method: str, name: str, fields: Mapping[str, str], body: bytes) -> PageReply:
        match method, name:
            case "GET", "":
                return _page()
            case "GET", "state":
                return as_json(200, self._state())
            case "GET", "question":
                return as_json(200, self._question(self._entry(fields)))
            case "GET", "search":
                corpus = self._entry(fields).line.corpus
                places, count = self.log.search(corpus, fields.get("text", "")[:SEARCHED], FOUND)
                return as_json(200, {"turns": [self.log.describe(place) for place in places], "count": count})
            case "POST", "change":
                return as_json(200, self._question(self.marking.change(Change.model_validate_json(body))))
            case "POST", "add":
                entry = self.marking.add(NewQuestion.model_validate_json(body))
                self.pools.ask([_question_of(entry)])
                return as_json(200, self._question(entry))
        return PageReply(404)

    def _entry(self, fields: Mapping[str, str]) -> MarkedQuestion:
        name = fields.get("name", "")
        if name not in self.marking.entries:
            raise MemlabError(f"there is no question '{name}'", fix="load the page again")
        return self.marking.entries[name]

    def _state(self) -> dict[str, Any]:
        """Return what the page shows beside a question."""
        entries = list(self.marking.entries.values())
        return {**self.about, "corpora": self.log.corpora, "turns": len(self.log),
                "entries": [{"name": e.line.question, "corpus": e.line.corpus, "text": e.line.text, "status": e.status,
                             "evidence": len(e.line.evidence), "revision": e.revision} for e in entries],
                "plan": planning.plan(planning.sizes(self.marking.questions())),
                "assumption": planning.ASSUMPTION,
                "depth": self.pools.depth, "waiting": self.pools.waiting > 0, "fault": self.pools.fault}

    def _question(self, entry: MarkedQuestion) -> dict[str, Any]:
        """Return a question with its candidates, in the order of the log: what was found, and what is evidence."""
        line, log = entry.line, self.log
        asked = _question_of(entry)
        marked = {TurnPlace(log.number(line.corpus, one.session), one.turn) for one in line.evidence
                  if one.turn is not None and (line.corpus, one.session) in log}
        source = set() if entry.source is None else {entry.source}
        found, _ = log.search(line.corpus, asked.text, self.pools.depth)
        places = log.without_copies(sorted({*found, *self.pools.of(asked), *marked, *source}))
        return {"name": line.question, "corpus": line.corpus, "status": entry.status, "revision": entry.revision,
                "text": line.text, "answer": line.answer or "", "source": self._source(entry),
                "evidence": [one.model_dump() for one in line.evidence],
                "candidates": [{**log.describe(place), "source": not source.isdisjoint(log.copies(place))}
                               for place in sorted(places)]}

    def _source(self, entry: MarkedQuestion) -> dict[str, str] | None:
        """Return the turn that a question was proposed from, or the beginning of a long one."""
        if entry.source is None:
            return None
        shown = self.log.describe(entry.source, near=False)
        return {**{name: shown[name] for name in ("speaker", "said_on", "title")},
                "text": shorten(shown["text"], EXCERPT)}


def _question_of(entry: MarkedQuestion) -> Asked:
    return Asked(entry.line.corpus, entry.first)


def _page() -> PageReply:
    """Return the page, which loads nothing but what it asks of this server; texts of the log come as data."""
    own, nonce = files("memlab.data.questions"), secrets.token_urlsafe(16)
    parts = {"/* design */": files("memlab.report") / "templates" / "design.css", "/* style */": own / "page.css",
             "/* script */": own / "page.js"}
    page = (own / "page.html").read_text("utf-8")
    for mark, part in parts.items():
        page = page.replace(mark, part.read_text("utf-8"))
    policy = (f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; "
              "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    headers = {"Content-Type": _HTML, "Content-Security-Policy": policy}
    return PageReply(200, page.replace("NONCE", nonce).encode(), headers)
