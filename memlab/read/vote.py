"""How often a reader is asked, and which of its answers counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Protocol, runtime_checkable

from pydantic import Field

from memlab.stage import stage
from memlab.text.normalise import normalise_vote


@runtime_checkable
class Vote(Protocol):
    """A number of samples, the temperature they are drawn at (None: the model's own), and a way to decide."""

    @property
    def samples(self) -> int:
        """Replies asked for each question."""
        ...

    @property
    def temperature(self) -> float | None:
        """Temperature of each."""
        ...

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the answer that counts; answers has one entry a sample."""
        ...


@stage
class Single:
    """Ask once, and take what comes."""

    @property
    def samples(self) -> int:
        """One."""
        return 1

    @property
    def temperature(self) -> None:
        """The model's own."""

    def decide(self, answers: Sequence[str]) -> int:  # noqa: ARG002
        """Return 0."""
        return 0


@stage
class SelfConsistency:
    """Ask several times and take the answer given most often (Wang et al., Self-Consistency, ICLR 2023).

    Answers are the same if their words and numbers are, but for case, articles and marks. Of equally frequent ones
    the earliest wins, so free text that never agrees comes down to the first sample. Blank answers do not vote
    unless all are blank.
    """

    samples: Annotated[int, Field(ge=2)] = 5
    # the paper's for most models; at 0 all samples would be alike
    temperature: Annotated[float, Field(gt=0, le=2)] = 0.7

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the first answer of the largest group.

        >>> SelfConsistency(samples=3).decide(["Two cats.", "three cats", "Three cats!"])
        1
        """
        forms = [normalise_vote(answer) for answer in answers]
        votes = Counter(form for form in forms if form) or Counter(forms)
        return forms.index(max(votes, key=lambda form: votes[form]))
