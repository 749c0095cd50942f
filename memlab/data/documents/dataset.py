"""Your own documents: a folder of .md, .txt, .pdf, .docx and .json files, with its subfolders, as one corpus.

A document is a session, its blocks in order (paragraphs, tables, entries, pages of a PDF) are the turns, and the
file's name is the speaker. Its date is the one that it states, in the front matter of .md and .txt::

    ---
    date: 2023-05-20
    ---
    # What we decided
    ...

or the field "date" of a JSON object; a document without one is seen by every question. A time of day may have a UTC
offset, as in data=custom. In the table ids a block is called "notes/plan.md@120", by the offset of its first character
(page and offset, number or path in other formats).

questions.jsonl beside the documents is as in data=custom, without "corpus"; a session is named by its path below the
folder, a turn by its block's number from 0 (leave it out where any part of the document is enough)::

    {"question": "q1", "text": "When do we ship?", "answer": "in May", "evidence": [{"session": "notes/plan.md"}]}
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from memlab.data import jsonl
from memlab.data.benchmarks import Builder
from memlab.data.chats.refusal import export_at
from memlab.data.dataset import GroupBy
from memlab.data.documents import blocks, office
from memlab.data.documents.blocks import Document
from memlab.data.readers import sha256
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.support.clock import Clock, order
from memlab.support.errors import Faults, MemlabError
from memlab.support.foreign import MOST_BYTES, read_bytes
from memlab.support.machine import package_version
from memlab.support.text.display import replace_surrogates, safe_line

LOADERS: dict[str, Callable[[bytes], Document]] = {
    ".md": blocks.markdown, ".markdown": blocks.markdown, ".txt": blocks.text,
    ".json": blocks.json_file, ".pdf": office.pdf, ".docx": office.docx,
}
"""Ending of a file's name -> its reader."""


class DocumentQuestion(jsonl.QuestionLine):
    """A line of questions.jsonl, which need not name the only corpus."""

    corpus: jsonl.Name = "documents"


@stage
class Documents(jsonl.FolderDataset):
    """The folder's documents in the order of their dates, those without a date first, then by name."""

    kind: ClassVar = "documents"
    content: ClassVar = "of documents"

    max_mb: Annotated[float, Field(gt=0)] = 20.0  # a larger file is refused, so that a mistake does not fill the memory

    def load(self) -> Tables:
        """Read the folder; raise Faults with everything that is wrong with its files."""
        if {path.suffix.lower() for path in document_files(self.folder)} == {".json"} and (
                export := export_at(self.folder)):
            raise export
        documents, faults = read_documents(self.folder, self.max_mb)
        clock = Clock(self.zone)
        days = {name: jsonl.local(clock, documents[name].stated, f"{name}, its date", faults) for name in documents}
        questions = self._questions(documents, days, clock, faults)
        if faults:
            raise export_at(self.folder) or Faults(jsonl.first_faults(faults))
        build = Builder(clock)
        build.corpus(corpus=0, name=self.folder.name)
        names = sorted(documents, key=lambda name: (order(documents[name].said_on, clock), name))
        for session, name in enumerate(names):
            build.session(corpus=0, session=session, said_on=documents[name].said_on, name=name)
            for turn, block in enumerate(documents[name].blocks):
                build.turn(corpus=0, session=session, turn=turn, role="user", speaker=name, text=block.text,
                           name=f"{name}@{block.place}")
        numbers = {name: session for session, name in enumerate(names)}
        for number, question in enumerate(questions):
            jsonl.add_question(build, number, question, 0, numbers, question.asked_on)
        return self.cut(build.tables()) if questions else build.tables()

    def identity(self) -> dict[str, Any]:
        """Return the checksums of all files, the options, and the versions of the libraries that read the files."""
        documents = document_files(self.folder)
        questions = self.folder / jsonl.QUESTIONS
        sums = {path.relative_to(self.folder).as_posix(): sha256(path)
                for path in [*documents, *([questions] if questions.is_file() else [])]}
        endings = {path.suffix.lower() for path in documents}
        libraries = {package: package_version(package) or "not installed"
                     for ending, package in ((".pdf", "pypdf"), (".docx", "python-docx")) if ending in endings}
        return {"benchmark": "documents", "files": sums, "libraries": libraries, **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["A document that states no date is seen by every question; a question without one sees them all.",
                *super().notes()]

    def grouping(self) -> GroupBy:
        """Take questions as independent, as is usual in retrieval."""
        return "question"

    def clock(self) -> Clock:
        """Return the clock of the documents' times, which refuses those of the other kind."""
        documents, faults = read_documents(self.folder, self.max_mb)
        clock = Clock(self.zone)
        for name, document in documents.items():
            jsonl.local(clock, document.stated, f"{name}, its date", faults)
        return clock

    def _questions(self, documents: dict[str, Document], days: dict[str, datetime | None], clock: Clock,
                   faults: list[str]) -> list[jsonl.QuestionLine]:
        path = self.folder / jsonl.QUESTIONS
        if not path.is_file():
            return []
        complete = not faults  # else a document that could not be read may be the one that a question names
        extents = {name: (days[name], len(document.blocks)) for name, document in documents.items()}
        questions = []
        for where, question in jsonl.read_questions(path, DocumentQuestion, faults):
            questions.append(question)
            asked_on = jsonl.local(clock, question.asked_on, f"{where}, field asked_on", faults)
            if complete:
                faults += jsonl.evidence_faults(question, asked_on, extents, where, "document", "blocks")
        return questions


def document_files(folder: Path) -> list[Path]:
    """List the files of a folder and its subfolders by name; hidden files and the questions are left out."""
    inner = sorted((path.relative_to(folder) for path in folder.rglob("*") if path.is_file()), key=Path.as_posix)
    return [folder / path for path in inner
            if path != Path(jsonl.QUESTIONS) and not any(part.startswith(".") for part in path.parts)]


def read_documents(folder: Path, max_mb: float) -> tuple[dict[str, Document], list[str]]:
    """Return a folder's documents by name (the path below it), and the faults of its files."""
    documents: dict[str, Document] = {}
    faults: list[str] = []
    for path in document_files(folder):
        name = path.relative_to(folder).as_posix()
        try:
            if name != replace_surrogates(name):
                raise MemlabError("its name is not UTF-8", fix="rename it")
            if not path.resolve().is_relative_to(folder.resolve()):
                raise MemlabError("it is a link to a file outside the folder", fix="put a copy in its place")
            documents[name] = load(path, max_mb)
        except MemlabError as fault:
            faults.append(f"{safe_line(name)}: {fault}")
    if not documents and not faults:
        faults.append(f"{folder}: there is no document in it; known endings: {', '.join(LOADERS)}")
    return documents, faults


def load(path: Path, max_mb: float) -> Document:
    """Read one file by the ending of its name; raise MemlabError with what is wrong and how to correct it."""
    loader = LOADERS.get(path.suffix.lower())
    if loader is None:
        raise MemlabError(f"its ending '{path.suffix}' is not known", fix=f"make it one of {', '.join(LOADERS)}, or "
                          "leave the file out")
    try:
        size = path.stat().st_size / 1e6
        raw = read_bytes(path, int(max_mb * 1e6), MemlabError(f"it has {size:,.1f} MB, the limit is {max_mb:g}",
                                                              fix="split it, or raise data.max_mb (in Python max_mb)"))
    except OSError as fault:
        raise MemlabError(f"it cannot be read ({fault.strerror or fault})", fix="check its permissions") from fault
    return parse(raw, loader)


def parse(raw: bytes, loader: Callable[[bytes], Document]) -> Document:
    """Read the bytes of a file by its loader; raise MemlabError with what is wrong and how to correct it."""
    document = loader(raw) if raw else None
    if document is None or not document.blocks:
        raise MemlabError("it is empty", fix="add text to it, or delete it")
    if max(len(block.text) for block in document.blocks) > MOST_BYTES:
        raise MemlabError(f"one text has more than {MOST_BYTES / 1e6:g} MB, the limit",
                          fix="split it by blank lines, or remove it")
    return document._replace(blocks=[block._replace(place=replace_surrogates(block.place),
                                                    text=replace_surrogates(block.text)) for block in document.blocks])
