"""Judges by rule: exact match, containment of the gold answer, and LoCoMo's token F1.

LoCoMo's own answer score: token F1 of stems, by category.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024);
github.com/snap-research/locomo, ``task_eval/evaluation.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.stages.judge.cases import NO_GOLD, Case, RuleJudge, Verdict
from memlab.support.text.normalise import ARTICLES, accepted_answers, answer_tokens, is_unit, locomo_stems

_DECLINED = ("no information available", "not mentioned")


def token_f1(response: str, gold: str) -> float:
    """Return the F1 of two bags of stems: 2 |both| / (|response| + |gold|), 0 if they share none.

    >>> round(token_f1("She was painting a sunset", "painted sunsets"), 4)  # she wa paint sunset | paint sunset
    0.6667
    """
    words, right = locomo_stems(response), locomo_stems(gold)
    both = sum((Counter(words) & Counter(right)).values())
    return 2 * both / (len(words) + len(right)) if both else 0.0


def parts_f1(response: str, gold: str) -> float:
    """Split both at commas; return the mean over the gold parts of their best F1 with a part of the response.

    >>> parts_f1("camping, pottery", "pottery, swimming")
    0.5
    """
    best = [max(token_f1(item, part) for item in response.split(",")) for part in gold.split(",")]
    return sum(best) / len(best)


def locomo_score(case: Case) -> float | None:
    """Score one answer by the rule of its category, as LoCoMo does; None if there is nothing to compare with."""
    if case.category == "adversarial":
        return float(any(words in case.response.lower() for words in _DECLINED))
    if case.abstain:
        return float(abstains(case.response))
    if case.gold is None:
        return None
    if case.category == "multi-hop":
        return parts_f1(case.response, case.gold)
    gold = case.gold.split(";")[0] if case.category == "open-domain" else case.gold
    return token_f1(case.response, gold)


@stage
class TokenF1(RuleJudge):
    """Token F1 as score; right if it reaches ``threshold``.

    multi-hop: gold and response are split at commas; open-domain: only the gold text before the first semicolon counts;
    adversarial: right if the response contains "no information available" or "not mentioned". All other categories, of
    any benchmark, get plain F1; an abstention question is right if the response declines.
    """

    name: str = "f1"
    # F1 from which an answer counts as right; LoCoMo reports the mean F1 only, so this is memlab's choice
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.5

    def verdict(self, case: Case) -> Verdict:
        """Return the score, and whether it reaches the threshold; no verdict without a gold answer."""
        score = locomo_score(case)
        return NO_GOLD if score is None else Verdict(score, score >= self.threshold)


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
    """Return whether a response says in a common English phrase that the answer is not known.

    A response that declines and then guesses counts as declining.

    >>> abstains("You didn't mention baking for your uncle."), abstains("A lemon cake.")
    (True, False)
    """
    plain = " ".join(response.casefold().replace("\u2019", "'").split())
    return _DECLINES.search(plain) is not None


_UNITS = {"percent": "%", "dollar": "$", "dollars": "$", "euro": "\u20ac", "euros": "\u20ac", "pounds": "\u00a3",
          "degree": "\u00b0", "degrees": "\u00b0"}
"""Words for symbols: "5 dollars" is "$5"."""


def same(response: str, gold: str) -> bool:
    """Return whether the response is the gold answer, apart from case, punctuation, articles and number words.

    >>> same("Four hours.", "4 hours"), same("About 4 hours", "4 hours"), same("5 degrees", "-5 degrees")
    (True, False, False)
    """
    pairs = (_tokens(response, one) for one in accepted_answers(gold))
    return any(bool(wanted) and words == wanted for words, wanted in pairs)


def within(response: str, gold: str) -> bool:
    """Return whether the response contains the gold answer's words, whole and in order.

    >>> within("It took you 4 hours.", "Four hours"), within("It took you 14 hours.", "4 hours")
    (True, False)
    """
    return any(_within(response, one) for one in accepted_answers(gold))


def _within(response: str, gold: str) -> bool:
    words, wanted = _tokens(response, gold)
    if {*wanted} <= {*ARTICLES}:  # the grade in "I got an A" is no article: it is written as the gold answer is
        return same(response, gold) or gold.strip(" .!\"'") in re.split(r"[^\w+#-]+", response) != [""]
    return any(words[i:i + len(wanted)] == wanted for i in range(len(words)))


def _tokens(response: str, gold: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tokens of a response and of a gold answer. Articles count where the gold answer has nothing else.

    A symbol of money, percent or degrees, or a picture, that is only in the response does not count.
    """
    articles = not answer_tokens(gold)
    words, wanted = (tuple(_UNITS.get(token, token) for token in answer_tokens(text, articles))
                     for text in (response, gold))
    if not any(map(is_unit, wanted)):
        words = tuple(word for word in words if not is_unit(word))
    return words, wanted


@stage
class ExactMatch(RuleJudge):
    """Right if the response is the gold answer (see :func:`same`), or declines what cannot be answered."""

    name: str = "exact"
    matches: ClassVar = staticmethod(same)

    def verdict(self, case: Case) -> Verdict:
        """Return right or wrong; no verdict without a gold answer."""
        if case.abstain:
            right = abstains(case.response)
        elif case.gold is None:
            return NO_GOLD
        else:
            right = self.matches(case.response, case.gold)
        return Verdict(float(right), right)


@stage
class Contains(ExactMatch):
    """Right if the response contains the gold answer (see :func:`within`), or declines what cannot be answered.

    A response that lists every possible answer counts as right, so use this judge together with another.
    """

    name: str = "contains"
    matches: ClassVar = staticmethod(within)
