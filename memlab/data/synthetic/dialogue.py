"""A life as chats: statements dropped into small talk about other matters."""

from __future__ import annotations

from memlab.data.synthetic import lexicon
from memlab.data.synthetic.events import ROUNDS, Life, Statement

Place = tuple[int, int]
"""(session, turn)"""


def chats(life: Life) -> tuple[list[list[str]], dict[int, Place]]:
    """Render every session as texts of turns, the user's first, and say in which turn each statement stands.

    A session has a topic; with the chance that ``distractors`` is, one that a question counts things of.
    """
    told: list[list[int]] = [[] for _ in life.days]
    for number, statement in enumerate(life.statements):
        told[statement.session].append(number)
    sessions: list[list[str]] = []
    places: dict[int, Place] = {}
    for session, numbers in enumerate(told):
        related = life.collections and life.random.random() < life.knobs.distractors
        topic = life.pick(life.collections if related else lexicon.COLLECTIONS)
        matters = [topic.matters[i] for i in life.random.permutation(len(topic.matters))[:ROUNDS]]
        turns: list[str] = []
        carried: dict[int, int] = dict(zip(life.random.permutation(ROUNDS).tolist(), numbers))
        for at, matter in enumerate(matters):
            said = None
            if at in carried:
                said = life.statements[carried[at]]
                places[carried[at]] = (session, len(turns) + (said.request is not None))
            turns += _round(life, matter, said)
        sessions.append(turns)
    return sessions, places


def _round(life: Life, matter: str, said: Statement | None) -> tuple[str, str]:
    """One user turn and its reply."""
    asked = life.pick(lexicon.USER).format(matter=matter)
    reply = f"{life.pick(lexicon.OPENING)} {life.pick(lexicon.REPLY).format(matter=matter)}"
    if said is None:
        return asked, reply
    if said.request is not None:
        return f"{said.request} {asked}", f"{said.text} {reply}"
    aside = life.pick(lexicon.ASIDES).format(said=said.text)
    return life.pick((aside, f"{asked} {aside}", f"{aside} {asked}")), reply
