"""Generated lives: the embedded default, for demonstrations and for tests of the toolkit itself.

A life is a year of chats: statements among small talk about other matters.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from pydantic import Field

from memlab.data.build import Builder
from memlab.data.dataset import GroupBy
from memlab.data.subset import Subset, known_types
from memlab.data.synthetic import lexicon
from memlab.data.synthetic.events import CYCLE, ROUNDS, Knobs, Life, Statement
from memlab.errors import MemlabError
from memlab.stage import stage
from memlab.tables import Tables

Place = tuple[int, int]
"""(session, turn)"""


def chats(life: Life) -> tuple[list[list[str]], dict[int, Place]]:
    """Return the texts of every session's turns, the user's first, and the place of each statement.

    A session has a topic; with the probability ``distractors`` it is one of a counting question.
    """
    statements: list[list[int]] = [[] for _ in life.days]
    for number, one in enumerate(life.statements):
        statements[one.session].append(number)
    sessions: list[list[str]] = []
    places: dict[int, Place] = {}
    for session, numbers in enumerate(statements):
        related = life.collections and life.random.random() < life.knobs.distractors
        topic = life.pick(life.collections if related else lexicon.COLLECTIONS)
        matters = [topic.matters[i] for i in life.random.permutation(len(topic.matters))[:ROUNDS]]
        turns: list[str] = []
        statement_of: dict[int, int] = dict(zip(life.random.permutation(ROUNDS).tolist(), numbers))
        for number, matter in enumerate(matters):
            statement = None
            if number in statement_of:
                statement = life.statements[statement_of[number]]
                places[statement_of[number]] = (session, len(turns) + (statement.request is not None))
            turns += _round(life, matter, statement)
        sessions.append(turns)
    return sessions, places


def _round(life: Life, matter: str, statement: Statement | None) -> tuple[str, str]:
    """Return one user turn and its reply."""
    request = life.pick(lexicon.USER).format(matter=matter)
    reply = f"{life.pick(lexicon.OPENING)} {life.pick(lexicon.REPLY).format(matter=matter)}"
    if statement is None:
        return request, reply
    if statement.request is not None:
        return f"{statement.request} {request}", f"{statement.text} {reply}"
    aside = life.pick(lexicon.ASIDES).format(said=statement.text)
    return life.pick((aside, f"{request} {aside}", f"{aside} {request}")), reply


TYPES = ("single-session-user", "single-session-assistant", "single-session-preference", "multi-session",
         "knowledge-update", "temporal-reasoning")
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


@stage
class Synthetic(Subset):
    """A life is a corpus of short chats over a year; its questions are of LongMemEval's six types, or unanswerable."""

    seed: Annotated[int, Field(ge=0)] = 0  # another seed is another set of lives
    lives: Count = 20  # each is a corpus; 20 give the tests by life enough clusters
    # per life, over about a year; 8 turns each, so 4,800 turns: under a minute to encode on a laptop
    sessions: Annotated[int, Field(ge=2)] = 30
    # per life: 3 multi-session, 3 temporal, 2 user, 2 updates, 1 assistant, 1 preference, 1 unanswerable
    questions: Count = 13
    # chance of each near-miss of the evidence, and that a chat is about a topic of a counting question
    distractors: Share = 0.3
    paraphrase: Share = 0.1  # chance that a statement or a question is paraphrased
    # least and most things that a counting question counts (1 to 40); small counts are more frequent
    evidence: Annotated[tuple[int, int], Field(strict=False)] = (2, 10)

    def __post_init__(self) -> None:
        known_types(self.types, TYPES)
        low, high = self.evidence
        if not 1 <= low <= high <= 40:
            raise MemlabError(f"{low} to {high} is no range within 1 to 40", where="data.evidence", fix="write [2,12]")

    @property
    def name(self) -> str:
        """``synthetic``, or ``synthetic-pooled``."""
        return self.sized_name("synthetic")

    def load(self) -> Tables:
        """Generate the lives; raise MemlabError if the sessions have no room for all statements."""
        build = Builder()
        for corpus in range(self.lives):
            self._life(build, corpus)
        return self.cut(build.tables())

    def _life(self, build: Builder, corpus: int) -> None:
        life = Life((self.seed, corpus), self.sessions, Knobs(self.distractors, self.paraphrase, self.evidence))
        questions = [CYCLE[i % len(CYCLE)](life) for i in range(self.questions)]
        sessions, places = chats(life)
        build.corpus(corpus=corpus, name=f"life-{corpus}")
        for session, (day, turns) in enumerate(zip(life.days, sessions)):
            build.session(corpus=corpus, session=session, said_on=day, name=f"s{session}")
            for turn, text in enumerate(turns):
                build.turn(corpus=corpus, session=session, turn=turn, role=("user", "assistant")[turn % 2],
                           speaker=None, text=text, name=f"s{session}t{turn}")
        for index, question in enumerate(questions):
            number = corpus * self.questions + index
            build.question(question=number, corpus=corpus, text=question.text, asked_on=life.asked_on,
                           name=f"life-{corpus}:{index}", answer=question.answer, category=question.category,
                           abstain=not question.evidence, scored=bool(question.evidence))
            for session, turn in sorted(places[statement] for statement in question.evidence):
                build.evidence(question=number, session=session, turn=turn)

    def identity(self) -> dict[str, Any]:
        """Return every option; the generator counts through the digest of the source."""
        own = [f.name for f in dataclasses.fields(self) if f.name not in {f.name for f in dataclasses.fields(Subset)}]
        return {"benchmark": "synthetic", **{name: getattr(self, name) for name in own}, **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["These lives are generated, the questions by the same rules as the sessions: results on them are a "
                "demonstration, not evidence about real conversations.", *super().notes()]

    def grouping(self) -> GroupBy:
        """Group the questions of one life."""
        return "corpus"
