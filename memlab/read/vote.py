"""Number of samples per question, and the choice of the answer among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from pydantic import Field, model_validator

from memlab.question_types import FALLBACK, check_classes
from memlab.stage import Names, stage
from memlab.text.normalise import normalise_vote

Temperature = Annotated[float, Field(gt=0, le=2)]


@runtime_checkable
class Vote(Protocol):
    """The samples for a question of some class, and the rule that picks the answer."""

    def schedule(self, kind: str) -> tuple[float | None, ...]:
        """Return the temperature of each sample for a question of this class; None for the model's own."""

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the answer that counts; there is one answer per sample."""


@stage
class Single:
    """One reply, which is the answer."""

    samples: ClassVar = 1
    temperature: ClassVar = None

    def schedule(self, kind: str) -> tuple[float | None, ...]:  # noqa: ARG002
        """Return one sample at the model's own temperature."""
        return (None,)

    def decide(self, answers: Sequence[str]) -> int:  # noqa: ARG002
        """Return 0."""
        return 0


@stage
class SelfConsistency:
    """The most frequent answer of several samples (Wang et al., Self-Consistency, ICLR 2023).

    Answers are the same if their words and numbers are, apart from case, articles and punctuation. The earliest of
    equally frequent ones wins, so without any agreement it is the first sample. Blank answers do not count unless all
    are blank. With ``classes`` only questions of these classes (query/classify; ``multi_session`` counts as
    ``counting``) are asked several times, all others once.
    """

    samples: Annotated[int, Field(ge=2)] = 5
    temperature: Temperature = 0.7  # the paper's for most models; at 0 all samples are alike
    # one per sample, in place of samples and temperature, e.g. [0.3, 0.7, 1.0]
    temperatures: Annotated[tuple[Temperature, ...], Field(strict=False)] = ()
    classes: Names = ()  # classes of questions that are voted on; empty: all

    @model_validator(mode="after")
    def _more_than_one(self) -> SelfConsistency:
        if len(self.temperatures) == 1:
            raise ValueError("one temperature makes no vote; give at least two, or none")
        check_classes({f"read.vote.classes[{i}]": name for i, name in enumerate(self.classes)})
        return self

    def schedule(self, kind: str) -> tuple[float | None, ...]:
        """Return the temperatures of the samples, or one sample at the model's own for other classes.

        >>> SelfConsistency(temperatures=(0.3, 1.0), classes=("counting",)).schedule("multi_session")
        (0.3, 1.0)
        """
        if self.classes and kind not in self.classes and FALLBACK.get(kind) not in self.classes:
            return (None,)
        return self.temperatures or (self.temperature,) * self.samples

    def decide(self, answers: Sequence[str]) -> int:
        """Return the position of the first answer of the largest group.

        >>> SelfConsistency(samples=3).decide(["Two cats.", "three cats", "Three cats!"])
        1
        """
        forms = [normalise_vote(answer) for answer in answers]
        votes = Counter(form for form in forms if form) or Counter(forms)
        return forms.index(max(votes, key=lambda form: votes[form]))
