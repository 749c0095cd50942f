"""Benchmarks: their files, checksums and readers, and the data sets of a configuration.

A benchmark is one file (``FILES``) or several (``FOLDERS``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from memlab.data.chats.refusal import instead
from memlab.pipeline.tables import SCHEMAS, Tables, frame, text_hash
from memlab.support.clock import Clock
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.paths import home

ROWS = 1 << 16
"""Rows of a table that are kept as Python objects, at some four times the memory of a frame."""

_TABLES = ("sessions", "turns", "questions", "gold", "evidence", "outdated", "ids", "fields")


class Builder:
    """Column lists to which rows are added; each distinct text is stored once.

    clock: tells the times of sessions and questions; None tells those with a UTC offset in UTC. Times with and without
    an offset are not mixed: the first of the other kind raises MemlabError.

    >>> b = Builder()
    >>> b.session(corpus=0, session=0, said_on=None, name="s1")
    >>> b.turn(corpus=0, session=0, turn=0, role="user", speaker=None, text="hello", name="s1_1")
    >>> b.tables()["turns"].height
    1
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._ids: dict[str, str] = {}
        self._columns: dict[str, dict[str, list[Any]]] = {name: {c: [] for c in SCHEMAS[name]} for name in _TABLES}
        self._frames: dict[str, list[pl.DataFrame]] = {name: [] for name in _TABLES}
        self.missing: dict[int, int] = {}
        """Question -> pieces of evidence that the file cites and the corpus does not hold."""

    def corpus(self, *, corpus: int, name: str) -> None:
        """Name a corpus (haystack or conversation)."""
        self._add("ids", kind="corpus", name=name, corpus=corpus)

    def session(self, *, corpus: int, session: int, said_on: date | datetime | None, name: str) -> None:
        """Add a session."""
        self._add("sessions", corpus=corpus, session=session,
                  said_on=self._local(said_on, "said_on of session", name or session))
        self._add("ids", kind="session", name=name, corpus=corpus, session=session)

    def fields(self, *, corpus: int, content: Mapping[str, Any], session: int | None = None, question: int | None = None
               ) -> None:
        """Add the fields of a session, or the filter of a question, unless there are none."""
        if content:
            self._add("fields", corpus=corpus, session=session, question=question,
                      content=json.dumps(content, ensure_ascii=False, sort_keys=True))

    def turn(self, *, corpus: int, session: int, turn: int, role: str, speaker: str | None, text: str,
             name: str) -> None:
        """Add a turn."""
        self._add("turns", corpus=corpus, session=session, turn=turn, role=role, speaker=speaker,
                  text_id=self._text_id(text))
        self._add("ids", kind="turn", name=name, corpus=corpus, session=session, turn=turn)

    def question(self, *, question: int, corpus: int, text: str, asked_on: date | datetime | None, name: str,
                 answer: str | None, category: str, abstain: bool, scored: bool,
                 label_error: str | None = None) -> None:
        """Add a question with its gold."""
        self._add("questions", question=question, corpus=corpus, text_id=self._text_id(text),
                  asked_on=self._local(asked_on, "asked_on of question", name))
        self._add("gold", question=question, answer=answer, category=category, abstain=abstain, scored=scored,
                  label_error=label_error)
        self._add("ids", kind="question", name=name, corpus=corpus, question=question)

    def evidence(self, *, question: int, session: int, turn: int | None) -> None:
        """Add one piece of evidence; turn is null where only the session is known."""
        self._add("evidence", question=question, session=session, turn=turn)

    def outdated(self, *, question: int, session: int, turn: int | None) -> None:
        """Mark a session or turn as saying what no longer holds for a question; it may be evidence as well."""
        self._add("outdated", question=question, session=session, turn=turn)

    def missing_evidence(self, *, question: int, number: int) -> None:
        """Count pieces of evidence that the file cites and the corpus does not hold: no metric can ask for them."""
        if number:
            self.missing[question] = self.missing.get(question, 0) + number

    def tables(self) -> Tables:
        """Return texts, sessions, turns, questions, gold, evidence and ids; outdated and fields if there are any."""
        texts = frame("texts", {"text_id": list(self._ids.values()), "text": list(self._ids)})
        made = {name: pl.concat([*self._frames[name], frame(name, columns)]) for name, columns in self._columns.items()}
        return Tables(texts=texts, **{name: rows for name, rows in made.items()
                                      if rows.height or name not in ("outdated", "fields")})

    def _local(self, value: date | datetime | None, what: str, name: str | int) -> datetime | None:
        return None if value is None else self._clock.local(value, f"{what} {name}")

    def _text_id(self, text: str) -> str:
        if text not in self._ids:
            self._ids[text] = text_hash(text)
        return self._ids[text]

    def _add(self, table: str, **row: Any) -> None:
        columns = self._columns[table]
        for column, values in columns.items():
            values.append(row.get(column))
        if len(values) == ROWS:
            self._frames[table].append(frame(table, columns))
            self._columns[table] = {column: [] for column in columns}


HUB = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main"
JUDGE = "https://raw.githubusercontent.com/xiaowu0162/LongMemEval/main/src/evaluation"
LOCOMO = "https://raw.githubusercontent.com/snap-research/locomo/main/data"
REALTALK = "https://raw.githubusercontent.com/danny911kr/REALTALK/HEAD/data"
BEAM = "https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/HEAD"
REALMEM = "https://raw.githubusercontent.com/AvatarMemory/RealMemBench/67afd0891d603adcc4458ff0449df306ef296b7a/dataset"

CHATS = ("1_Emi_Elise", "2_Kevin_Elise", "3_Kevin_Paola", "4_Emi_Paola", "5_Nicolas_Nebraas", "6_Vanessa_Nicolas",
         "7_Nebraas_Vanessa", "8_Akib_Muhhamed", "9_Fahim_Akib", "10_Fahim_Muhhamed")
"""The ten chats of REALTALK: number and speakers, as its files name them."""

BEAM_CHATS = {"100K": 20, "500K": 35, "1M": 35, "10M": 10}
"""Tokens of a chat -> number of chats, which count from 1."""

PERSONS = {
    "Adeleke_Okonjo": "9dc2a8bf2777c182108b3859be6987b4203b65bd6df5cbb6e1a02e4e9f871fdb",
    "Ethan_Hunt": "67bd20d962cd0b01c1531cc82a73a0b1a1e58ef17db6e2f743fc9b35273734ac",
    "Kenta_Tanaka": "b8fe2e606db96dbce1ffa0ab7c21b23ce83d4b5d472d80cd4bd23cd8a259d397",
    "Kim_Ji_young": "e3e286120bc5e42d3dbe513d720f969ecebf3518fbe1a4782595e927474356a9",
    "Liam_O_Connor": None, "Lin_Wanyu": None, "Oliver_Smith": None, "Pak_Budi": None, "Sarah_Miller": None,
    "Sophie_Dubois": None,
}
"""The ten people of RealMem, as its files name them -> the SHA-256 of the file, None where it is not known."""


@dataclass(frozen=True)
class OfficialFile:
    """One file of a benchmark; size (bytes) and sha256 are None where nobody has published them."""

    name: str
    file: str
    base: str
    size: int | None
    sha256: str | None
    licence: str


@dataclass(frozen=True)
class OfficialFolder:
    """A benchmark of several files.

    folder: its place below the data folder. files: for each file its paths below ``base`` and below ``folder``; the
    first that the source has is the one that is used. sha256: path -> checksum, where one is known.
    """

    name: str
    folder: str
    base: str
    files: tuple[tuple[str, ...], ...]
    licence: str
    sha256: Mapping[str, str] = field(default_factory=dict)

    def file(self, path: str) -> OfficialFile:
        """Return one of its files."""
        return OfficialFile(self.name, path, self.base, None, self.sha256.get(path), self.licence)

    def missing(self, data: Path) -> int:
        """Return the number of files that are not below the data folder."""
        return sum(not any((data / self.folder / path).exists() for path in paths) for paths in self.files)


FILES = {
    f.name: f
    for f in (
        OfficialFile("locomo", "locomo10.json", LOCOMO, 2_805_274,
                     "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4", "CC BY-NC 4.0"),
        OfficialFile("longmemeval_oracle", "longmemeval_oracle.json", HUB, 15_388_478,
                     "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c", "MIT"),
        OfficialFile("longmemeval_s", "longmemeval_s_cleaned.json", HUB, 277_383_467,
                     "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442", "MIT"),
        OfficialFile("longmemeval_judge", "evaluate_qa.py", JUDGE, 7_436,
                     "ecce9c4c79dc89d99534ac17b383a5cbb5b9f0c69ee98adaf0684742e3d95251", "MIT"),
        OfficialFile("longmemeval_m", "longmemeval_m_cleaned.json", HUB, None, None, "MIT"),
    )
}


def _beam(size: str, chats: int) -> OfficialFolder:
    places = [f"chats/{size}/{number}" for number in range(1, chats + 1)]
    files = [((f"{place}/chat_trunecated.json", f"{place}/chat.json"),  # spelt so
              (f"{place}/probing_questions/probing_questions.json",)) for place in places]
    return OfficialFolder(f"beam_{size.lower()}", "beam", BEAM, tuple(chain(*files)), "licence: see its data card")


LISTED = {
    "fairytaleqa": "https://raw.githubusercontent.com/uci-soe/FairytaleQAData/a24ddc17364666b7c13a425b9970c87368b03417/"
                   "data-by-train-split",
    "friendsqa": "https://raw.githubusercontent.com/emorynlp/FriendsQA/9ce6c98a6acf13c87d96b6811e4409b5de43bdfe/dat",
    "memora": "https://raw.githubusercontent.com/geniesinc/Memora/a6493188efc836d6511ed5e4163fe3ba87da30ff/data/weekly",
    "memorycode": "https://raw.githubusercontent.com/for-ai/MemoryCode/25ae8aba2af041c28c8ce8ee585dae18268846e7/dataset",
}
"""Benchmark -> address of the files that NAME.sha256 lists; no others are fetched.

Of Memora those are five of the ten people, of MemoryCode dialogues 1 to 180, of FriendsQA all but the training file;
the stories of FairytaleQA's folder ``all`` are those of the three others. All but Memora are read by experiments.
"""


def checksums(name: str) -> dict[str, str]:
    """Return file -> SHA-256 of a benchmark of ``LISTED``, from a list as ``sha256sum`` writes it."""
    text = Path(__file__).with_name(f"{name}.sha256").read_text(encoding="utf-8")
    return {file: digest for digest, file in (line.split("  ", 1) for line in text.splitlines())}


FOLDERS = {
    f.name: f
    for f in (
        OfficialFolder("realtalk", "realtalk", REALTALK, tuple((f"Chat_{chat}.json",) for chat in CHATS),
                       "no licence stated: for local use"),
        *(_beam(size, chats) for size, chats in BEAM_CHATS.items()),
        OfficialFolder("realmem", "realmem", REALMEM, tuple((f"{name}_dialogues_256k.json",) for name in PERSONS),
                       "Apache-2.0", {f"{name}_dialogues_256k.json": sha for name, sha in PERSONS.items() if sha}),
        *(OfficialFolder(name, name, base, tuple((file,) for file in checksums(name)), "Apache-2.0", checksums(name))
          for name, base in LISTED.items()),
    )
}


def official(name: str) -> OfficialFile | OfficialFolder:
    """Return the file or files of a benchmark; raise MemlabError with the nearest name for an unknown one."""
    known: dict[str, OfficialFile | OfficialFolder] = {**FILES, **FOLDERS}
    if name not in known:
        raise MemlabError(f"there is no benchmark file '{name}'", fix=did_you_mean(name, known))
    return known[name]


def data_folder() -> Path:
    """Return the folder of benchmark files: ``$MEMLAB_HOME/data``; MEMLAB_HOME defaults to ``~/.cache/memlab``."""
    return home() / "data"


def find(name: str, path: Path | None, setting: str = "data.path") -> Path:
    """Return the file to read: ``path``, else the official file in the data folder (.gz or .xz too).

    Raises MemlabError with the way to get the file if there is none; ``setting`` names the setting of ``path``.
    """
    entry = FILES[name]
    home = data_folder() / entry.file
    if path is None:
        candidates = [home.with_name(home.name + suffix) for suffix in ("", ".gz", ".xz")]
        path = next((p for p in candidates if p.exists()), home)
    if path.is_file():
        return path
    problem = "a folder, expected a file" if path.is_dir() else "no such file"
    fix = (f"run `memlab data fetch {name}`, or put {entry.file} from {entry.base} at {home}, or point {setting} at "
           "your copy")
    raise instead(path, MemlabError(problem, where=str(path), fix=fix))
