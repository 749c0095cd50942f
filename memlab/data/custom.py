"""Your own conversations: a folder with ``sessions.jsonl`` and ``questions.jsonl``, one JSON object a line.

sessions.jsonl, one chat or one meeting a line (``speaker`` may be left out; people talking to each other are all
users, and have names)::

    {"corpus": "ann", "session": "s1", "said_on": "2023-05-20", "turns": [
        {"role": "user", "text": "I adopted a cat."}, {"role": "assistant", "text": "Lovely!"}]}

questions.jsonl; only question, corpus and text are needed. ``evidence`` names what answers the question: sessions,
and turns counted from 0 where they are known. Without ``asked_on`` the day of the corpus' last session is taken::

    {"question": "q1", "corpus": "ann", "text": "Which pet do I have?", "asked_on": "2023-06-01T18:30",
     "answer": "a cat", "category": "pets", "evidence": [{"session": "s1", "turn": 0}], "abstain": false}

(An object must stand on one line; it is broken here to be readable.)
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from memlab.data import readers
from memlab.data.build import Builder
from memlab.data.jsonl import QUESTIONS, SESSIONS, read
from memlab.data.jsonl import validate as validate
from memlab.data.subset import Subset
from memlab.errors import Faults, MemlabError
from memlab.stage import LocalPath, stage
from memlab.tables import Tables


@stage
class Custom(Subset):
    """The folder's sessions in the order of their days; a corpus is what one question may search."""

    path: LocalPath | None = None  # the folder that holds sessions.jsonl and questions.jsonl; needed

    def __post_init__(self) -> None:
        if self.path is None or not self.path.is_dir():
            here = "no folder is given" if self.path is None else f"{self.path} is no folder"
            raise MemlabError(here, where="data.path", fix=f"give a folder that holds {SESSIONS} and {QUESTIONS}")

    @property
    def name(self) -> str:
        """The folder's name, after ``custom-``."""
        return self.pooled_name(f"custom-{self._folder().name}")

    def load(self) -> Tables:
        """Read the folder; raises Faults with everything that is wrong with it."""
        found = read(self._folder())
        if found.faults:
            raise Faults(found.faults)
        build = Builder()
        corpora = {name: i for i, name in enumerate(dict.fromkeys(corpus for corpus, _ in found.sessions))}
        for name, corpus in corpora.items():
            build.corpus(corpus=corpus, name=name)
        places: dict[tuple[str, str], int] = {}
        last: dict[str, datetime] = {}
        for session in sorted(found.sessions.values(), key=lambda s: (corpora[s.corpus], s.said_on)):
            corpus, place = corpora[session.corpus], sum(c == session.corpus for c, _ in places)
            places[session.corpus, session.session], last[session.corpus] = place, session.said_on
            build.session(corpus=corpus, session=place, said_on=session.said_on, name=session.session)
            for t, turn in enumerate(session.turns):
                build.turn(corpus=corpus, session=place, turn=t, role=turn.role, speaker=turn.speaker, text=turn.text,
                           name=f"{session.session}:{t}")
        for number, question in enumerate(found.questions.values()):
            build.question(question=number, corpus=corpora[question.corpus], text=question.text,
                           asked_on=question.asked_on or last[question.corpus], name=question.question,
                           answer=question.answer, category=question.category, abstain=question.abstain,
                           scored=bool(question.evidence))
            cited = {(places[question.corpus, e.session], e.turn) for e in question.evidence}
            for place, at in sorted(cited, key=lambda c: (c[0], -1 if c[1] is None else c[1])):
                build.evidence(question=number, session=place, turn=at)
        return self.cut(build.tables())

    def identity(self) -> dict[str, Any]:
        """Checksums of both files, and options."""
        sums = {name: readers.sha256(self._folder() / name) for name in (SESSIONS, QUESTIONS)}
        return {"benchmark": "custom", **sums, **self.options()}

    def notes(self) -> list[str]:
        """What a reader of the results must know."""
        undated = sum(q.asked_on is None for q in read(self._folder()).questions.values())
        said = [f"{undated} questions have no date: the day of their corpus' last session is taken."] if undated else []
        return said + super().notes()

    def clusters(self) -> bool:
        """Questions that search the same corpus are not independent."""
        corpora = [q.corpus for q in read(self._folder()).questions.values()]
        return len(set(corpora)) < len(corpora)

    def _folder(self) -> Path:
        assert self.path is not None
        return self.path
