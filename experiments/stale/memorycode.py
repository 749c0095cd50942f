"""MemoryCode: a mentor's coding rules over many sessions, some of which replace earlier ones.

Rakotonirina et al., "From Tools to Teammates" (ACL 2025), github.com/for-ai/MemoryCode, Apache-2.0. Reads the official
``dialogue_N.json``; those above 180 are kept apart. There are no dates: sessions are a day each, and the questions come
a day later.

A question is a coding task of the session that told a rule which still holds in the end; its evidence is that session.
Earlier sessions on the same object whose rule holds no more are outdated. The turn of a rule is the mentor's turn with
most words of its topic, if one alone has most of them, and half of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar

from memlab.data import readers
from memlab.data.benchmarks import Builder
from memlab.data.several import SeveralFiles
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables

START = datetime(2024, 1, 1)

Rule = tuple[int, int | None, tuple[str, str], str]
"""The session and turn that tell a rule, its object and pattern, and a task that asks for it."""


@stage
class MemoryCode(SeveralFiles):
    """A dialogue is a corpus; mentor and mentee are users with a name."""

    benchmark: ClassVar = "memorycode"
    pattern: ClassVar = "dialogue_*.json"

    def load(self) -> Tables:
        """Read the dialogues; raise MemlabError naming the file where one has no sessions."""
        build, number = Builder(), 0
        for corpus, path in enumerate(self._files()):
            dialogue = readers.whole(path, dict)
            sessions = readers.need(dialogue, "sessions", list, str(path))
            build.corpus(corpus=corpus, name=path.stem)
            told = [rule for at, record in enumerate(sessions)
                    for rule in _rules(build, corpus, at, record, path.stem, dialogue["context"]["mentor"])]
            valid = {(str(thing), str(pattern)) for thing, pattern in sessions[-1]["history_regex"]}
            for (thing, pattern), (session, turn, _, task) in {rule[2]: rule for rule in told}.items():
                if (thing, pattern) in valid:
                    build.question(question=number, corpus=corpus, text=task, asked_on=START + timedelta(len(sessions)),
                                   name=f"{path.stem}:{thing}:{pattern}", answer=None, category=thing, abstain=False,
                                   scored=True)
                    build.evidence(question=number, session=session, turn=turn)
                    for other, old, rule, _ in told:
                        if other < session and rule[0] == thing and rule not in valid:
                            build.outdated(question=number, session=other, turn=old)
                    number += 1
        return self.cut(build.tables())


def _rules(build: Builder, corpus: int, session: int, record: Any, name: str, mentor: str) -> Iterator[Rule]:
    """Add a session and its turns; yield the rules that it tells."""
    build.session(corpus=corpus, session=session, said_on=START + timedelta(session), name=f"{name}:{session}")
    words = {}
    for turn, text in enumerate(filter(str.strip, record["text"].split("\n\n"))):
        speaker, _, said = text.strip().partition(": ")
        build.turn(corpus=corpus, session=session, turn=turn, role="user", speaker=speaker, text=said,
                   name=f"{name}:{session}:{turn}")
        if speaker == mentor:
            words[turn] = {*re.findall(r"\w+", said.lower())}
    topics = (topic for kind, topic in zip(record["type"], record["topic"]) if kind.startswith("instruction"))
    for topic, (thing, pattern), task in zip(topics, record["session_regex"], record["session_eval_query"]):
        wanted = {*re.findall(r"\w+", topic.lower())}
        shares = {turn: len(wanted & its) / len(wanted) for turn, its in words.items()}
        best = [turn for turn, share in shares.items() if share == max(shares.values()) >= 0.5]
        yield session, best[0] if len(best) == 1 else None, (str(thing), str(pattern)), task
