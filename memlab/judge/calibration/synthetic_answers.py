"""A calibration kit: for every question, answers that are wrong or right by the way they were made.

Made of gold answers alone (and, for an outdated value, of the evidence turns), by rules and a seed: nobody's opinion
enters, so that a judge's verdicts can be held against them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import polars as pl

from memlab.judge.calibration import corruptions, paraphrases
from memlab.judge.calibration.outdated import outdated
from memlab.judge.llm import kind_of
from memlab.tables import Tables, with_text
from memlab.text.normalise import accepted_answers, answer_tokens, locomo_stems, normalise_locomo
from memlab.text.temporal.calendar import MONTHS

WRONG = ("vague", "other", "outdated", "corrupted", "subset")
"""Kinds of wrong answer, from the plainly wrong to those that a lenient judge lets pass."""

RIGHT = ("restated", "declined", "numbers", "dates", "reordered")
"""Kinds of right answer; ``declined`` is for questions that cannot be answered."""

_VAGUE = ("It was something along the lines of what you had in mind.", "There were several, and it varied a bit.",
          "You talked about that some time ago, and it sounded good.")
_BROAD = ("There are many good options; it depends on what you like.",
          "A quick search on the internet will give you plenty of popular ideas.")


class Forgery(NamedTuple):
    """A made answer: whether it is right, of what kind, and why it is so."""

    question: int
    kind: str
    right: bool
    text: str
    why: str


class Kit(NamedTuple):
    """The made answers by question and kind, and how many questions each kind could not be made for."""

    forgeries: list[Forgery]
    skipped: dict[str, int]


class Asked(NamedTuple):
    """What is known of a question: its gold answer is null where the benchmark gives none."""

    question: int
    text: str
    gold: str | None
    category: str
    abstain: bool

    @property
    def kind(self) -> str:
        """The rule that it is judged by."""
        return kind_of(self.category, self.abstain)

    @property
    def answer(self) -> str | None:
        """The answer as given; null where the "answer" is a rubric or an explanation."""
        usable = self.gold is not None and self.kind not in ("preference", "abstention")
        return accepted_answers(str(self.gold))[0] if usable and normalise_locomo(str(self.gold)) else None


def kit(tables: Tables, seed: int = 0) -> Kit:
    """Make every kind of answer for every question; needs questions, gold, texts, and for outdated values the turns."""
    rows = tables["gold"].join(with_text(tables["questions"], tables["texts"]), on="question").sort("question")
    asked = [Asked(*row) for row in rows.select("question", "text", "answer", "category", "abstain").iter_rows()]
    old = outdated(tables) if {"evidence", "turns"} <= set(tables) else {}
    makers = _Makers(asked, old)
    made: list[Forgery] = []
    skipped: Counter[str] = Counter()
    for one in asked:
        for kind in (*WRONG, *RIGHT):
            maker: Callable[[Asked, random.Random], tuple[str, str] | None] = getattr(makers, kind)
            found = maker(one, random.Random(f"{seed}:{one.question}:{kind}"))  # noqa: S311 - draws, not secrets
            if found is None:
                skipped[kind] += 1
            else:
                made.append(Forgery(one.question, kind, kind in RIGHT, *found))
    return Kit(made, {kind: skipped[kind] for kind in (*WRONG, *RIGHT)})


def frame_of(made: Kit) -> pl.DataFrame:
    """The forgeries as a frame: question, kind, right, text, why."""
    return pl.DataFrame(made.forgeries, orient="row", schema={
        "question": pl.Int32, "kind": pl.String, "right": pl.Boolean, "text": pl.String, "why": pl.String})


class _Makers:
    """One method a kind: (text, why), or null where it cannot be made."""

    def __init__(self, asked: list[Asked], old: dict[int, str]) -> None:
        self.old = old
        self.answered = [one for one in asked if one.answer is not None]
        self.shapes = {one.question: _shape(one.answer) for one in self.answered}
        self.names = sorted({m[0] for one in self.answered for m in corruptions.names(str(one.answer))})

    def vague(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:
        if one.kind == "preference":
            return draw.choice(_BROAD), "it would suit anybody and uses nothing known of the user"
        if one.answer is None or paraphrases.polar(one.answer):
            return None
        return draw.choice(_VAGUE), "it names nothing"

    def other(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:
        if one.kind == "preference" or (one.answer is not None and paraphrases.polar(one.answer)):
            return None
        if one.abstain:  # of a question that begins with the same word
            same = [o for o in self.answered if o.text.split()[:1] == one.text.split()[:1]]
        elif one.answer is None:
            return None
        else:
            shape = self.shapes[one.question]
            same = [o for o in self.answered if o.category == one.category and self.shapes[o.question] == shape]
        pick = next((o for o in _shuffled(same, draw) if _apart(str(o.answer), one)), None)
        return None if pick is None else (str(pick.answer), f"it is the answer to another question: {pick.text}")

    def outdated(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:  # noqa: ARG002 - every kind's form
        value = self.old.get(one.question)
        return None if value is None else (value, f"it was so before; now it is {one.answer}")

    def corrupted(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:
        if one.answer is None:
            return None
        alone = one.text.lower().startswith(("who ", "whose ")) or "name" in one.text.lower().split()
        change = corruptions.corrupted(one.answer, draw, self.names, alone)
        if change is None or not _differs(change.text, one):
            return None
        return change.text, f"'{change.was}' became '{change.now}'"

    def subset(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:
        parts = paraphrases.items(one.answer or "")
        if not parts:
            return None
        kept = sorted(draw.sample(range(len(parts)), draw.randint(1, max(1, len(parts) // 2))))
        return paraphrases.listed([parts[i] for i in kept]), f"{len(kept)} of {len(parts)} things are named"

    def restated(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:
        return None if one.answer is None else (paraphrases.restated(one.answer, draw), "the answer in a sentence")

    def declined(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:
        return (paraphrases.declined(draw), "the question cannot be answered") if one.abstain else None

    def numbers(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:  # noqa: ARG002
        return _if(paraphrases.renumbered(one.answer or ""), "a number in words or in digits")

    def dates(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:  # noqa: ARG002
        return _if(paraphrases.redated(one.answer or ""), "a date in another form")

    def reordered(self, one: Asked, draw: random.Random) -> tuple[str, str] | None:  # noqa: ARG002
        return _if(paraphrases.reordered(one.answer or ""), "the list in another order")


def _if(text: str | None, why: str) -> tuple[str, str] | None:
    return None if text is None else (text, why)


def _shuffled(some: list[Asked], draw: random.Random) -> Iterator[Asked]:
    yield from draw.sample(some, len(some))


def _shape(answer: str | None) -> str:
    """Tell counts, dates and words apart, so that another question's answer is a likely one."""
    if any(month in str(answer) for month in MONTHS):
        return "date"
    return "number" if any(t[0].isdigit() for t in answer_tokens(str(answer))) else "words"


def _apart(text: str, one: Asked) -> bool:
    """Tell whether a text shares no content with a question's gold answer, so that it cannot be right."""
    if one.abstain:
        return True
    if _shape(text) == "number":
        return _differs(text, one) and set(_numbers(text)).isdisjoint(_numbers(str(one.gold)))
    return set(locomo_stems(text)).isdisjoint(locomo_stems(str(one.gold))) and not paraphrases.polar(text)


def _differs(text: str, one: Asked) -> bool:
    """Tell whether a text is none of the accepted answers, nor off by one where that is forgiven."""
    for right in accepted_answers(str(one.gold)):
        if normalise_locomo(text) == normalise_locomo(right):
            return False
        ours, theirs = _numbers(text), _numbers(right)
        same_but_numbers = [t for t in answer_tokens(text) if not t[0].isdigit()] == \
            [t for t in answer_tokens(right) if not t[0].isdigit()]
        near = len(ours) == len(theirs) and all(abs(a - b) <= 1 for a, b in zip(ours, theirs))
        if one.kind == "temporal" and ours and near and same_but_numbers:
            return False
    return True


def _numbers(text: str) -> list[float]:
    return [float(token) for token in answer_tokens(text) if token[0].isdigit()]
