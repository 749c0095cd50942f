"""Synthetic lives: events and small talk in sessions, as a data set with questions.

Each question type has a function that draws the sessions of its statements, adds near-misses (the same statement about
somebody else, or another place), and returns the question with its evidence.

Lives are the embedded default, for demonstrations and for tests of the toolkit itself. A life is a year of chats:
statements among small talk about other matters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from memlab.data.benchmarks import Builder
from memlab.data.subset import Subset, known_types
from memlab.data.synthetic import lexicon
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

T = TypeVar("T")
DAYS = 360  # a life lasts about a year
ROUNDS = 4  # per session; a round has one statement at most
TITLES = tuple(f"{first} {second}" for first, second in product(lexicon.FIRST, lexicon.SECOND))


class Knobs(NamedTuple):
    """Options that make questions harder; see ``Synthetic``."""

    distractors: float
    paraphrase: float
    evidence: tuple[int, int]


class Statement(NamedTuple):
    """A sentence of a session: the user's, or the assistant's reply to a request."""

    session: int
    text: str
    request: str | None = None


class LifeQuestion(NamedTuple):
    """A question and the numbers of the statements that answer it; none if the right answer is to decline."""

    category: str
    text: str
    answer: str
    evidence: list[int]


class Life:
    """The random state of one life: its days, the room left in its sessions, and its statements."""

    def __init__(self, seed: Sequence[int], sessions: int, knobs: Knobs) -> None:
        self.random = np.random.default_rng(seed)
        self.knobs = knobs
        start = datetime(2023, 1, 1) + timedelta(days=int(self.random.integers(200)))
        days = np.sort(self.random.choice(max(DAYS, sessions), size=sessions, replace=False))
        minutes = self.random.integers(7 * 60, 23 * 60, size=sessions)
        self.days = [start + timedelta(days=int(d), minutes=int(m)) for d, m in zip(days, minutes)]
        self.asked_on = self.days[-1] + timedelta(days=int(self.random.integers(1, 8)))
        self.statements: list[Statement] = []
        self.collections: list[lexicon.Collection] = []
        self._room = np.full(sessions, ROUNDS)
        self._left: dict[str, list[int]] = {}

    def pick(self, options: Sequence[T]) -> T:
        """Draw an option."""
        return options[int(self.random.integers(len(options)))]

    def fresh(self, name: str, options: Sequence[T]) -> T:
        """Draw an option that this life has not drawn yet: two names of one dog would contradict each other."""
        left = self._left.setdefault(name, [int(i) for i in self.random.permutation(len(options))])
        if not left:
            raise MemlabError(f"a life has only {len(options)} {name}, all used up", where="data.questions",
                              fix="ask fewer questions per life, and more lives")
        return options[left.pop()]

    def word(self, near_and_far: lexicon.Pair) -> str:
        """Draw the near or the far wording."""
        return near_and_far[int(self.random.random() < self.knobs.paraphrase)]

    def days_for(self, count: int) -> list[int]:
        """Draw sessions with room for statements, in order; different ones as long as there are enough."""
        open_ = np.flatnonzero(self._room)
        places = open_ if count <= len(open_) else np.repeat(open_, self._room[open_])
        if count > len(places):
            raise MemlabError(f"{len(self._room)} sessions have no room for all statements", where="data.sessions",
                              fix="ask for more sessions, fewer questions or less evidence per question")
        drawn = np.sort(self.random.choice(places, size=count, replace=False))
        np.subtract.at(self._room, drawn, 1)
        return [int(s) for s in drawn]

    def say(self, session: int, text: str, request: str | None = None) -> int:
        """Add a statement, and return its number."""
        self.statements.append(Statement(session, text, request))
        return len(self.statements) - 1

    def add_distractors(self, template: str, values: Sequence[str], least: int = 0) -> None:
        """Let others say the same of themselves, each value with the probability ``distractors``."""
        drawn = [v for i, v in enumerate(values) if i < least or self.random.random() < self.knobs.distractors]
        for session, value in zip(self.days_for(len(drawn)), drawn):
            text = template.format(who=self.pick(lexicon.OTHERS), v=value, t=value)
            self.say(session, text[0].upper() + text[1:])


def single_user(life: Life) -> LifeQuestion:
    """Ask for a fact that is stated once."""
    fact = life.fresh("facts", lexicon.FACTS)
    mine, *others = life.random.permutation(fact.values).tolist()[:3]
    statement = life.say(life.days_for(1)[0], life.word(fact.tell).format(v=mine))
    life.add_distractors(fact.distractor, others)
    return LifeQuestion("single-session-user", life.word(fact.ask), mine, [statement])


def unanswerable(life: Life) -> LifeQuestion:
    """Ask for a fact that is stated about others only."""
    fact = life.fresh("facts", lexicon.FACTS)
    life.add_distractors(fact.distractor, life.random.permutation(fact.values).tolist()[:2], least=1)
    return LifeQuestion("single-session-user", life.word(fact.ask), "You did not mention it.", [])


def update(life: Life) -> LifeQuestion:
    """Ask for a fact that changed: both statements are evidence, the later one is the answer."""
    fact = life.fresh("facts that change", lexicon.UPDATES)
    old, new, *others = life.random.permutation(fact.values).tolist()[:4]
    first, second = life.days_for(2)
    assert fact.later is not None
    evidence = [life.say(first, life.word(fact.tell).format(v=old)),
                life.say(second, life.word(fact.later).format(v=new))]
    life.add_distractors(fact.distractor, others)
    return LifeQuestion("knowledge-update", life.word(fact.ask), new, evidence)


def counting(life: Life) -> LifeQuestion:
    """Ask for a count of things, each of which is evidence."""
    things = life.fresh("collections", lexicon.COLLECTIONS)
    life.collections.append(things)
    low, high = life.knobs.evidence
    count = int(low * ((high + 1) / low) ** life.random.random())  # small counts are common, large ones rare
    evidence = [life.say(session, life.word(things.tell).format(t=life.fresh("titles", TITLES)))
                for session in life.days_for(count)]
    life.add_distractors(things.distractor, [life.fresh("titles", TITLES) for _ in range(count)])
    return LifeQuestion("multi-session", life.word(things.ask), str(count), evidence)


def temporal(life: Life) -> LifeQuestion:
    """Ask for the order of two events, or the days between them; the answer needs the dates of both sessions."""
    names, days, evidence = [], [], []
    for session in life.days_for(2):
        event, ago = life.fresh("events", lexicon.EVENTS), int(life.random.integers(2))
        evidence.append(life.say(session, life.word(event.tell).format(when=("today", "yesterday")[ago])))
        days.append(life.days[session].date() - timedelta(days=ago))
        names.append(life.word(event.name))
        life.add_distractors('{who} told me: "' + event.tell[0].replace("{when}", "recently") + '"', [""])
    order = [int(i) for i in life.random.permutation(2)]
    one, two = (f"the day when {names[i]}" for i in order)
    if life.random.random() < 0.5 and days[0] != days[1]:
        return LifeQuestion("temporal-reasoning", f"Which came first, {one} or {two}?",
                        f"The day when {names[days.index(min(days))]}", evidence)
    gap = abs((days[1] - days[0]).days)
    return LifeQuestion("temporal-reasoning", f"How many days lie between {one} and {two}?",
                    f"{gap} day" + "s" * (gap != 1), evidence)


def preference(life: Life) -> LifeQuestion:
    """Ask for something that should fit a stated taste; the answer is a rubric."""
    taste = life.fresh("tastes", lexicon.TASTES)
    statement = life.say(life.days_for(1)[0], life.word(taste.tell))
    life.add_distractors(taste.distractor, [""])
    return LifeQuestion("single-session-preference", life.word(taste.ask), taste.rubric, [statement])


def advice(life: Life) -> LifeQuestion:
    """Ask for something that the assistant recommended."""
    kind, other_words = life.fresh("kinds of advice", lexicon.ADVICE)
    place, *others = life.random.permutation(lexicon.CITIES).tolist()[:3]
    cities = [place, *(city for city in others if life.random.random() < life.knobs.distractors)]
    evidence, answer = [], life.fresh("titles", TITLES)
    for session, city in zip(life.days_for(len(cities)), life.random.permutation(cities).tolist()):
        title = answer if city == place else life.fresh("titles", TITLES)
        number = life.say(session, f"In {city} I would go to {title}, and book ahead.",
                          request=f"Can you suggest {kind} in {city}?")
        evidence += [number] if city == place else []
    question = life.word((f"Where did you suggest to go when I wanted {kind} in {place}?",
                          f"What was it called, {other_words} that you told me about in {place}?"))
    return LifeQuestion("single-session-assistant", question, answer, evidence)


CYCLE: tuple[Callable[[Life], LifeQuestion], ...] = (
    counting, temporal, single_user, update, advice, preference, unanswerable,
    counting, temporal, single_user, update, counting, temporal)
"""The questions of a life, in proportions close to LongMemEval's; a longer life begins again."""


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

    benchmark: ClassVar = "synthetic"

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
