"""LoCoMo: ten long conversations between two people, about two hundred questions each.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024),
github.com/snap-research/locomo. Reads the official file whatever its number of conversations.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from memlab.data import benchmarks, readers
from memlab.data.build import Builder
from memlab.data.locomo_audit import label_errors
from memlab.data.subset import Subset, known_types
from memlab.errors import MemlabError
from memlab.stage import LocalPath, stage
from memlab.tables import Tables

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""The official numbers; much public code maps them wrongly."""

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")

Turns = dict[tuple[int, int], tuple[int, int]]
"""(session, turn) as a ``dia_id`` numbers them -> (session, turn) by position."""


@stage
class LoCoMo(Subset):
    """A conversation is a corpus; both people are users with a name; a question is (sample_id, index)."""

    # null = $MEMLAB_HOME/data/locomo10.json, where fetch puts it; .gz and .xz are read too
    path: LocalPath | None = None
    # audit of wrong labels (JSON of locomo-audit); adds results without them; null = none at hand
    label_errors: LocalPath | None = None

    def __post_init__(self) -> None:
        benchmarks.find("locomo", self.path)
        benchmarks.find_extra(self.label_errors, "label_errors")
        known_types(self.types, CATEGORIES.values())

    @property
    def name(self) -> str:
        """``locomo``, or ``locomo-pooled``."""
        return self.pooled_name("locomo")

    def load(self) -> Tables:
        """Read the file; raises MemlabError naming file, record and field where it is not as expected."""
        path = benchmarks.find("locomo", self.path)
        wrong = label_errors(self.label_errors) if self.label_errors is not None else {}
        build, first = Builder(), 0
        for corpus, record in enumerate(readers.records(path)):
            where = f"{path}, record {corpus}"
            readers.expect_format(record, "LoCoMo", where)
            sample = readers.need(record, "sample_id", str, where)
            where += f" ({sample})"
            build.corpus(corpus=corpus, name=sample)
            turns, last = _conversation(build, corpus, record, where)
            questions = readers.need(record, "qa", list, where)
            for index, item in enumerate(questions):
                audit = wrong.get((sample, index))
                spot = f"{where}, field qa[{index}]"
                if audit is not None and audit.question != readers.need(item, "question", str, spot):
                    raise MemlabError(f"the label audit names another question here: '{audit.question}'", where=spot,
                                      fix="give the audit made for this release of LoCoMo")
                _question(build, first + index, corpus, item, turns, last, spot, f"{sample}:{index}",
                          audit.error if audit else None)
            first += len(questions)
        return self.cut(build.tables())

    def identity(self) -> dict[str, Any]:
        """Benchmark, checksums and options."""
        audit = readers.sha256(self.label_errors) if self.label_errors is not None else None
        return {"benchmark": "locomo", "sha256": readers.sha256(benchmarks.find("locomo", self.path)),
                "label_errors": audit, **self.options()}

    def notes(self) -> list[str]:
        """What a reader of the results must know."""
        notes = ["LoCoMo gives no question date: the day of a conversation's last session is used, so the as-of "
                 "filter hides nothing."]
        if self.label_errors is None:
            notes.append("About 6 % of LoCoMo's gold answers are wrong by audit; without data.label_errors no "
                         "result without them can be given.")
        return notes + super().notes()

    def clusters(self) -> bool:
        """Questions of one conversation are not independent."""
        return True


def _conversation(build: Builder, corpus: int, record: dict[str, Any], where: str) -> tuple[Turns, datetime]:
    """Add the sessions in the order of their dates; return where each turn lies, and the last date."""
    where += ", field conversation"
    talk = readers.need(record, "conversation", dict, where)
    sessions = []
    for key in talk:
        if match := _SESSION.fullmatch(key):  # a date key without a session is passed over
            said_on = _moment(readers.need(talk, f"{key}_date_time", str, where), f"{where}.{key}_date_time")
            sessions.append((said_on, int(match[1]), readers.need(talk, key, list, where)))
    if not sessions:
        raise MemlabError("there is no session, expected a list under session_1", where=where)
    sessions.sort(key=lambda s: s[:2])
    places: Turns = {}
    for session, (said_on, number, turns) in enumerate(sessions):
        build.session(corpus=corpus, session=session, said_on=said_on, name=f"session_{number}")
        for turn, item in enumerate(turns):
            spot = f"{where}.session_{number}[{turn}]"
            dia = readers.need(item, "dia_id", str, spot)
            if match := _EVIDENCE.fullmatch(dia):
                places[int(match[1]), int(match[2])] = (session, turn)
            build.turn(corpus=corpus, session=session, turn=turn, role="user",
                       speaker=readers.need(item, "speaker", str, spot), text=_text(item, spot), name=dia)
    return places, sessions[-1][0]


def _text(turn: dict[str, Any], where: str) -> str:
    """What was said, and what the shared picture shows; never ``query``, which is not part of the talk."""
    text: str = readers.need(turn, "text", str, where)
    if turn.get("blip_caption") is None:
        return text
    caption = readers.need(turn, "blip_caption", str, where).strip()
    return f"{text} [image: {caption}]".lstrip() if caption else text


def _question(build: Builder, question: int, corpus: int, item: dict[str, Any], turns: Turns, asked_on: datetime,
              where: str, name: str, error: str | None) -> None:
    number = readers.need(item, "category", int, where)
    if number not in CATEGORIES:
        raise MemlabError(f"expected a number from 1 to 5, got {number}", where=f"{where}, field category")
    cited = [readers.text_of(e, f"{where}, field evidence") for e in readers.need(item, "evidence", list, where)]
    named = [(int(a), int(b)) for e in cited for a, b in _EVIDENCE.findall(e)]
    found = sorted({turns[at] for at in named if at in turns})
    build.question(question=question, corpus=corpus, text=readers.need(item, "question", str, where),
                   asked_on=asked_on, name=name, answer=_answer(item, number, where), category=CATEGORIES[number],
                   abstain=number == 5, scored=bool(found), label_error=error)
    for session, turn in found:
        build.evidence(question=question, session=session, turn=turn)


def _answer(item: dict[str, Any], category: int, where: str) -> str | None:
    """The gold answer; none for an adversarial question, where declining is right whatever stands there."""
    if category == 5:
        return None
    answer = str(readers.need(item, "answer", (str, int, float), where))
    return answer.split(";")[0].strip() if category == 3 else answer


def _moment(text: str, where: str) -> datetime:
    """Read a date such as ``1:56 pm on 8 May, 2023``."""
    try:
        return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y")
    except ValueError:
        raise MemlabError(f"'{text}' is not a date", where=where, fix="write it as 1:56 pm on 8 May, 2023") from None
