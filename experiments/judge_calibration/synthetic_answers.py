"""Synthetic answers that are right or wrong by construction, to calibrate judges.

Rules and a seed make them from gold answers (and from evidence turns, for outdated values). Nobody's opinion decides
whether they are right, so a judge's verdicts can be compared with them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from judge_calibration import perturbations
from judge_calibration.perturbations import outdated_values
from memlab.pipeline.tables import Tables, with_text
from memlab.stages.judge.llm import kind_of
from memlab.support.text.normalise import accepted_answers, answer_tokens, locomo_stems, normalise_locomo
from memlab.support.text.temporal.calendar import MONTHS

WRONG = ("vague", "other", "outdated", "corrupted", "subset")
"""Kinds of wrong answers, from the plainly wrong to those that a lenient judge accepts."""

RIGHT = ("restated", "declined", "numbers", "dates", "reordered")
"""Kinds of right answers; ``declined`` is for questions that cannot be answered."""

_VAGUE = ("It was something along the lines of what you had in mind.", "There were several, and it varied a bit.",
          "You talked about that some time ago, and it sounded good.")
_BROAD = ("There are many good options; it depends on what you like.",
          "A quick search on the internet will give you plenty of popular ideas.")
_REWRITES: dict[str, tuple[Callable[[str], str | None], str]] = {
    "numbers": (perturbations.renumber, "a number in words or in digits"),
    "dates": (perturbations.reformat_date, "a date in another form"),
    "reordered": (perturbations.reorder, "the list in another order"),
}


class SyntheticAnswer(NamedTuple):
    """A synthetic answer: its question, its kind, whether it is right, and why."""

    question: int
    kind: str
    right: bool
    text: str
    why: str


class CalibrationSet(NamedTuple):
    """Synthetic answers, and for each kind the number of questions without an answer of that kind."""

    answers: list[SyntheticAnswer]
    skipped: dict[str, int]


class GoldQuestion(NamedTuple):
    """A question and its gold answer, null if the benchmark gives none."""

    question: int
    text: str
    gold: str | None
    category: str
    abstain: bool

    @property
    def kind(self) -> str:
        """The kind of question, which selects the judge's rule."""
        return kind_of(self.category, self.abstain)

    @property
    def answer(self) -> str | None:
        """The first accepted answer; null if the gold answer is a rubric or an explanation."""
        usable = self.gold is not None and self.kind not in ("preference", "abstention")
        return accepted_answers(str(self.gold))[0] if usable and normalise_locomo(str(self.gold)) else None


def make_answers(tables: Tables, seed: int = 0) -> CalibrationSet:
    """Make every kind of answer to every question; outdated values need the tables evidence and turns."""
    rows = tables["gold"].join(with_text(tables["questions"], tables["texts"]), on="question").sort("question")
    columns = rows.select("question", "text", "answer", "category", "abstain")
    questions = [GoldQuestion(*row) for row in columns.iter_rows()]
    generator = _Generator(questions, outdated_values(tables) if {"evidence", "turns"} <= set(tables) else {})
    answers: list[SyntheticAnswer] = []
    skipped = dict.fromkeys((*WRONG, *RIGHT), 0)
    for one in questions:
        for kind in skipped:
            answer = generator.make(kind, one, random.Random(f"{seed}:{one.question}:{kind}"))  # noqa: S311 - no secret
            if answer is None:
                skipped[kind] += 1
            else:
                answers.append(SyntheticAnswer(one.question, kind, kind in RIGHT, *answer))
    return CalibrationSet(answers, skipped)


class _Generator:
    """One method per kind of answer; it returns (text, why), or None if the answer cannot be made."""

    def __init__(self, questions: list[GoldQuestion], old: dict[int, str]) -> None:
        self.old = old
        self.answered = [one for one in questions if one.answer is not None]
        self.shapes = {one.question: _shape(one.answer) for one in self.answered}
        self.names = sorted({m[0] for one in self.answered for m in perturbations.names(str(one.answer))})

    def make(self, kind: str, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:
        if kind not in _REWRITES:
            method: Callable[[GoldQuestion, random.Random], tuple[str, str] | None] = getattr(self, kind)
            return method(one, draw)
        rewrite, why = _REWRITES[kind]
        text = rewrite(one.answer or "")
        return None if text is None else (text, why)

    def vague(self, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:
        if one.kind == "preference":
            return draw.choice(_BROAD), "it would suit anybody and uses no knowledge about the user"
        if one.answer is None or perturbations.is_polar(one.answer):
            return None
        return draw.choice(_VAGUE), "it names nothing"

    def other(self, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:
        if one.kind == "preference" or (one.answer is not None and perturbations.is_polar(one.answer)):
            return None
        if one.abstain:  # the answer to a question that begins with the same word
            same = [o for o in self.answered if o.text.split()[:1] == one.text.split()[:1]]
        elif one.answer is None:
            return None
        else:
            shape = self.shapes[one.question]
            same = [o for o in self.answered if o.category == one.category and self.shapes[o.question] == shape]
        pick = next((o for o in draw.sample(same, len(same)) if _is_unrelated(str(o.answer), one)), None)
        return None if pick is None else (str(pick.answer), f"it is the answer to another question: {pick.text}")

    def outdated(self, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:  # noqa: ARG002
        value = self.old.get(one.question)
        return None if value is None else (value, f"it was true earlier; now it is {one.answer}")

    def corrupted(self, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:
        if one.answer is None:
            return None
        alone = one.text.lower().startswith(("who ", "whose ")) or "name" in one.text.lower().split()
        change = perturbations.perturb(one.answer, draw, self.names, alone)
        if change is None or not _differs(change.text, one):
            return None
        return change.text, f"'{change.was}' became '{change.now}'"

    def subset(self, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:
        parts = perturbations.list_items(one.answer or "")
        if not parts:
            return None
        positions = sorted(draw.sample(range(len(parts)), draw.randint(1, max(1, len(parts) // 2))))
        named = perturbations.join_list([parts[i] for i in positions])
        return named, f"{len(positions)} of {len(parts)} items are named"

    def restated(self, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:
        if one.answer is None:
            return None
        answer = accepted_answers(one.answer)[0].rstrip(".")
        return draw.choice(perturbations.SENTENCES).format(answer), "the answer in a sentence"

    def declined(self, one: GoldQuestion, draw: random.Random) -> tuple[str, str] | None:
        return (draw.choice(perturbations.DECLINES), "the question cannot be answered") if one.abstain else None


def _shape(answer: str | None) -> str:
    """Return "date", "number" or "words": an answer of the same shape is plausible for the same question."""
    if any(month in str(answer) for month in MONTHS):
        return "date"
    return "number" if any(t.lstrip("+-")[:1].isdigit() for t in answer_tokens(str(answer))) else "words"


def _is_unrelated(text: str, one: GoldQuestion) -> bool:
    """Return whether a text shares no content with a question's gold answer, so that it cannot be right."""
    if one.abstain:
        return True
    if _shape(text) == "number":
        return _differs(text, one) and set(_numbers(text)).isdisjoint(_numbers(str(one.gold)))
    return set(locomo_stems(text)).isdisjoint(locomo_stems(str(one.gold))) and not perturbations.is_polar(text)


def _differs(text: str, one: GoldQuestion) -> bool:
    """Return whether a text differs from all accepted answers, by more than one if the judge accepts off by one."""
    for right in accepted_answers(str(one.gold)):
        if normalise_locomo(text) == normalise_locomo(right):
            return False
        numbers, right_numbers = _numbers(text), _numbers(right)
        same_but_numbers = [t for t in answer_tokens(text) if not t[0].isdigit()] == \
            [t for t in answer_tokens(right) if not t[0].isdigit()]
        near = len(numbers) == len(right_numbers) and all(abs(a - b) <= 1 for a, b in zip(numbers, right_numbers))
        if one.kind == "temporal" and numbers and near and same_but_numbers:
            return False
    return True


def _numbers(text: str) -> list[float]:
    return [float(token) for token in answer_tokens(text) if re.fullmatch(r"[-+]?\d+(?:\.\d+)?", token)]
