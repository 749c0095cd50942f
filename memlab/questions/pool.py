"""Pools of candidates that several systems find, and the page on which a person marks the evidence.

Spärck Jones and van Rijsbergen, "Report on the need for and provision of an 'ideal' information retrieval test
collection" (1975): what no system finds within the depth is never judged, and counts as no evidence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import polars as pl

from memlab.data.benchmarks import Builder
from memlab.data.jsonl import SessionLine
from memlab.pipeline import Pipeline
from memlab.questions.propose import ProposedQuestion
from memlab.stage import EmptyStage
from memlab.store import Store


def page(sessions: Sequence[SessionLine], questions: Sequence[ProposedQuestion], pools: Sequence[Sequence[Candidate]],
         depth: int) -> str:
    """Return the page; texts of the log are data in it, and never markup or code."""
    turns = {(s.corpus, s.session): s.turns for s in sessions}
    entries = [{"corpus": question.corpus, "text": question.text, "candidates": [
        {"session": c.session, "turn": c.turn, "text": turns[question.corpus, c.session][c.turn].text,
         "speaker": turns[question.corpus, c.session][c.turn].speaker or turns[question.corpus, c.session][c.turn].role}
        for c in pool]} for question, pool in zip(questions, pools)]
    digest = hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:16]
    data = json.dumps({"digest": digest, "depth": depth, "questions": entries})  # ASCII: no line separator is left
    template = files("memlab.questions").joinpath("page.html").read_text("utf-8")
    return template.replace("__DATA__", data.replace("<", "\\u003c"))


@dataclass(frozen=True)
class Candidate:
    """A turn that at least one system found, or that the question was made from."""

    session: str
    turn: int
    found_by: tuple[str, ...]


def systems() -> dict[str, Pipeline]:
    """Return the systems that are pooled: words, vectors, and both."""
    empty = EmptyStage(writes=("hits",))
    return {"words": Pipeline(dense=empty), "vectors": Pipeline(lexical=empty), "both": Pipeline()}


def pool(sessions: Sequence[SessionLine], questions: Sequence[ProposedQuestion], pipelines: Mapping[str, Pipeline],
         store: Store, depth: int = 10) -> list[list[Candidate]]:
    """Return the candidates of each question, in the order of the log, so that no system's ranking shows.

    depth: number of turns taken from each system's ranking.
    """
    build = Builder()
    corpora = {name: i for i, name in enumerate(dict.fromkeys(s.corpus for s in sessions))}
    numbers: dict[str, list[str]] = {name: [] for name in corpora}
    for session in sessions:
        corpus, number = corpora[session.corpus], len(numbers[session.corpus])
        numbers[session.corpus].append(session.session)
        build.session(corpus=corpus, session=number, said_on=session.said_on, name=session.session)
        for t, turn in enumerate(session.turns):
            build.turn(corpus=corpus, session=number, turn=t, role=turn.role, speaker=turn.speaker, text=turn.text,
                       name=f"{session.session}:{t}")
    for q, question in enumerate(questions):
        build.question(question=q, corpus=corpora[question.corpus], text=question.text, asked_on=None, name=str(q),
                       answer=None, category="all", abstain=False, scored=False)
    tables = build.tables()
    found: list[dict[tuple[int, int], list[str]]] = [{} for _ in questions]
    for name, pipeline in pipelines.items():
        ran = pipeline.run(tables, store)
        units = ran["units"].select("unit", "session", "turns")
        for q, session_number, turns in _first_turns(ran["ranking"].join(units, on="unit"), depth):
            found[q].setdefault((session_number, turns), []).append(name)
    pools = []
    for question, places in zip(questions, found):
        ordered = sorted({*places, *_source(question, numbers[question.corpus])})
        pools.append([Candidate(numbers[question.corpus][s], t, tuple(places.get((s, t), ()))) for s, t in ordered])
    return pools


def _source(question: ProposedQuestion, sessions: Sequence[str]) -> list[tuple[int, int]]:
    """Return the place of the turn that a question was made from; none for a person's own question."""
    if question.session is None or question.turn is None:
        return []
    return [(sessions.index(question.session), question.turn)]


def _first_turns(ranking: pl.DataFrame, depth: int) -> Iterable[tuple[int, int, int]]:
    """Return (question, session, turn) of the first ``depth`` turns of each question."""
    turns = ranking.sort("question", "rank").explode("turns").unique(
        ["question", "session", "turns"], keep="first", maintain_order=True)
    return turns.group_by("question", maintain_order=True).head(depth).select("question", "session", "turns").rows()
