"""MemoryCode: a mentor's coding rules over many sessions, some of which replace earlier ones.

Rakotonirina et al., "From Tools to Teammates" (ACL 2025), github.com/for-ai/MemoryCode, Apache-2.0. Reads the official
``dialogue_N.json``, 1 to ``last``. There are no dates: sessions are a day each, and the questions come a day later.

A question is a coding task of the session that told a rule which still holds in the end; its evidence is that session.
Earlier sessions on the same object whose rule holds no more are outdated. The turn of a rule is the mentor's turn with
most words of its topic, if one alone has most of them, and half of them.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from memlab.data import readers
from memlab.data.benchmarks import Builder
from memlab.data.several import SeveralFiles
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables

_START = datetime(2024, 1, 1)


@stage
class MemoryCode(SeveralFiles):
    """A dialogue is a corpus; mentor and mentee are users with a name."""

    benchmark: ClassVar = "memorycode"
    pattern: ClassVar = "dialogue_*.json"
    copy: ClassVar = "dataset"

    last: Annotated[int, Field(ge=1)] = 180  # the last dialogue that is read; those above are kept apart

    def load(self) -> Tables:
        """Read the dialogues; raise MemlabError naming the file where one has no sessions."""
        build, number = Builder(), 0
        for corpus, path in enumerate(self._files()):
            dialogue, where = readers.whole(path, dict), str(path)
            build.corpus(corpus=corpus, name=path.stem)
            rules: dict[str, list[tuple[int, int | None, Any, str]]] = {}
            sessions = readers.need(dialogue, "sessions", list, where)
            for session, record in enumerate(sessions):
                turns = _turns(build, corpus, session, record, path.stem, dialogue["context"]["mentor"])
                topics = [t for kind, t in zip(record["type"], record["topic"]) if kind.startswith("instruction")]
                for (thing, rule), task, topic in zip(record["session_regex"], record["session_eval_query"], topics):
                    rules.setdefault(str(thing), []).append((session, _turn_of(topic, turns), rule, task))
            valid = [(str(thing), rule) for thing, rule in sessions[-1]["history_regex"]]
            for thing, rule in dict.fromkeys((thing, str(rule)) for thing, rule in valid):
                told = [one for one in rules.get(thing, []) if str(one[2]) == rule][-1:]
                for session, turn, _, task in told:
                    build.question(question=number, corpus=corpus, text=task, name=f"{path.stem}:{thing}:{rule}",
                                   asked_on=_START + timedelta(days=len(sessions)), answer=None, category=thing,
                                   abstain=False, scored=True)
                    build.evidence(question=number, session=session, turn=turn)
                    for other, old, replaced, _ in rules[thing]:
                        if other < session and (thing, replaced) not in valid:
                            build.outdated(question=number, session=other, turn=old)
                    number += 1
        return self.cut(build.tables())

    def _files(self) -> list[Path]:
        return [path for path in super()._files() if int(re.findall(r"\d+", path.name)[-1]) <= self.last]


def _turns(build: Builder, corpus: int, session: int, record: Any, name: str, mentor: str) -> dict[int, set[str]]:
    """Add a session and its turns; return the words of the mentor's turns."""
    build.session(corpus=corpus, session=session, said_on=_START + timedelta(days=session), name=f"{name}:{session}")
    words = {}
    for turn, text in enumerate(one for one in record["text"].split("\n\n") if one.strip()):
        speaker, _, said = text.strip().partition(": ")
        build.turn(corpus=corpus, session=session, turn=turn, role="user", speaker=speaker, text=said,
                   name=f"{name}:{session}:{turn}")
        if speaker == mentor:
            words[turn] = {*re.findall(r"\w+", said.lower())}
    return words


def _turn_of(topic: str, turns: dict[int, set[str]]) -> int | None:
    """Return the one turn that most words of a topic, and half of them, are in."""
    wanted = {*re.findall(r"\w+", topic.lower())}
    shares = {turn: len(wanted & words) / len(wanted) for turn, words in turns.items()}
    best = [turn for turn, share in shares.items() if share == max(shares.values()) >= 0.5]
    return best[0] if len(best) == 1 else None
