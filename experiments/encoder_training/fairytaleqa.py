"""FairytaleQA: 278 children's stories, with questions by teachers and the sections that hold their answers.

Xu et al., "Fantastic Questions and Where to Find Them: FairytaleQA" (ACL 2022), github.com/uci-soe/FairytaleQAData,
Apache-2.0. Reads the folder of its files (``questions`` and ``section-stories`` with CSV files). It serves training:
a story is no conversation, but its questions ask what someone did, and when, and why.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from memlab.data import readers
from memlab.data.benchmarks import Builder, data_folder
from memlab.data.chats.refusal import instead
from memlab.data.subset import Subset, known_types
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError
from memlab.support.foreign import whole_number

CATEGORIES = ("action", "causal relationship", "character", "feeling", "outcome resolution", "prediction", "setting")
"""What a question asks for, by the files' own names."""

PASSAGE_WORDS = 40
"""A passage has at most this number of words, unless it is one sentence."""

MIN_SHARE = 0.5
"""A passage is evidence if it holds at least this share of the answer's words."""

COMMON = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "because", "but", "by", "did", "do", "does", "for", "from", "had", "has",
    "have", "he", "her", "him", "his", "how", "i", "in", "is", "it", "its", "of", "on", "or", "she", "so", "that",
    "the", "their", "them", "they", "this", "to", "was", "were", "what", "when", "where", "which", "who", "whom", "why",
    "will", "with", "would", "you"))
"""Words that carry no meaning here."""

_WORD = re.compile(r"[a-z0-9]+")
_SENTENCE_END = re.compile(r"""(?<=[.!?]) |(?<=[.!?]["'”’]) """)  # a space after the mark, or after its closing quote

Sections = dict[int, tuple[int, list[set[str]]]]
"""The number of a section -> its session, and the words of each of its passages."""


@stage
class FairytaleQA(Subset):
    """A story is a corpus, its sections are the sessions, passages of some sentences are the turns."""

    benchmark: ClassVar = "fairytaleqa"

    path: LocalPath | None = None  # folder with questions and section-stories; null = $MEMLAB_HOME/data/fairytaleqa

    def __post_init__(self) -> None:
        self._files()
        known_types(self.types, CATEGORIES)

    def load(self) -> Tables:
        """Read the files; raise MemlabError naming file and line where one is not as expected."""
        build, question = Builder(), 0
        for corpus, (title, story, questions) in enumerate(self._files()):
            build.corpus(corpus=corpus, name=title)
            sections = _sections(build, corpus, title, story)
            for row, where in _rows(questions, ("question_id", "cor_section", "attribute1", "question", "answer1")):
                _question(build, question, corpus, title, row, sections, where)
                question += 1
        return self.cut(build.tables(), build.missing)

    def identity(self) -> dict[str, Any]:
        """Return the checksums of the files and the options."""
        return {"benchmark": "fairytaleqa",
                "files": {path.name: readers.sha256(path) for _, *pair in self._files() for path in pair},
                **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["FairytaleQA gives no dates, so the as-of filter hides nothing. It names the sections that answer a "
                "question. Its evidence here is the passage in them with most words of the answer, if it holds "
                f"{MIN_SHARE:.0%} of them; other questions have none.", *super().notes()]

    def _files(self) -> list[tuple[str, Path, Path]]:
        """Return (title, story, questions) in the order of titles; of copies in several folders the last is read."""
        place = self.path or data_folder() / "fairytaleqa"
        stories, asked = (
            {path.name.removesuffix(end): path for path in sorted((place / folder).rglob(f"*{end}"))}
            for folder, end in (("section-stories", "-story.csv"), ("questions", "-questions.csv")))
        fix = ("run `memlab data fetch fairytaleqa`, or point data.path at the repository's "
               "folder data-by-train-split")
        if not asked:
            raise instead(self.path, MemlabError("no questions/*/*-questions.csv is there", where=str(place), fix=fix))
        if alone := sorted(asked.keys() - stories.keys()):
            raise MemlabError(f"no section-stories/*/{alone[0]}-story.csv is there", where=str(place), fix=fix)
        return [(title, stories[title], asked[title]) for title in sorted(asked)]


def words(text: str) -> set[str]:
    """Return the words of a text that carry meaning, in lower case.

    >>> sorted(words("What did the old lady's coachman do?"))
    ['coachman', 'lady', 'old', 's']
    """
    return set(_WORD.findall(text.lower())) - COMMON


def passages_of(text: str) -> list[str]:
    """Return a section's passages: whole sentences, some 40 words in all; lines end anywhere in these files.

    >>> passages_of("One is one.\\nTwo is\\ntwo.")
    ['One is one. Two is two.']
    """
    passages: list[list[str]] = []
    length = 0
    for sentence in filter(None, _SENTENCE_END.split(" ".join(text.split()))):
        count = len(sentence.split())
        if not passages or length + count > PASSAGE_WORDS:
            passages.append([])
            length = 0
        passages[-1].append(sentence)
        length += count
    return [" ".join(sentences) for sentences in passages]


def evidence_of(question: str, answer: str, passages: dict[int, list[set[str]]]) -> tuple[int, int] | None:
    """Return (session, turn) of the passage with most of the answer's words, then of the question's; None without one.

    ``passages`` holds the words of each passage by session; of equal ones the first counts.
    """
    said, asked = words(answer), words(question)
    scored = [(len(said & held) / len(said), len(asked & held), -session, -turn)
              for session, rows in passages.items() for turn, held in enumerate(rows) if said]
    best = max(scored, default=None)
    return None if best is None or best[0] < MIN_SHARE else (-best[2], -best[3])


def _sections(build: Builder, corpus: int, title: str, story: Path) -> Sections:
    """Add the sections of a story; of two with one number (a single story has them) questions mean the later."""
    sections: Sections = {}
    for session, (row, where) in enumerate(_rows(story, ("section", "text"))):
        build.session(corpus=corpus, session=session, said_on=None, name=f"{title}:{session}")
        texts = passages_of(row["text"])
        for turn, text in enumerate(texts):
            build.turn(corpus=corpus, session=session, turn=turn, role="user", speaker=None, text=text,
                       name=f"{title}:{session}:{turn}")
        sections[_number(row["section"], f"{where}, column section")] = session, [words(text) for text in texts]
    if not any(passages for _, passages in sections.values()):
        raise MemlabError("the story has no text", where=str(story), fix="fetch or copy the file again")
    return sections


def _question(build: Builder, question: int, corpus: int, title: str, row: dict[str, str], sections: Sections,
              where: str) -> None:
    """Add a question with its evidence, the best passage of the sections that it cites."""
    category, answer = row["attribute1"].strip().lower(), row["answer1"].strip()
    if category not in CATEGORIES:
        raise MemlabError(f"expected one of {', '.join(CATEGORIES)}, got {category[:80]!r}",
                          where=f"{where}, column attribute1")
    cited = {_number(part, f"{where}, column cor_section") for part in row["cor_section"].split(",")}
    evidence = evidence_of(row["question"], answer, dict(sections[n] for n in cited & sections.keys()))
    build.question(question=question, corpus=corpus, text=row["question"].strip(), asked_on=None,
                   name=f"{title}:{row['question_id']}", category=category, abstain=False,
                   scored=evidence is not None, answer=answer or None)
    build.missing_evidence(question=question, number=len(cited - sections.keys()))
    if evidence is not None:
        build.evidence(question=question, session=evidence[0], turn=evidence[1])


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[dict[str, str], str]]:
    """Yield each row of a CSV file and the line where it ends; blank lines are passed over."""
    with readers.open_text(path, newline="") as stream:
        rows = csv.reader(stream, strict=True)
        heading = next(rows, [])
        if lacking := [column for column in columns if column not in heading]:
            raise MemlabError(f"no column {' or '.join(lacking)}", where=str(path), fix="give the official file")
        for cells in filter(None, rows):
            where = f"{path}, line {rows.line_num}"
            if len(cells) != len(heading):
                raise MemlabError(f"expected {len(heading)} cells, got {len(cells)}", where=where)
            yield dict(zip(heading, cells)), where


def _number(text: str, where: str) -> int:
    """Return the number of a section."""
    number = whole_number(text.strip())
    if number is None:
        raise MemlabError(f"expected a whole number, got {text[:80]!r}", where=where)
    return number
