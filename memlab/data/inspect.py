"""Inspection of a benchmark file (which one it is, its counts, oddities and faults), and display of one question."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import polars as pl

from memlab.data import benchmarks, jsonl, readers
from memlab.data.beam import SIZES, Beam
from memlab.data.chats.refusal import export_at
from memlab.data.custom import Custom
from memlab.data.dataset import Dataset
from memlab.data.documents.dataset import Documents
from memlab.data.locomo import LoCoMo
from memlab.data.longmemeval import LongMemEval
from memlab.data.memora import Memora
from memlab.data.realmem import RealMem
from memlab.data.realtalk import RealTalk
from memlab.pipeline.tables import SESSION, Tables, with_text
from memlab.support.errors import Faults, MemlabError
from memlab.support.foreign import whole_number
from memlab.support.paths import nearest
from memlab.support.text.display import plural, safe_line

IMPORT = "memlab import"


@dataclass(frozen=True)
class Finding:
    """Counts and oddities of a file in words; problems stop the file from being read."""

    benchmark: str
    facts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def inspect(path: Path, timezone: str = "UTC") -> Finding:
    """Inspect a benchmark file, or a folder or .jsonl file of the user's own, whose days are those of ``timezone``."""
    if not path.exists():
        near = nearest(path)
        raise MemlabError("no such file or folder", where=str(path), fix=f"did you mean {near}?" if near else "")
    if not (path.is_file() or path.is_dir()):
        raise MemlabError("it is no plain file and no folder", where=str(path))
    try:
        if data := _of_several_files(path):
            return Finding(data.name, _facts(data.load()))
    except MemlabError as fault:
        return Finding("unreadable", problems=[str(fault)])
    documents = path.is_dir() and not (path / jsonl.SESSIONS).exists()
    own = path.name in (jsonl.SESSIONS, jsonl.QUESTIONS) or path.is_dir() and not documents
    if (documents or path.suffix in (".jsonl", ".txt", ".zip")) and not own and (export := _chat_export(path)):
        return export
    if path.suffix == ".jsonl" and not own and not (path.parent / jsonl.SESSIONS).exists():
        return Finding("unknown", problems=[
            f"{path}: neither {jsonl.SESSIONS} nor {jsonl.QUESTIONS}, and no chat export that `{IMPORT}` knows"])
    own = own or path.suffix == ".jsonl"
    try:
        if own or documents:
            folder = path if path.is_dir() else path.parent
            mine = Custom(path=folder, timezone=timezone) if own else Documents(path=folder, timezone=timezone)
            return Finding(mine.name, _facts(mine.load()))
        kind = readers.detect(next(readers.records(path)))
        if kind is None:
            return _chat_export(path) or Finding("unknown", problems=[
                f"{path}, record 0: neither LoCoMo nor LongMemEval, and no chat export that `{IMPORT}` knows"])
        data = LoCoMo(path=path) if kind == "LoCoMo" else LongMemEval(variant=_variant(path), path=path)
        return Finding(data.name, [*_checksum(path), *_facts(data.load())])
    except MemlabError as fault:
        problems = fault.faults if isinstance(fault, Faults) else [str(fault)]
        return (None if documents or own else _chat_export(path)) or Finding(
            "documents" if documents else "custom" if own else "unreadable", problems=problems)


def _chat_export(path: Path) -> Finding | None:
    """Refuse a chat export, which would be read as plain text, and name the importer; None if it is none."""
    export = export_at(path)
    return Finding("chat export", problems=[f"{export.what}; {export.fix}"]) if export else None


def _of_several_files(path: Path) -> Dataset | None:
    """Return the benchmark of several files that a path belongs to, recognised by the names of its files or folders."""
    for known in (RealTalk, RealMem, Memora):
        if path.match(f"{known.pattern}*") or next(path.glob(f"{known.pattern}*"), None):
            return known(path=path)
    for size in SIZES:
        places = (path / "chats" / size, path / size, *([path] if path.name == size else []))
        if any(next(place.glob("*/chat*.json"), None) for place in places):
            return Beam(size=size, path=path)
    return None


def _variant(path: Path) -> Literal["oracle", "s", "m"]:
    """Distinguish the three LongMemEval files by their first record: no fillers, or tens or hundreds of sessions."""
    first = next(readers.records(path))
    where = f"{path}, record 0"
    haystack = readers.texts(first, "haystack_session_ids", where)
    if set(haystack) <= set(readers.texts(first, "answer_session_ids", where)):
        return "oracle"
    return "m" if len(haystack) > 200 else "s"


def _checksum(path: Path) -> list[str]:
    digest = readers.sha256(path)
    name = next((f.file for f in benchmarks.FILES.values() if f.sha256 == digest), None)
    return [f"SHA-256 {digest}" + (f" (the official {name})" if name else " (not a file with a known checksum)")]


def _facts(tables: Tables) -> list[str]:
    gold, turns, ids, evidence = tables["gold"], tables["turns"], tables["ids"], tables["evidence"]
    kinds = gold.group_by("category").len().sort("category")
    said = with_text(turns, tables["texts"])["text"]
    facts = [
        f"{plural(tables['questions'].height, 'question')} over "
        f"{plural(tables['sessions']['corpus'].n_unique(), 'corpus', 'corpora')}, "
        f"{plural(tables['sessions'].height, 'session')}, "
        f"{plural(turns.height, 'turn')} ({said.n_unique():,} distinct), "
        f"{plural(int(said.str.len_chars().sum()), 'character')}",
    ]
    facts += [
        "types: " + ", ".join(f"{kind} {count}" for kind, count in kinds.iter_rows()),
        f"evidence: {plural(evidence['turn'].drop_nulls().len(), 'turn')}, and of "
        f"{plural(evidence['turn'].null_count(), 'session')} alone; questions to decline: {gold['abstain'].sum()}",
    ] if kinds.height else ["no questions: memlab ask searches the sessions; a run needs questions.jsonl"]
    if span := tables["sessions"]["said_on"].drop_nulls().sort().to_list():
        facts.append(f"dates from {span[0]:%Y-%m-%d} to {span[-1]:%Y-%m-%d}")
    unscored = ids.join(gold.filter(~pl.col("scored")), on="question")["name"].to_list()
    if unscored:
        listed = ", ".join(unscored[:5]) + (", ..." if len(unscored) > 5 else "")
        facts.append(f"questions not scored in retrieval (to decline, or without evidence that can be found): "
                     f"{len(unscored)} ({listed})")
    blank = tables["texts"].filter(pl.col("text").str.strip_chars() == "")["text_id"]
    session_ids = ids.filter(pl.col("kind") == "session").group_by("corpus", "name").len()
    last_asked = tables["questions"].group_by("corpus").agg(pl.col("asked_on").max())
    dates = tables["sessions"].join(last_asked, on="corpus")
    oddities = {
        "blank turns": turns.filter(pl.col("text_id").is_in(blank.implode())).height,
        "sessions without a turn": tables["sessions"].join(turns, on=SESSION, how="anti").height,
        "sessions whose id occurs twice in their haystack": session_ids.filter(pl.col("len") > 1).height,
        "sessions stamped later than their question": dates.filter(pl.col("said_on") > pl.col("asked_on")).height,
    }
    return facts + [f"{what}: {count:,}" for what, count in oddities.items() if count]


WIDTH = 600
"""Characters of a turn that are shown; the longest official turn has 76,560."""


def show(tables: Tables, id_or_number: str) -> str:
    """Describe the question with a benchmark id, else with a number; raise MemlabError if there is none."""
    question, name = _find(tables, id_or_number)
    row = with_text(tables["questions"].filter(pl.col("question") == question), tables["texts"]).row(0, named=True)
    gold = tables["gold"].filter(pl.col("question") == question).row(0, named=True)
    answer = "(decline)" if gold["answer"] is None else gold["answer"]
    lines = [
        f"question {question} ({safe_line(name)}) of corpus {row['corpus']}, asked on {row['asked_on']}",
        f"  {safe_line(row['text'], WIDTH)}",
        f"answer: {safe_line(answer, WIDTH)}",
        f"type: {safe_line(gold['category'])}" + (", to be declined" if gold["abstain"] else "")
        + ("" if gold["scored"] else ", not scored in retrieval"),
    ]
    if gold["label_error"] is not None:
        lines.append(f"label error: {safe_line(gold['label_error'])}")
    return "\n".join([*lines, *_evidence(tables, question, row["corpus"])])


def _find(tables: Tables, id_or_number: str) -> tuple[int, str]:
    questions = tables["ids"].filter(pl.col("kind") == "question")
    # a benchmark's id first: some consist of digits only
    rows = questions.filter(pl.col("name") == id_or_number)
    if rows.is_empty() and (number := whole_number(id_or_number)) is not None:
        rows = questions.filter(pl.col("question") == number)
    if rows.is_empty():
        names = questions["name"].to_list()
        close = ", ".join(f"'{name}'" for name in get_close_matches(id_or_number, names))
        hint = f"did you mean {close}" if close else f"ids look like '{names[0]}'"
        raise MemlabError(f"there is no question '{id_or_number}'", fix=f"{hint}, or give a number")
    return rows["question"][0], rows["name"][0]


def _evidence(tables: Tables, question: int, corpus: int) -> list[str]:
    in_corpus = pl.col("corpus") == corpus
    turns = with_text(tables["turns"].filter(in_corpus), tables["texts"]).drop("corpus")
    rows = (
        tables["evidence"].filter(pl.col("question") == question)
        .join(tables["sessions"].filter(in_corpus), on="session")
        .join(turns, on=["session", "turn"], how="left")
        .sort("session", "turn", nulls_last=True)
    )
    sessions = tables["ids"].filter(in_corpus & (pl.col("kind") == "session"))
    names = dict(sessions.select("session", "name").iter_rows())
    lines = ["evidence:" if rows.height else "evidence: none that can be found"]
    for row in rows.iter_rows(named=True):
        place = f"  session {row['session']} ({safe_line(names[row['session']])}) of {row['said_on']}"
        if row["turn"] is None:
            lines.append(f"{place}: the session as a whole")
        else:
            lines.append(f"{place}, turn {row['turn']}, {safe_line(row['speaker'] or row['role'])}: "
                         f"{safe_line(row['text'], WIDTH)}")
    return lines
