"""A peer on a data set: its memories, what it ranked, and at what cost.

There is a memory for each day of questions: no session of a later day is added. A result is kept by all that decides
it: adapter, installed versions, data, encoder, chat model and k.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from memlab.evaluate.export import escape, question_names, unit_names
from memlab.evaluate.peers.environment import Environment, folder_size
from memlab.evaluate.peers.folder import Peer
from memlab.evaluate.peers.mapping import TurnMap
from memlab.evaluate.peers.models import PeerModels
from memlab.evaluate.peers.process import PeerFailure, PeerProcess, isolation
from memlab.pipeline.stage import spec_digest
from memlab.pipeline.tables import SESSION, Tables, as_of, with_text
from memlab.pipeline.transcript import render_turns
from memlab.stages.rank.units import turn_units
from memlab.support.files import make_folder
from memlab.support.foreign import read_json
from memlab.support.paths import home

FORMAT = 1
"""Part of the digest of every result: a change of what peers are given, or of how they are read, makes new ones."""


@dataclass(frozen=True)
class PeerMemory:
    """What one memory holds and is asked.

    sessions: the turns of each, by their days; a turn has id, text ("Name: text"), role, speaker, session and time.
    documents: the benchmark's names of all these turns. questions: (topic, text, day).
    """

    sessions: list[list[dict[str, Any]]]
    documents: list[str]
    questions: list[tuple[str, str, str | None]]


@dataclass
class PeerResult:
    """What a peer ranked (topic -> documents, best first) and what it cost, in seconds of the processor and bytes.

    empty and short count lists of results, returned all results, and unmapped those that mean no turn.
    """

    environment: int
    isolated: bool
    ranked: dict[str, list[str]] = field(default_factory=dict)
    adding: float = 0.0
    asking: float = 0.0
    bytes: int = 0
    empty: int = 0
    short: int = 0
    returned: int = 0
    unmapped: int = 0
    warnings: list[str] = field(default_factory=list)

    def notes(self, name: str, version: str) -> list[str]:
        """Return what stands beside the peer's row, in sentences."""
        asked = len(self.ranked)
        counts = ((self.empty, asked, "questions got an empty list"), (self.short, asked, "questions got a short list"),
                  (self.unmapped, self.returned, "results are no turn of the history"))
        return [f"{name} ({version}): {self.adding:,.1f} s of the processor for adding, "
                f"{1000 * self.asking / max(asked, 1):,.1f} ms a question, {self.bytes / 1e6:,.1f} MB on disk, "
                f"{self.environment / 1e6:,.0f} MB of packages.",
                *(f"{name}: {number:,} of {of:,} {what}." for number, of, what in counts if number),
                *(f"{name} warned: {warning}." for warning in self.warnings),
                *([] if self.isolated else [f"{name} ran where a process's network cannot be taken away."])]


def memories(tables: Tables) -> Iterator[PeerMemory]:
    """Yield a memory for each corpus and set of sessions that its questions may see."""
    units = turn_units(tables["turns"])
    names = units.select("unit", *SESSION, pl.col("turns").list.first().alias("turn")).join(
        unit_names(units, tables["ids"]), on="unit")
    turns = render_turns(tables["turns"], tables["texts"]).join(tables["sessions"], on=SESSION).join(
        names, on=[*SESSION, "turn"]).sort("corpus", "said_on", "session", "turn", maintain_order=True)
    questions = with_text(tables["questions"], tables["texts"]).join(question_names(tables), on="question")
    for (corpus,), asked in questions.group_by("corpus", maintain_order=True):
        whole = turns.filter(pl.col("corpus") == corpus)
        by_sessions: dict[tuple[int, ...], list[tuple[str, str, str | None]]] = {}
        for topic, text, day in asked.select("topic", "text", "asked_on").iter_rows():
            seen = whole.filter(as_of(asked=pl.lit(day, pl.Datetime("us"))))["session"].unique(maintain_order=True)
            by_sessions.setdefault(tuple(seen), []).append((topic, text, day.isoformat() if day else None))
        for sessions, of_day in by_sessions.items():
            rows = whole.filter(pl.col("session").is_in(sessions)).with_row_index("at")
            yield PeerMemory([[_turn(row) for row in part.iter_rows(named=True)]
                              for part in rows.partition_by("session", maintain_order=True)],
                             rows["document"].to_list(), of_day)


def _turn(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"turn-{row['at']}", "text": row["search_text"], "role": row["role"], "speaker": row["speaker"],
            "session": f"session-{row['session']}", "time": row["said_on"] and row["said_on"].isoformat()}


def result_file(peer: Peer, environment: Environment, described: dict[str, Any]) -> Path:
    """Return the file of a result; ``described`` is what decides it beside the peer and its versions."""
    versions = environment.record.get("versions")
    digest = spec_digest({"format": FORMAT, "adapter": peer.digest, "versions": versions, **described})
    return home() / "peers" / "results" / f"{peer.name}-{digest[:16]}.json"


def kept_result(file: Path) -> PeerResult | None:
    """Return a result that was kept; None if there is none."""
    try:
        return PeerResult(**read_json(file))
    except (OSError, ValueError, TypeError):
        return None


def run_peer(peer: Peer, environment: Environment, asked: Sequence[PeerMemory], models: PeerModels, *, k: int,
             limit: float, by_text: bool = False, chat: bool = False) -> PeerResult:
    """Run a peer on all memories; raise PeerFailure if it dies, hangs or raises in one of them.

    ``by_text`` takes the ids away: the texts of what is returned are mapped to turns. ``chat`` tells the peer, by the
    variable MEMLAB_CHAT, that there is a chat model.
    """
    place = Path(tempfile.mkdtemp(prefix="memlab-peer-"))  # short: the path of a socket has a hundred characters
    place.chmod(0o755)  # a database that refuses root runs as another user
    variables = {**peer.declared["VARIABLES"], **({"MEMLAB_CHAT": "1"} if chat else {})}
    result = PeerResult(environment.size, bool(isolation()))
    command = environment.python, str(peer.folder / "adapter.py"), str(place / "models")
    try:
        with models.served(place / "models"):
            process = PeerProcess(command, variables, place, limit)
            try:
                process.ask("load")
                for number, memory in enumerate(asked):
                    make_folder(place / f"memory-{number}")
                    _run_memory(process, place / f"memory-{number}", memory, result, k, by_text)
                result.warnings = process.warnings()
            finally:
                process.end()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return result


def _run_memory(process: PeerProcess, folder: Path, memory: PeerMemory, result: PeerResult, k: int, by_text: bool
                ) -> None:
    start = process.processor_seconds()
    process.ask("open", folder=str(folder))
    for session in memory.sessions:
        process.ask("add", turns=session)
    process.ask("ready")
    ready = process.processor_seconds()
    found = process.ask("search", questions=[[text, day] for _, text, day in memory.questions], k=k)
    result.adding += ready - start
    result.asking += process.processor_seconds() - ready
    process.ask("close")
    result.bytes += folder_size(folder)
    shutil.rmtree(folder, ignore_errors=True)
    turns = {turn["id"]: turn["text"] for session in memory.sessions for turn in session}
    index = TurnMap(turns)
    for (topic, *_), returned in zip(memory.questions, found):
        if not all(isinstance(item, str) for item in returned):
            raise PeerFailure(f"search returned {json.dumps(returned)[:80]}, where ids or texts are expected")
        places, unmapped = index.places([turns.get(item, item) for item in returned] if by_text else returned)
        result.ranked[topic] = [memory.documents[at] for at in places[:k]]
        result.returned += len(returned)
        result.unmapped += unmapped
        result.empty += not returned
        result.short += 0 < len(returned) < min(k, len(turns))


def run_lines(name: str, ranked: dict[str, list[str]]) -> str:
    """Return a TREC run, as ``memlab score`` reads it."""
    return "".join(f"{topic} Q0 {document} {rank} {1 / rank} {escape(name)}\n" for topic, documents in ranked.items()
                   for rank, document in enumerate(documents, 1))
