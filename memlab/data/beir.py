"""Local folders in BEIR's format: corpus.jsonl, queries.jsonl, qrels/<part>.tsv.

Thakur et al., "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models" (NeurIPS
2021), github.com/beir-cellar/beir. A document is a session of one turn; all documents are one corpus.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memlab.data import readers
from memlab.data.benchmarks import Builder
from memlab.data.chats.refusal import instead
from memlab.data.dataset import GroupBy
from memlab.data.subset import Subset
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Notes, Tables
from memlab.support.errors import MemlabError
from memlab.support.foreign import load_json
from memlab.support.text.display import replace_surrogates


@stage
class Beir(Subset):
    """Queries with a judgement in ``qrels`` are the questions; a document judged above 0 is evidence."""

    path: LocalPath | None = None  # the folder; needed
    qrels: str = "test"  # the part whose judgements are used: qrels/test.tsv

    def __post_init__(self) -> None:
        for file in self._files():
            if not file.is_file():
                fix = f"give a folder with corpus.jsonl, queries.jsonl and qrels/{self.qrels}.tsv"
                raise instead(self.path, MemlabError(f"{file} is not there", where="data.path", fix=fix))

    @property
    def name(self) -> str:
        """The folder's name, after ``beir-``."""
        return self.sized_name(f"beir-{self._files()[0].parent.name}")

    def load(self) -> Tables:
        """Read the folder; raise MemlabError naming file, line and field where it is not as expected."""
        corpus, queries, qrels = self._files()
        build = Builder()
        build.corpus(corpus=0, name=corpus.parent.name)
        documents: dict[str, int] = {}
        for where, line in _lines(corpus):
            name = _text(line, "_id", where)
            if name in documents:
                raise MemlabError(f"document '{name}' was there before", where=where, fix="give every document one _id")
            title = _text(line, "title", where) if line.get("title") else ""
            build.session(corpus=0, session=len(documents), said_on=None, name=name)
            build.turn(corpus=0, session=len(documents), turn=0, role="user", speaker=None, name=name,
                       text=f"{title} {_text(line, 'text', where)}".strip())  # as BEIR joins them
            documents[name] = len(documents)
        judged, unjudged, number = _judgements(qrels), 0, -1
        for number, (where, line) in enumerate(_lines(queries)):
            name = _text(line, "_id", where)
            if name not in judged:
                unjudged += 1
                continue
            relevant = judged.pop(name)
            evidence = sorted(documents[d] for d in relevant if d in documents)
            build.missing_evidence(question=number, number=len(relevant) - len(evidence))
            build.question(question=number, corpus=0, text=_text(line, "text", where), asked_on=None,
                           name=name, answer=None, category="all", abstain=False, scored=bool(evidence))
            for session in evidence:
                build.evidence(question=number, session=session, turn=0)
        notes, tables = Notes(), self.cut(build.tables(), build.missing)
        notes.include(tables)
        notes.add(unjudged, number + 1, "queries have no judgement and are left out")
        notes.add(len(judged), number + 1, "queries are judged and have no text, so they are left out")
        return tables.updated({"notes": notes.table()})

    def identity(self) -> dict[str, Any]:
        """Return the checksums of the three files, and the options."""
        names = ("corpus", "queries", "qrels")
        sums = {name: readers.sha256(file) for name, file in zip(names, self._files())}
        return {"benchmark": "beir", **sums, **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["Documents have no dates, so the as-of filter hides nothing; graded judgements count as relevant "
                "(above 0) or not.", *super().notes()]

    def grouping(self) -> GroupBy:
        """Take queries as independent, as is usual in retrieval."""
        return "question"

    def _files(self) -> tuple[Path, Path, Path]:
        folder = self.path or Path()
        return folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / f"{self.qrels}.tsv"


def _text(line: dict[str, Any], key: str, where: str) -> str:
    """Return a text that a line must have, without half surrogates, which no table holds."""
    return replace_surrogates(readers.need(line, key, str, where))


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, object) for each line."""
    with readers.open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                where = f"{path}, line {number}"
                try:
                    yield where, load_json(line)
                except ValueError as fault:
                    raise MemlabError(f"this is not JSON ({str(fault)[:80]})", where=where) from fault


def _judgements(path: Path) -> dict[str, set[str]]:
    """Read query -> relevant documents from lines ``query-id<TAB>corpus-id<TAB>score``; a heading may be missing."""
    judged: dict[str, set[str]] = {}
    for number, row in _rows(path):
        try:
            query, document, score = row
            relevant = int(score) > 0
        except ValueError:
            raise MemlabError("expected query-id, corpus-id and a whole number, separated by tabs, got "
                              f"{str(row):.80}", where=f"{path}, line {number}") from None
        judged.setdefault(query, set()).update([document] if relevant else [])
    return judged


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, columns) of a table separated by tabs, without the heading, which has no number in its score."""
    with readers.open_text(path, newline="") as stream:
        for number, row in enumerate(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
            if row and (number > 1 or row[-1].strip().lstrip("-").isdecimal()):
                yield number, row
