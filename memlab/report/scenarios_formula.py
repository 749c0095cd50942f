"""Which of Gimli's targets its own formula can meet, worked out.

score = 0.7 x cosine + 0.3 x 1/(1 + rank by keywords), ranks from 1, nothing for what no keyword finds; results below
0.35 are dropped. Nothing here is measured except the cosines that a caller adds.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from memlab.evaluate.scenarios import TEXT, VECTOR

FLOOR = 0.35
"""Gimli's minScore."""

Verdict = Literal["yes", "hardly", "depends", "by chance", "never"]


class Limit(NamedTuple):
    """A target, whether the formula can meet it, and why."""

    category: str
    target: str
    verdict: Verdict
    why: str


def score(cosine: float, rank: int | None) -> float:
    """Gimli's score; ``rank`` is None for what no keyword finds.

    >>> round(score(1.0, 1), 3), round(score(0.5, None), 3)
    (0.85, 0.35)
    """
    return VECTOR * cosine + (0.0 if rank is None else TEXT / (1 + rank))


def needed(target: float, rank: int | None) -> float:
    """The cosine at which a score reaches a target.

    >>> round(needed(0.8, 1), 3), round(needed(0.6, None), 3)
    (0.929, 0.857)
    """
    return (target - score(0.0, rank)) / VECTOR


def limits() -> list[Limit]:
    """Work out every target of the eight scenarios."""
    text = 1 / (1 + 1)
    most = TEXT * text
    return [
        Limit("exact-match", "in the top 3", "yes", "keyword rank 1 and a high cosine come together here"),
        Limit("exact-match", "score > 0.8", "hardly",
              f"the formula ends at {score(1, 1):.2f}; the memory must be first by keywords and have a cosine above "
              f"{needed(0.8, 1):.3f}, which only near-verbatim text has; at keyword rank 2 it would need one above "
              f"{needed(0.8, 2):.3f}"),
        Limit("semantic-equivalence", "in the top 5", "yes",
              f"if it reaches {FLOOR}: without a shared word a cosine of {needed(FLOOR, None):.3f}"),
        Limit("semantic-equivalence", "score > 0.6", "hardly",
              f"a paraphrase that shares no word needs a cosine above {needed(0.6, None):.3f}, and one above "
              f"{needed(0.6, 1):.3f} even if it is first by keywords"),
        Limit("semantic-equivalence", "vector share largest", "yes",
              f"and it says nothing of its own: above 0.6 the vectors hold at least {0.6 - most:.2f}, the keywords at "
              f"most {most:.2f}"),
        Limit("technical-term", "in the top 3", "yes",
              f"if it reaches {FLOOR}: a rare term is first by keywords, so a cosine of {needed(FLOOR, 1):.3f} does"),
        Limit("technical-term", "text score > 0.5", "never",
              f"1/(1 + rank) is {text:.1f} at rank 1 and less after it; it would need ranks from 0"),
        Limit("cross-chunk", "first and second returned", "yes",
              f"if both reach {FLOOR}: a cosine of {needed(FLOOR, 1):.3f}, {needed(FLOOR, 2):.3f} or, without a "
              f"keyword, {needed(FLOOR, None):.3f}"),
        Limit("cross-chunk", "scores within 0.2", "yes",
              f"the keyword parts are at most {most:.2f} apart, so cosines less than {(0.2 - most) / VECTOR:.3f} apart "
              "always do"),
        Limit("temporal-disambiguation", "newer before older", "by chance",
              "no date enters the formula, so wording decides; the recommended factor max(.5, 1 - days/180) would "
              "bring the newer one forward, but not where both are older than 90 days"),
        Limit("source-priority", "file before chat", "by chance",
              "no source enters the formula, so wording decides; source priority is only recommended"),
        Limit("low-relevance", "nothing returned", "depends",
              f"whatever is first by keywords gets {most:.2f} however poor it is, so its cosine must stay below "
              f"{needed(FLOOR, 1):.3f}, and every other below {needed(FLOOR, None):.3f}: that hangs on the encoder"),
        Limit("multi-concept", "first and second returned", "yes",
              f"if both reach {FLOOR} among 6 results; what only keywords find never does, it has {most:.2f} at most"),
    ]
