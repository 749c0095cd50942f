"""Questions to a live memory: a run of an experiment's pipeline over the tables of its sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any

import polars as pl

from memlab.memory import results
from memlab.memory.adaptation import adapt_to_data, with_depth, with_exact_search
from memlab.memory.content import Content
from memlab.memory.feedback import with_record
from memlab.memory.one_search import by_vector, by_words
from memlab.memory.pruning import AccessProtected, frequently_accessed, renumber, sessions_to_prune
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import PER_SESSION
from memlab.pipeline.stage import EmptyStage, Stage
from memlab.pipeline.tables import Tables, add_texts, frame
from memlab.stages.query.where import Where, narrow
from memlab.support.clock import FORMS
from memlab.support.errors import MemlabError
from memlab.support.text.display import replace_surrogates

When = Annotated[datetime | date | str, f"write {FORMS}"] | None
"""A day or a moment, also as text; None is the present moment, or unknown."""

Filter = Annotated[Mapping[str, Any], 'write {"user": "ann"}']
"""A filter as ``Memory.search`` describes it."""

PRUNED: dict[str, Any] = {"session": pl.Int32, "turns": pl.List(pl.Int32)}
"""Columns of what is pruned; turns are null for the whole session."""


@dataclass(frozen=True)
class Question:
    """A question as ``Memory.search`` describes it; raises MemlabError for a blank one.

    vector: of unit length, in place of the text.
    """

    text: str
    now: When = None
    k: int | None = None
    where: Filter | None = None
    threshold: float | None = None
    vector: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.vector is None and not self.text.strip():
            raise MemlabError("the question is blank", where="question", fix="write some words")


class Questions:
    """The pipeline of a memory, as its questions run it.

    pipeline: the stages, without judges. ranking: those after an addition, up to the selection. answering: those with
    the context and the answer. words: only the search by words.

    Args:
        pipeline: Stages that write, search and read.
        often: Memories that were returned more than so many times are never pruned.

    Raises MemlabError for a pipeline that reads gold.
    """

    def __init__(self, pipeline: Pipeline, often: int) -> None:
        self.pipeline = pipeline.without_judges()
        self.answering = self.pipeline.without(*PER_SESSION)
        self.ranking = results.ranking_alone(self.answering)
        self.words = by_words(self.answering)
        self._often = often

    def run(self, pipeline: Pipeline, content: Content, question: Question, ended: bool = False) -> Tables:
        """Return the tables of a question after ``ranking``, ``answering``, ``words`` or ``by_vector``.

        ``ended``: with what is no longer valid.
        """
        tables = self._tables(content, question.text, question.now, ended)
        if wanted := Where.read_any(question.where, content.sessions.clock()):
            tables, pipeline = content.filter_tables(tables, wanted), with_exact_search(pipeline)
        _, places = content.sessions.tables()
        pipeline = with_record(pipeline.replace(prune=self._pruning(content, tables)), content.votes, content.accesses,
                               places)
        found = with_depth(adapt_to_data(pipeline, tables), question.k).run(tables, content.question_store())
        content.note_question()
        return found

    def by_vector(self, question: Question) -> Pipeline:
        """Return the search by nothing but a question's vector; raise MemlabError for a pipeline without vectors."""
        assert question.vector is not None
        return by_vector(self.answering, question.vector)

    def search(self, pipeline: Pipeline, content: Content, question: Question) -> pl.DataFrame:
        """Return the results of a question to a pipeline, and count that they were returned."""
        tables = self.run(pipeline, content, question)
        found = self.results(content, tables, question)
        content.accesses.add(found, day_of(tables))
        return found

    def results(self, content: Content, tables: Tables, question: Question) -> pl.DataFrame:
        """Return the results that a question asks for."""
        found = content.restore_numbers(
            results.results(tables, self.pipeline, question.k, content.sessions.name_at))
        found = content.sessions.with_chunks(found)
        return found if question.threshold is None else found.filter(pl.col("score") >= question.threshold)

    def history(self, content: Content, tables: Tables, question: Question) -> pl.DataFrame:
        """Return the memories behind the results in the order of time (``memlab.memory.results.history``)."""
        return content.restore_numbers(results.history(tables, content.validity.ends(), question.k))

    def prunable(self, content: Content, now: When) -> pl.DataFrame:
        """Return (session, turns) of what the pipeline's pruning leaves out on a day; null for the whole session.

        It sees what was said until that day. Earlier versions of a session go with it.
        """
        tables = self._tables(content, "", now, ended=True)
        said = tables["sessions"].select((pl.col("said_on").dt.date() <= day_of(tables)).fill_null(True)).to_series()
        tables = narrow(tables, said.to_numpy(), Where({}))
        pruned = sessions_to_prune(tables, self.pipeline.relate, self._pruning(content, tables),
                                   content.question_store())
        rows = content.restore_numbers(pl.DataFrame(
            [(session, turns and sorted(turns)) for session, turns in pruned.items()], orient="row", schema=PRUNED))
        earlier = dict.fromkeys(content.sessions.earlier(*rows["session"]))
        rest = [row for row in rows.iter_rows() if row[0] not in earlier]
        return pl.DataFrame([*rest, *earlier.items()], orient="row", schema=PRUNED)

    def _tables(self, content: Content, question: str, now: When, ended: bool) -> Tables:
        """Return the tables of what is valid, or of all sessions, and of the one question."""
        moment = content.sessions.moment(now)
        tables = (content.sessions.tables()[0] if ended or not content.sessions.ended
                  else content.validity.tables(moment.date(), content.question_store()))
        text_id, texts = add_texts(tables["texts"], [replace_surrogates(question)])
        questions = frame("questions", {"question": [0], "corpus": [0], "text_id": text_id, "asked_on": [moment]})
        return tables.updated({"questions": questions, "texts": texts})

    def _pruning(self, content: Content, tables: Tables) -> Stage:
        """Return the pipeline's pruning, with frequently returned memories protected."""
        if isinstance(self.pipeline.prune, EmptyStage):
            return self.pipeline.prune
        _, places = content.sessions.tables()
        counts = renumber(content.accesses.frame(), places)
        protected = frequently_accessed(tables["memories"], counts, self._often)
        return AccessProtected(by=self.pipeline.prune, memories=protected)


def day_of(tables: Tables) -> date:
    """Return the day of the one question."""
    moment: datetime = tables["questions"]["asked_on"][0]
    return moment.date()
