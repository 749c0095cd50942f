"""Chats of a generated life: statements among small talk about other matters."""

from __future__ import annotations

from memlab.data.synthetic import lexicon
from memlab.data.synthetic.events import ROUNDS, Life, Statement

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
