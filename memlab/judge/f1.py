"""LoCoMo's own answer score: token F1 of stems, by category.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024);
github.com/snap-research/locomo, ``task_eval/evaluation.py``.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, ClassVar

from pydantic import Field

from memlab.judge.cases import NO_GOLD, READS, Case, Verdict, cases, verdicts
from memlab.judge.match import abstains
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.text.normalise import locomo_stems

_DECLINED = ("no information available", "not mentioned")


def token_f1(response: str, gold: str) -> float:
    """F1 of two bags of stems: 2 |both| / (|response| + |gold|), 0 where they share none.

    >>> round(token_f1("She was painting a sunset", "painted sunsets"), 4)  # she wa paint sunset | paint sunset
    0.6667
    """
    said, right = locomo_stems(response), locomo_stems(gold)
    both = sum((Counter(said) & Counter(right)).values())
    return 2 * both / (len(said) + len(right)) if both else 0.0


def parts_f1(response: str, gold: str) -> float:
    """Split both at commas; of each part of the gold answer the best F1 with a part of the response; their mean.

    >>> parts_f1("camping, pottery", "pottery, swimming")
    0.5
    """
    said = response.split(",")
    best = [max(token_f1(one, part) for one in said) for part in gold.split(",")]
    return sum(best) / len(best)


def locomo_score(case: Case) -> float | None:
    """Score one answer as LoCoMo does by its category; null where there is nothing to compare with."""
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
class TokenF1:
    """Token F1 as score; right where it reaches ``threshold``.

    multi-hop: gold and response are split at commas; open-domain: only what stands before the first semicolon
    counts; adversarial: right if the response contains "no information available" or "not mentioned". Any other
    category, of whatever benchmark, takes plain F1, and an abstention question whether the response declines.
    LoCoMo itself reports the mean score and no share of right answers: the threshold is memlab's.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    name: str = "f1"
    # F1 from which an answer counts as right; LoCoMo reports the mean F1 only, so this is memlab's choice
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.5
    sample: Annotated[int, Field(ge=0)] = 0  # which of a question's answers is judged

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return one verdict an answer."""
        judged = cases(tables, self.sample)
        return verdicts(self.name, judged, map(self._verdict, judged))

    def _verdict(self, case: Case) -> Verdict:
        score = locomo_score(case)
        return NO_GOLD if score is None else Verdict(score, score >= self.threshold)
