"""The cases that judges read, from a run or a user's file, the table of verdicts, and a panel of judges."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import Stage, stage
from memlab.pipeline.tables import Notes, Tables, add_texts, frame, with_text
from memlab.store import Store
from memlab.support.errors import Faults, MemlabError, did_you_mean
from memlab.support.text.display import replace_surrogates

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

    ``fault`` says why a reply is not complete.
    """

    score: float | None
    correct: bool | None
    reply: str = ""
    fault: str | None = None


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


class HypothesisFile(NamedTuple):
    """Hypotheses by question number, unknown ids, and ids of questions without a hypothesis."""

    hypotheses: dict[int, str]
    unknown: list[str]
    missing: list[str]


def question_ids(tables: Tables) -> dict[str, int]:
    """Return the benchmark's question ids with their numbers; raise MemlabError if two questions share one."""
    rows = tables["ids"].filter(pl.col("kind") == "question").select("name", "question")
    if rows["name"].n_unique() < rows.height:
        raise MemlabError("two questions have one id, so that no answer can be assigned", where="table ids")
    return dict(rows.iter_rows())


def read(path: Path, question_of: Mapping[str, int]) -> HypothesisFile:
    """Read a file of hypotheses: JSONL, or a JSON list of the same objects; further fields are allowed.

    Raises Faults with all broken lines and repeated ids. Ids that the benchmark does not have are skipped, as in the
    official script, and reported; it is an error if no id is left.
    """
    hypotheses: dict[int, str] = {}
    first: dict[str, int] = {}
    unknown: list[str] = []
    faults: list[str] = []
    for number, record in _records(path, faults):
        where = f"{path.name}, line {number}"
        name, text = record.get("question_id"), record.get("hypothesis")
        wrong = [key for key, value in (("question_id", name), ("hypothesis", text)) if not isinstance(value, str)]
        if wrong:
            faults += [f"{where}, field {key}: " + ("expected a text" if key in record else "is missing")
                       for key in wrong]
            continue
        name, text = str(name), replace_surrogates(str(text))
        if name in first:
            faults.append(f"{where}: question_id '{name}' was there before, on line {first[name]}")
            continue
        first[name] = number
        if name in question_of:
            hypotheses[question_of[name]] = text
        else:
            unknown.append(f"{where}: no question has the id '{name}'; {_nearest(name, question_of)}")
    if faults:
        raise Faults(faults)
    if not hypotheses:
        raise MemlabError("no line names a question of this data set", where=str(path),
                          fix=(unknown[0].partition("; ")[2] + "; " if unknown else "") + "check --data and --path")
    return HypothesisFile(hypotheses, unknown, [name for name, q in question_of.items() if q not in hypotheses])


def _nearest(name: str, known: Mapping[str, int]) -> str:
    hint = did_you_mean(name, known)
    return hint.partition(" (known:")[0] if hint.startswith("did you mean") else f"ids look like '{next(iter(known))}'"


def _records(path: Path, faults: list[str]) -> list[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise MemlabError(f"cannot be read ({getattr(fault, 'strerror', None) or 'it is not UTF-8'})",
                          where=str(path), fix="give a JSONL file of question_id and hypothesis") from fault
    if text.lstrip().startswith("["):
        try:
            records = list(enumerate(json.loads(text), start=1))
        except (ValueError, RecursionError) as fault:
            raise MemlabError(f"is not a JSON list ({fault})", where=str(path)) from fault
    else:
        records = []
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    records.append((number, json.loads(line)))
                except (ValueError, RecursionError) as fault:
                    faults.append(f"{path.name}, line {number}: is not JSON ({fault})")
    faults += [f"{path.name}, line {n}: expected an object" for n, value in records if not isinstance(value, dict)]
    if not records and not faults:
        raise MemlabError("there is no line in it", where=str(path))
    return [(n, value) for n, value in records if isinstance(value, dict)]


def with_answers(tables: Tables, hypotheses: Mapping[int, str]) -> Tables:
    """Return the tables that a judge reads, with the hypotheses as answers (sample 0; tokens and seconds unknown)."""
    rows = sorted(hypotheses.items())
    ids, texts = add_texts(tables["texts"], [text for _, text in rows])
    answers = frame("answers", {"question": [q for q, _ in rows], "sample": [0] * len(rows), "text_id": ids})
    return tables.only(("questions", "gold")).updated({"answers": answers, "texts": texts})
