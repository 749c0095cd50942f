"""Number of samples per question, and the choice of the answer among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from pydantic import Field

from memlab.stage import stage
from memlab.text.normalise import normalise_vote


@runtime_checkable
class Vote(Protocol):
    """Number of samples, their temperature, and the rule that picks the answer."""

    @property
    def samples(self) -> int:
        """Replies for each question."""

    @property
    def temperature(self) -> float | None:
        """Temperature of each; None for the model's own."""

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the answer that counts; there is one answer per sample."""


@stage
class Single:
    """One reply, which is the answer."""

    samples: ClassVar = 1
    temperature: ClassVar = None

    def decide(self, answers: Sequence[str]) -> int:  # noqa: ARG002
        """Return 0."""
        return 0


@stage
class SelfConsistency:
    """The most frequent answer of several samples (Wang et al., Self-Consistency, ICLR 2023).

    Answers are the same if their words and numbers are, apart from case, articles and punctuation. The earliest of
    equally frequent ones wins, so without any agreement it is the first sample. Blank answers do not count unless all
    are blank.
    """

    samples: Annotated[int, Field(ge=2)] = 5
    temperature: Annotated[float, Field(gt=0, le=2)] = 0.7  # the paper's for most models; at 0 all samples are alike

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the first answer of the largest group.

        >>> SelfConsistency(samples=3).decide(["Two cats.", "three cats", "Three cats!"])
        1
        """
        forms = [normalise_vote(answer) for answer in answers]
        votes = Counter(form for form in forms if form) or Counter(forms)
        return forms.index(max(votes, key=lambda form: votes[form]))
