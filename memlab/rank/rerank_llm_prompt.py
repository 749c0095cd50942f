"""What a chat model is told when it judges memories, and how its replies are read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date

from memlab.models.chat import Chat, Completion, Message, Prompt
from memlab.replies import MARGIN, json_in, trimmed

_TASK = """You judge how useful memories of past conversations are for answering a question. Score from 0 to 10: \
10 = holds the answer or a part of it, 7 = needed to work the answer out, 3 = the same subject but nothing that \
answers, 0 = something else. Judge what a memory says, not how it is written. Memories may bear the day they \
were said on."""

KINDS = {
    "counting": "The answer is gathered from many memories: every single item that counts deserves a high score, "
                "however small, and so does a memory that takes an item back.",
    "multi_session": "The answer is put together from several memories: every one that holds a piece of it deserves a "
                     "high score, even if it answers nothing alone, and so does one that leads to such a piece.",
    "temporal": "The answer depends on when things happened: score high what tells or implies the date of an event in "
                "question, and what was said within the time that the question names.",
    "preference": "The person wants advice that fits them: score high what shows their tastes, belongings, habits, "
                  "limits or earlier experience on this matter, even if it answers nothing directly.",
    "assistant": "The question is about what the assistant said: score high the assistant's own words on this matter, "
                 "and lower what the person alone said.",
    "update": "The question is about how things stand now: score every statement of this matter high, the most recent "
              "one highest.",
    "factual": "One memory states the fact asked for: score that one high and those that merely share words low.",
    "general": "Score high what a well-informed answer would rest on, and lower what is merely near the subject.",
    "conceptual": "The question asks for reasons or for how things hang together: score high what explains, weighs up "
                  "or lets one conclude, above a bare mention.",
    "procedural": "The question asks how something is done: score high the steps themselves, the settings and the "
                  "pitfalls, above talk about the result.",
}
"""What counts for a question of each class of ``memlab.query.class_names``."""

_ONE = 'Reply as JSON: {"score": a whole number from 0 to 10}.'
_MANY = ('Score every memory by its number. Reply as JSON, the best first: {"scores": [{"index": 1, "score": 10}, '
         "...]}. What you leave out counts as 0.")
_SCORE = {"type": "integer", "minimum": 0, "maximum": 10}
_ITEM = {"type": "object", "properties": {"index": {"type": "integer"}, "score": {"type": "number"}},
         "required": ["index", "score"], "additionalProperties": False}
ONE = json.dumps({"type": "object", "properties": {"score": _SCORE}, "required": ["score"],
                  "additionalProperties": False})
MANY = json.dumps({"type": "object", "properties": {"scores": {"type": "array", "items": _ITEM}},
                   "required": ["scores"], "additionalProperties": False})
_ONE_REPLY = 24
_ITEM_REPLY = 20
"""Tokens of a reply: of one score, and of one item of a list."""


@dataclass(frozen=True)
class Asked:
    """A question as the model is shown it; ``kind`` is null where it is not told what counts."""

    words: str
    day: date | None
    kind: str | None

    def system(self, how: str) -> str:
        """Return the task, by the kind of question."""
        return "\n".join([_TASK, *([KINDS[self.kind]] if self.kind else []), how])

    def said(self) -> str:
        """Return the question with its day."""
        return f"Question{f' (asked on {self.day})' if self.day else ''}: {self.words}"


def pointwise(chat: Chat, asked: Asked, text: str) -> tuple[Prompt, bool]:
    """Ask for the score of one memory; tell whether it was cut to fit."""
    system, lead, end = asked.system(_ONE), f"{asked.said()}\n\nMemory:\n", "\n\nScore:"
    room = chat.window - _ONE_REPLY - MARGIN - chat.count(system) - chat.count(lead + end)
    shown = trimmed(chat, text, room)
    return Prompt((Message("system", system), Message("user", lead + shown + end)), schema=ONE,
                  max_tokens=_ONE_REPLY), shown != text


def listwise(chat: Chat, asked: Asked, texts: list[str]) -> tuple[Prompt, int]:
    """Ask for the scores of all memories at once, numbered from 1; tell how many were cut to fit."""
    reply = _ITEM_REPLY * (len(texts) + 1)
    system, lead, end = asked.system(_MANY), f"{asked.said()}\n\nMemories:\n", "\n\nScores:"
    marks = [f"\n[{n}] " for n in range(1, len(texts) + 1)]
    room = chat.window - reply - MARGIN - chat.count(system) - chat.count(lead + end) - chat.count("".join(marks))
    sizes = [chat.count(text) + 1 for text in texts]
    shown = [text if size <= limit else trimmed(chat, text, limit - 1)
             for text, size, limit in zip(texts, sizes, fair(sizes, room))]
    body = "".join(mark + text for mark, text in zip(marks, shown))
    return Prompt((Message("system", system), Message("user", lead + body + end)), schema=MANY,
                  max_tokens=reply), sum(a != b for a, b in zip(texts, shown))


def fair(sizes: list[int], room: int) -> list[int]:
    """Share room among texts of these sizes: the short ones whole, the long ones alike.

    >>> fair([10, 100, 40], 90)
    [10, 40, 40]
    """
    limits = [0] * len(sizes)
    for left, at in zip(range(len(sizes), 0, -1), sorted(range(len(sizes)), key=sizes.__getitem__)):
        limits[at] = min(sizes[at], max(room, 0) // left)
        room -= limits[at]
    return limits


def one_score(reply: Completion) -> float | None:
    """Read a single score; None where there is none from 0 to 10."""
    read = json_in(reply, ONE)
    return float(read["score"]) if read is not None and 0 <= read["score"] <= 10 else None


def many_scores(reply: Completion, count: int) -> list[float] | None:
    """Read the scores of ``count`` memories, 0 for what is left out; None for a reply that cannot be trusted.

    That is one without such a list, with a number that no memory has, or with a score outside 0 to 10. Of a memory
    named twice the first score counts.
    """
    read = json_in(reply, MANY)
    if read is None:
        return None
    scores: dict[int, float] = {}
    for item in read["scores"]:
        if not (1 <= item["index"] <= count and 0 <= item["score"] <= 10):
            return None
        scores.setdefault(int(item["index"]), round(float(item["score"]), 1))
    return [scores.get(n, 0.0) for n in range(1, count + 1)]
