"""What a judge is shown of an answer, and the table of its verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from memlab.errors import MemlabError, did_you_mean
from memlab.stage import Stage, stage
from memlab.store import Store
from memlab.tables import Notes, Tables, frame, with_text

READS = ("answers", "questions", "gold", "texts")
"""Tables that a judge is handed: nothing of retrieval, so that a verdict depends on the words alone."""


class Case(NamedTuple):
    """One answer to judge; ``gold`` is null where the benchmark gives none."""

    question: int
    text: str
    gold: str | None
    category: str
    abstain: bool
    response: str


class Verdict(NamedTuple):
    """Score in [0, 1], whether it counts as right, and the judge's own words; null, null where it has no opinion."""

    score: float | None
    correct: bool | None
    reply: str = ""


NO_GOLD = Verdict(None, None, "there is no gold answer")


def cases(tables: Tables, sample: int = 0) -> list[Case]:
    """Put question, gold and response side by side, for the answers of one sample, by question.

    Raises MemlabError where an answer's question, gold or text is not in the tables.
    """
    answers = with_text(tables["answers"].filter(pl.col("sample") == sample), tables["texts"]).sort("question")
    asked = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
    gold = {q: row for q, *row in tables["gold"].select("question", "answer", "category", "abstain").iter_rows()}
    found = []
    for question, response in answers.select("question", "text").iter_rows():
        if question not in gold or asked.get(question) is None or response is None:
            raise MemlabError(f"question {question} was answered, but its gold, its question or the answer's text is "
                              "not in the tables", where="judge", fix="give the tables that the answers were made of")
        answer, category, abstain = gold[question]
        found.append(Case(question, asked[question], answer, category, abstain, response))
    return found


def verdicts(judge: str, judged: Sequence[Case], given: Iterable[Verdict]) -> Tables:
    """Make the table of verdicts that one judge gave, case by case."""
    rows = list(given)
    return Tables(verdicts=frame("verdicts", {
        "question": [case.question for case in judged], "judge": [judge] * len(rows),
        "score": [row.score for row in rows], "correct": [row.correct for row in rows],
        "reply": [row.reply for row in rows]}))


@stage
class Judges:
    """Let each judge give its verdicts; their names tell them apart, so that no two may be the same."""

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
        """Return the verdicts of all judges, one judge after the other."""
        notes = Notes()
        made = [notes.include(judge.run(tables, store))["verdicts"] for judge in self.judges]
        return Tables(verdicts=pl.concat(made), notes=notes.table())
