"""Your own conversations: a folder with ``sessions.jsonl`` and ``questions.jsonl``, one JSON object per line.

sessions.jsonl has one chat or meeting per line. ``speaker`` may be left out; people who talk to each other are all
users, and have names. ``said_on`` may be null: every question sees such a session. ``memlab import`` writes
this file from a chat export::

    {"corpus": "ann", "session": "s1", "said_on": "2023-05-20", "turns": [
        {"role": "user", "text": "I adopted a cat."}, {"role": "assistant", "text": "Lovely!"}]}

A line may also have ``user``, ``agent``, ``room``, ``source``, ``kind`` (names) and ``metadata`` (an object of
JSON), by which ``query/where`` filters. A live memory keeps them, ``named`` with ``origin``, and ``offset`` and
``page`` of a turn (``Memory.from_folder``, ``Memory.import_sessions``).

questions.jsonl needs question, corpus and text alone. ``evidence`` names what answers the question: sessions, and
turns counted from 0 where they are known. Without ``asked_on`` the day of the corpus's last session is taken. Without
this file there is nothing to measure, but memlab.commands.ask searches the sessions. ``where`` ({"user": "ann"}) is a
question's own filter, for ``query/where=own``::

    {"question": "q1", "corpus": "ann", "text": "Which pet do I have?", "asked_on": "2023-06-01T18:30",
     "answer": "a cat", "category": "pets", "evidence": [{"session": "s1", "turn": 0}], "abstain": false}

``said_on`` and ``asked_on`` are dates or times. Either all times have a UTC offset, as "2023-06-01T18:30+02:00", and
their days are those of the zone ``timezone``, or none has one. Dates go with both (``memlab.support.clock``).

(Each object must be on one line; the lines are broken here to be readable.)
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, ClassVar

from memlab.data import readers
from memlab.data.benchmarks import Builder
from memlab.data.chats.refusal import instead
from memlab.data.dataset import GroupBy
from memlab.data.jsonl import QUESTIONS, SESSIONS, FolderDataset, add_question, read
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.support.clock import Clock, order
from memlab.support.errors import Faults, MemlabError


@stage
class Custom(FolderDataset):
    """The folder's sessions in the order of their dates, undated ones first; a corpus is what one question may search.
    """

    kind: ClassVar = "custom"
    content: ClassVar = f"that holds {SESSIONS} and {QUESTIONS}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.folder / SESSIONS).exists():
            fix = f"give a folder {self.content}; memlab import EXPORT writes one from a chat export"
            raise instead(self.folder, MemlabError(f"there is no {SESSIONS} in it", where=str(self.folder), fix=fix))

    def load(self) -> Tables:
        """Read the folder; raise Faults with everything that is wrong with it."""
        content = read(self.folder, self.zone)
        if content.faults:
            raise Faults(content.faults)
        clock = content.clock
        build = Builder(clock)
        corpora = {name: i for i, name in enumerate(dict.fromkeys(s.corpus for s in content.sessions))}
        for name, corpus in corpora.items():
            build.corpus(corpus=corpus, name=name)
        numbers: dict[str, dict[str, int]] = {name: {} for name in corpora}
        last: dict[str, date | datetime | None] = {}
        for session in sorted(content.sessions, key=lambda s: (corpora[s.corpus], order(s.said_on, clock))):
            corpus, number = corpora[session.corpus], len(numbers[session.corpus])
            numbers[session.corpus][session.session], last[session.corpus] = number, session.said_on
            build.session(corpus=corpus, session=number, said_on=session.said_on, name=session.session)
            build.fields(corpus=corpus, session=number, content=session.fields())
            for t, turn in enumerate(session.turns):
                build.turn(corpus=corpus, session=number, turn=t, role=turn.role, speaker=turn.speaker, text=turn.text,
                           name=f"{session.session}:{t}")
        for number, question in enumerate(content.questions):
            add_question(build, number, question, corpora[question.corpus], numbers[question.corpus],
                         asked_on=question.asked_on or last[question.corpus])
        return self.cut(build.tables()) if content.questions else build.tables()

    def identity(self) -> dict[str, Any]:
        """Return the checksums of the files, and the options."""
        sums = {name: readers.sha256(self.folder / name) for name in (SESSIONS, QUESTIONS)
                if name == SESSIONS or (self.folder / name).exists()}
        return {"benchmark": "custom", **sums, **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        content = read(self.folder, self.zone)
        questions = content.questions
        undated = sum(q.asked_on is None for q in questions)
        note = [f"Questions without a date: {undated:,}. The day of the last session is taken."] if undated else []
        note += [] if questions else [f"There are no questions, so nothing is measured: write {QUESTIONS}."]
        if content.clock.tells_moments:
            note.append(f"Times have UTC offsets: their days are those of {self.timezone} (data.timezone).")
        return note + super().notes()

    def clock(self) -> Clock:
        """Return the clock of the folder's times, which refuses those of the other kind."""
        return read(self.folder, self.zone).clock

    def grouping(self) -> GroupBy:
        """Group the questions of one corpus, or, where there is one corpus or one question in each, by evidence."""
        return "auto"
