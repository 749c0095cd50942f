"""The cases that judges read, the table of their verdicts, and a panel of several judges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from memlab.errors import MemlabError, did_you_mean
from memlab.stage import Stage, stage
from memlab.store import Store
from memlab.tables import Notes, Tables, frame, with_text

Sample = Annotated[int, Field(ge=0)]
READS = ("answers", "questions", "gold", "texts")
"""Tables that a judge reads: none from retrieval, so that a verdict depends on the answer's words alone."""


class Case(NamedTuple):
    """One answer to judge; ``gold`` is null if the benchmark gives none."""

    question: int
    text: str
    gold: str | None
    category: str
    abstain: bool
    response: str


class Verdict(NamedTuple):
    """Score in [0, 1], whether the answer counts as right, and the judge's words; both are null without a verdict.

    ``fault`` says why a reply is not complete, and ``sent`` what was sent in place of fields that the server refuses.
    """

    score: float | None
    correct: bool | None
    reply: str = ""
    fault: str | None = None
    sent: str | None = None


NO_GOLD = Verdict(None, None, "there is no gold answer")


def cases(tables: Tables, sample: int = 0) -> list[Case]:
    """Return question, gold and response of the answers of one sample, sorted by question.

    Raises MemlabError if an answer's question, gold or text is not in the tables.
    """
    answers = with_text(tables["answers"].filter(pl.col("sample") == sample), tables["texts"]).sort("question")
    questions = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
    gold = {q: row for q, *row in tables["gold"].select("question", "answer", "category", "abstain").iter_rows()}
    rows = []
    for question, response in answers.select("question", "text").iter_rows():
        if question not in gold or questions.get(question) is None or response is None:
            raise MemlabError(f"question {question} was answered, but its gold, its question or the answer's text is "
                              "not in the tables", where="judge", fix="give the tables that belong to the answers")
        answer, category, abstain = gold[question]
        rows.append(Case(question, questions[question], answer, category, abstain, response))
    return rows


def verdicts(judge: str, judged: Sequence[Case], by_case: Iterable[Verdict]) -> Tables:
    """Build the table of the verdicts that one judge gave, one per case."""
    rows = list(by_case)
    return Tables(verdicts=frame("verdicts", {
        "question": [case.question for case in judged], "judge": [judge] * len(rows),
        **{field: [getattr(row, field) for row in rows] for field in Verdict._fields}}))


@stage
class RuleJudge(ABC):
    """A judge by rule: ``verdict`` decides each case without a model."""

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    name: str
    sample: Sample = 0  # which of a question's answers is judged

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return one verdict per answer."""
        judged = cases(tables, self.sample)
        return verdicts(self.name, judged, map(self.verdict, judged))

    @abstractmethod
    def verdict(self, case: Case) -> Verdict:
        """Return the verdict on one case."""


@stage
class Judges:
    """A panel of judges with distinct names; each gives its own verdicts."""

    reads: ClassVar = READS
    writes: ClassVar = ("verdicts",)

    judges: Annotated[tuple[Any, ...], Field(strict=False, min_length=1)]

    def __post_init__(self) -> None:
        names = [getattr(judge, "name", None) for judge in self.judges]
        for judge, name in zip(self.judges, names):
            if not (isinstance(judge, Stage) and tuple(judge.writes) == ("verdicts",)) or name is None:
                raise MemlabError(f"{type(judge).__name__} is not a judge with a name", where="judge.judges",
                                  fix="list TokenF1, ExactMatch, Contains or LlmJudge")
            if names.count(name) > 1:
                raise MemlabError(f"two judges are called '{name}'", where="judge.judges",
                                  fix=f"give one another name; {did_you_mean(str(name), map(str, names))}")

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the verdicts of all judges, one judge after another."""
        notes = Notes()
        parts = [notes.include(judge.run(tables, store))["verdicts"] for judge in self.judges]
        return Tables(verdicts=pl.concat(parts), notes=notes.table())
