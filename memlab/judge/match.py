"""Judges by rule: the gold answer itself, the gold answer within the response, and whether a response declines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.judge.cases import NO_GOLD, READS, Case, Verdict, cases, verdicts
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.text.normalise import accepted_answers, answer_tokens

_NOT = r"(?:not|never|n't)"
_DECLINES = re.compile("|".join((
    rf"\b(?:did|do|does|has|have|had|was|were|is|are)\s?{_NOT} (?:\w+ ){{0,2}}"
    r"(?:mention|say|said|specif|state|provide|discuss|told|tell|share|indicate|include|contain|give|given|talk)",
    r"\byou (?:have )?never (?:mention|said|told|talk|shar|discuss)",
    rf"\b(?:do|does|did|is|are|was|were|ca|can|could){_NOT} (?:\w+ )?(?:know|clear|sure|certain|enough|available)\b",
    r"\b(?:do|does|did|is|are|was|were|can|could) not (?:\w+ )?(?:know|clear|sure|certain|enough|available)\b",
    r"\b(?:ca|could)n't (?:\w+ )?(?:answer|say|tell|find|determine|recall)\b",
    r"\b(?:cannot|can not|could not) (?:\w+ )?(?:answer|say|tell|find|determine|recall|be (?:answered|determined))\b",
    r"\b(?:unable|impossible) to (?:answer|say|tell|find|determine)\b",
    r"\b(?:no|not enough|insufficient|not any|n't any) (?:\w+ ){0,2}(?:information|mention|record|evidence|details)\b",
    r"\binformation (?:\w+ ){0,3}(?:is|was) (?:not|insufficient|incomplete|missing)\b",
    r"\b(?:not|never|un)\s?-?(?:mentioned|specified|stated|provided|available|discussed|known|answerable)\b",
    r"\b(?:do|does|did|have|has)(?: not|n't) have (?:\w+ ){0,4}(?:information|record|details|memory)\b",
)))


def abstains(response: str) -> bool:
    """Tell whether a response says that what was asked is not known; a rule over common phrases, in English.

    It cannot tell a response that declines and then guesses from one that declines.

    >>> abstains("You didn't mention baking for your uncle."), abstains("A lemon cake.")
    (True, False)
    """
    plain = " ".join(response.casefold().replace("\u2019", "'").split())
    return _DECLINES.search(plain) is not None


def same(response: str, gold: str) -> bool:
    """Tell whether the response is the gold answer, but for case, punctuation, articles and number words.

    >>> same("Four hours.", "4 hours"), same("About 4 hours", "4 hours")
    (True, False)
    """
    words = answer_tokens(response)
    return bool(words) and any(words == answer_tokens(one) for one in accepted_answers(gold))


def within(response: str, gold: str) -> bool:
    """Tell whether the gold answer's words stand in the response, whole and in order.

    >>> within("It took you 4 hours.", "Four hours"), within("It took you 14 hours.", "4 hours")
    (True, False)
    """
    words = answer_tokens(response)
    for one in accepted_answers(gold):
        wanted = answer_tokens(one)
        n = len(wanted)
        if n and any(words[i:i + n] == wanted for i in range(len(words) - n + 1)):
            return True
    return False


def _judge(tables: Tables, name: str, sample: int, rule: Callable[[str, str], bool]) -> Tables:
    def verdict(case: Case) -> Verdict:
        if case.abstain:
            right = abstains(case.response)
        elif case.gold is None:
            return NO_GOLD
        else:
            right = rule(case.response, case.gold)
        return Verdict(float(right), right)

    judged = cases(tables, sample)
    return verdicts(name, judged, map(verdict, judged))


@stage
class ExactMatch:
    """Right where the response is the gold answer (see :func:`same`), or declines what cannot be answered."""

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    name: str = "exact"
    sample: Annotated[int, Field(ge=0)] = 0  # which of a question's answers is judged

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return one verdict an answer."""
        return _judge(tables, self.name, self.sample, same)


@stage
class Contains:
    """Right where the response contains the gold answer (see :func:`within`), or declines what cannot be answered.

    A response that lists every possible answer contains the right one: read this judge beside another.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    name: str = "contains"
    sample: Annotated[int, Field(ge=0)] = 0  # which of a question's answers is judged

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return one verdict an answer."""
        return _judge(tables, self.name, self.sample, within)
