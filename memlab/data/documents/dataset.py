"""Your own documents: a folder of .md, .txt, .pdf, .docx and .json files, one corpus; folders below count as well.

A document is a session, its blocks in order (paragraphs, tables, entries, pages of a PDF) are the turns, and the
file's name is who speaks. Its day is what it states itself: ``date: 2023-05-20`` in the front matter of .md and .txt::

    ---
    date: 2023-05-20
    ---
    # What we decided
    ...

or the field "date" of a JSON object; a document without one is seen by every question. In the table ids a block is
called "notes/plan.md@120", by the offset of its first character (page and offset, number or path in other formats).

questions.jsonl beside the documents is as in data=custom, without "corpus"; a session is named by its path below the
folder, a turn by its block's number from 0 (leave it out where any part of the document will do)::

    {"question": "q1", "text": "When do we ship?", "answer": "in May", "evidence": [{"session": "notes/plan.md"}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from memlab.data import jsonl
from memlab.data.build import Builder
from memlab.data.documents import readers
from memlab.data.documents.blocks import Document
from memlab.data.readers import sha256
from memlab.data.subset import Subset
from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.stage import LocalPath, stage
from memlab.tables import Tables


class DocumentQuestion(jsonl.QuestionLine):
    """A line of questions.jsonl; there is one corpus, so naming it is needless."""

    corpus: jsonl.Name = "documents"


@stage
class Documents(Subset):
    """The folder's documents in the order of their days, those without one first, then by name."""

    path: LocalPath | None = None  # the folder; needed
    max_mb: Annotated[float, Field(gt=0)] = 20.0  # a larger file is refused, so that a mistake does not fill the memory

    def __post_init__(self) -> None:
        if self.path is None or not self.path.is_dir():
            here = "no folder is given" if self.path is None else f"{self.path} is no folder"
            raise MemlabError(here, where="data.path", fix="give a folder of documents")

    @property
    def name(self) -> str:
        """The folder's name, after ``documents-``."""
        return self.pooled_name(f"documents-{self._folder().name}")

    def load(self) -> Tables:
        """Read the folder; raises Faults with everything that is wrong with its files."""
        documents, faults = readers.read(self._folder(), self.max_mb)
        questions = self._questions(documents, faults)
        if faults:
            raise Faults(faults)
        build = Builder()
        build.corpus(corpus=0, name=self._folder().name)
        order = sorted(documents, key=lambda name: (str(documents[name].said_on or ""), name))
        for place, name in enumerate(order):
            build.session(corpus=0, session=place, said_on=documents[name].said_on, name=name)
            for turn, block in enumerate(documents[name].blocks):
                build.turn(corpus=0, session=place, turn=turn, role="user", speaker=name, text=block.text,
                           name=f"{name}@{block.place}")
        for number, question in enumerate(questions):
            build.question(question=number, corpus=0, text=question.text, asked_on=question.asked_on,
                           name=question.question, answer=question.answer, category=question.category,
                           abstain=question.abstain, scored=bool(question.evidence))
            cited = {(order.index(e.session), e.turn) for e in question.evidence}
            for place, at in sorted(cited, key=lambda c: (c[0], -1 if c[1] is None else c[1])):
                build.evidence(question=number, session=place, turn=at)
        made = build.tables()
        if not questions:
            return made
        return self.cut(made)

    def identity(self) -> dict[str, Any]:
        """Checksums of all files, options, and the versions of the libraries that read them."""
        folder = self._folder()
        found = readers.files(folder)
        asked = folder / readers.QUESTIONS
        sums = {path.relative_to(folder).as_posix(): sha256(path)
                for path in [*found, *([asked] if asked.is_file() else [])]}
        endings = {path.suffix.lower() for path in found}
        used = {package: _version(package) for ending, package in (("pdf", "pypdf"), ("docx", "python-docx"))
                if f".{ending}" in endings}
        return {"benchmark": "documents", "files": sums, "libraries": used, **self.options()}

    def notes(self) -> list[str]:
        """What a reader of the results must know."""
        return ["A document that states no date is seen by every question; a question without one sees them all.",
                *super().notes()]

    def clusters(self) -> bool:
        """Questions are taken as independent, as is usual in retrieval."""
        return False

    def _questions(self, documents: dict[str, Document], faults: list[str]) -> list[jsonl.QuestionLine]:
        path = self._folder() / readers.QUESTIONS
        if not path.is_file():
            return []
        whole = not faults  # a document that could not be read may be the one that a question names
        found: dict[str, jsonl.QuestionLine] = {}
        for where, _, question in jsonl.records(path, DocumentQuestion, faults):
            if question is None:
                continue
            if found.setdefault(question.question, question) is not question:
                faults.append(f"{where}, field question: '{question.question}' was there before")
            if whole:
                faults += [f"{where}, field {fault}" for fault in _wrong_evidence(question, documents)]
        return list(found.values())

    def _folder(self) -> Path:
        assert self.path is not None
        return self.path


def _wrong_evidence(question: jsonl.QuestionLine, documents: dict[str, Document]) -> Iterator[str]:
    for i, cited in enumerate(question.evidence):
        document = documents.get(cited.session)
        if document is None:
            yield (f"evidence[{i}].session: there is no document '{cited.session}'; "
                   f"{did_you_mean(cited.session, documents)}")
        elif cited.turn is not None and cited.turn >= len(document.blocks):
            yield f"evidence[{i}].turn: '{cited.session}' has {len(document.blocks)} blocks, counted from 0"
        elif question.asked_on and document.said_on and document.said_on.date() > question.asked_on.date():
            yield (f"evidence[{i}].session: '{cited.session}' is of {document.said_on:%Y-%m-%d}, after the question "
                   "(asked_on), and will never be retrieved")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
