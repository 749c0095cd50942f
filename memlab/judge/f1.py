"""LoCoMo's own answer score: token F1 of stems, by category.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024);
github.com/snap-research/locomo, ``task_eval/evaluation.py``.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from memlab.judge.cases import NO_GOLD, Case, RuleJudge, Verdict
from memlab.judge.match import abstains
from memlab.stage import stage
from memlab.text.normalise import locomo_stems

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
