"""LoCoMo: ten long conversations between two people, about two hundred questions each.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024),
github.com/snap-research/locomo. Reads the official file whatever its number of conversations.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from memlab.data import benchmarks, readers
from memlab.data.benchmarks import Builder
from memlab.data.subset import Subset, known_types
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""The official numbers; much public code maps them wrongly."""

_EVIDENCE = re.compile(r"D:?(\d{1,9}):(\d{1,9})(?!\d)")
_SESSION = re.compile(r"session_(\d{1,9})")

TurnPositions = dict[tuple[int, int], tuple[int, int]]
"""(session, turn) as a ``dia_id`` numbers them -> (session, turn) by position."""


@stage
class LoCoMo(Subset):
    """A conversation is a corpus; both people are users with a name; a question is (sample_id, index)."""

    benchmark: ClassVar = "locomo"

    # null = $MEMLAB_HOME/data/locomo10.json, where fetch puts it; .gz and .xz are read too
    path: LocalPath | None = None
    # audit of wrong labels (JSON of the locomo-audit repository); adds results without them; null = no audit
    label_errors: LocalPath | None = None

    def __post_init__(self) -> None:
        benchmarks.find("locomo", self.path)
        if self.label_errors is not None and not self.label_errors.is_file():
            raise MemlabError("no such file", where=str(self.label_errors),
                              fix="correct data.label_errors, or set it to null")
        known_types(self.types, CATEGORIES.values())

    def load(self) -> Tables:
        """Read the file; raise MemlabError naming file, record and field where it is not as expected."""
        path = benchmarks.find("locomo", self.path)
        errors = _label_errors(self.label_errors) if self.label_errors is not None else {}
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
                spot = f"{where}, field qa[{index}]"
                wording, error = errors.get((sample, index), (None, None))
                if wording is not None and wording != readers.need(item, "question", str, spot):
                    raise MemlabError(f"the label audit names another question here: '{wording}'", where=spot,
                                      fix="give the audit made for this release of LoCoMo")
                _question(build, first + index, corpus, item, turns, last, spot, f"{sample}:{index}", error)
            first += len(questions)
        return self.cut(build.tables(), build.missing)

    def identity(self) -> dict[str, Any]:
        """Return the benchmark, checksums and options."""
        audit = readers.sha256(self.label_errors) if self.label_errors is not None else None
        return {"benchmark": "locomo", "sha256": readers.sha256(benchmarks.find("locomo", self.path)),
                "label_errors": audit, **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        notes = ["LoCoMo gives no question date: the day of a conversation's last session is used, so the as-of "
                 "filter hides nothing."]
        if self.label_errors is None:
            notes.append("About 6 % of LoCoMo's gold answers are wrong by audit; without data.label_errors no "
                         "result without them can be given.")
        return notes + super().notes()


def _label_errors(path: Path) -> dict[tuple[str, int], tuple[str, str]]:
    """Read an audit: (sample_id, index of the question) -> (wording of the question, error).

    The file is a JSON list of ``{sample_id, index, error_type, question, ...}``. The wording guards against an audit of
    another release.
    """
    errors = {}
    for number, record in enumerate(readers.records(path)):
        where = f"{path}, record {number}"
        sample, index = readers.need(record, "sample_id", str, where), readers.need(record, "index", int, where)
        errors[sample, index] = (readers.need(record, "question", str, where),
                                 readers.need(record, "error_type", str, where))
    return errors


def _conversation(build: Builder, corpus: int, record: dict[str, Any], where: str) -> tuple[TurnPositions, datetime]:
    """Add the sessions in the order of their dates; return the position of each turn, and the last date."""
    where += ", field conversation"
    conversation = readers.need(record, "conversation", dict, where)
    sessions = []
    for key in conversation:
        if match := _SESSION.fullmatch(key):  # a date key without a session is skipped
            date = readers.need(conversation, f"{key}_date_time", str, where)
            said_on = readers.moment(date, "%I:%M %p on %d %B, %Y", f"{where}.{key}_date_time",
                                     "1:56 pm on 8 May, 2023")
            sessions.append((said_on, int(match[1]), readers.need(conversation, key, list, where)))
    if not sessions:
        raise MemlabError("there is no session, expected a list under session_1", where=where)
    sessions.sort(key=lambda s: s[:2])
    positions: TurnPositions = {}
    for session, (said_on, number, turns) in enumerate(sessions):
        build.session(corpus=corpus, session=session, said_on=said_on, name=f"session_{number}")
        for turn, item in enumerate(turns):
            spot = f"{where}.session_{number}[{turn}]"
            dia = readers.need(item, "dia_id", str, spot)
            if match := _EVIDENCE.fullmatch(dia):
                positions[int(match[1]), int(match[2])] = (session, turn)
            build.turn(corpus=corpus, session=session, turn=turn, role="user",
                       speaker=readers.need(item, "speaker", str, spot), text=_text(item, spot), name=dia)
    return positions, sessions[-1][0]


def _text(turn: dict[str, Any], where: str) -> str:
    """Return what was said and the caption of a shared picture; never ``query``, which nobody said."""
    text: str = readers.need(turn, "text", str, where)
    if turn.get("blip_caption") is None:
        return text
    caption = readers.need(turn, "blip_caption", str, where).strip()
    return f"{text} [image: {caption}]".lstrip() if caption else text


def _question(build: Builder, question: int, corpus: int, item: dict[str, Any], turns: TurnPositions,
              asked_on: datetime, where: str, name: str, error: str | None) -> None:
    number = readers.need(item, "category", int, where)
    if number not in CATEGORIES:
        raise MemlabError(f"expected a number from 1 to 5, got {number}", where=f"{where}, field category")
    cited = [readers.text_of(e, f"{where}, field evidence") for e in readers.need(item, "evidence", list, where)]
    ids = [(int(session), int(turn)) for text in cited for session, turn in _EVIDENCE.findall(text)]
    evidence = sorted({turns[id_] for id_ in ids if id_ in turns})
    unread = sum(bool(text.strip()) and not _EVIDENCE.search(text) for text in cited)
    build.missing_evidence(question=question, number=unread + len({id_ for id_ in ids if id_ not in turns}))
    build.question(question=question, corpus=corpus, text=readers.need(item, "question", str, where),
                   asked_on=asked_on, name=name, answer=_answer(item, number, where), category=CATEGORIES[number],
                   abstain=number == 5, scored=bool(evidence), label_error=error)
    for session, turn in evidence:
        build.evidence(question=question, session=session, turn=turn)


def _answer(item: dict[str, Any], category: int, where: str) -> str | None:
    """Return the gold answer; None for an adversarial question, where declining is always right."""
    if category == 5:
        return None
    answer = str(readers.need(item, "answer", (str, int, float), where))
    return answer.split(";")[0].strip() if category == 3 else answer
