"""A peer on a data set: its memories, the turns that it means by what it returns, and what that costs.

There is a memory for each day of questions: no session of a later day is added. A result is kept by all that decides
it: adapter, installed versions, data, encoder, chat model and k.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl

from memlab.evaluate.export import question_names, unit_names
from memlab.evaluate.peers.models import PeerModels
from memlab.evaluate.peers.peer import Peer, folder_size
from memlab.evaluate.peers.process import PeerFailure, PeerProcess, isolation
from memlab.pipeline.stage import spec_digest
from memlab.pipeline.tables import SESSION, Tables, as_of, with_text
from memlab.pipeline.transcript import render_turns
from memlab.stages.rank.units import turn_units
from memlab.support.files import write_json
from memlab.support.paths import home

FORMAT = 2
"""Part of the digest of every result: a change of what peers are given, or of how they are read, makes new ones."""

SHORTEST = 12
"""Characters from which a text that is returned may be a part of a turn: a shorter one is in too many."""


class PeerMemory(NamedTuple):
    """What one memory holds and is asked.

    sessions: the turns of each, by their days; a turn has id, text ("Name: text"), role, speaker, session and time.
    documents: the benchmark's names of all these turns. questions: (topic, text, day).
    """

    sessions: list[list[dict[str, Any]]]
    documents: list[str]
    questions: list[tuple[Any, ...]]


class PeerResult(NamedTuple):
    """What a peer ranked (topic -> documents, best first), and what it cost.

    figures: seconds of the processor for ``adding`` and ``asking``; bytes on ``disk`` and of ``packages``; how many
    lists were ``empty`` or ``short``, and of the results ``returned`` how many are ``unmapped``, no turn.
    """

    isolated: bool
    ranked: dict[str, list[str]]
    figures: dict[str, float]
    warnings: list[str]

    def notes(self, name: str, version: str) -> list[str]:
        """Return what stands beside the peer's row, in sentences."""
        cost, asked, network = self.figures, max(len(self.ranked), 1), "no" if self.isolated else "with a"
        return [f"{name} ({version}, {network} network): {cost['adding']:,.1f} s of the "
                f"processor for adding, {1000 * cost['asking'] / asked:,.1f} ms a question, {cost['disk'] / 1e6:,.1f} "
                f"MB on disk, {cost['packages'] / 1e6:,.0f} MB of packages; {cost['empty']:,} empty and "
                f"{cost['short']:,} short lists; {cost['unmapped']:,} of {cost['returned']:,} results are no turn.",
                *(f"{name} warned: {warning}." for warning in self.warnings)]


class TurnMap:
    """The turns of one memory, by their places: id -> text, in order."""

    def __init__(self, turns: Mapping[str, str]) -> None:
        self._by_id = {turn: place for place, turn in enumerate(turns)}
        self._texts = [normalise(text) for text in turns.values()]
        self._by_text: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(self._texts):
            self._by_text[text].append(place)
        self._by_part = cache(self._containing)

    def places(self, returned: Sequence[str]) -> tuple[list[int], int]:
        """Return the turns, by their places, that a list of ids or texts means, and how many of it mean none.

        A turn is meant by its id, else by the same text, of which the first place that was not yet named counts, else
        by a text inside the other. It is named once.
        """
        found: dict[int, None] = {}
        unmapped = 0
        for item in returned:
            same = self._by_text.get(normalise(item), [])
            free = [place for place in same if place not in found]
            meant = [self._by_id[item]] if item in self._by_id else (free or same)[:1] or self._by_part(item)
            found |= dict.fromkeys(meant)
            unmapped += not meant
        return list(found), unmapped

    def _containing(self, item: str) -> list[int]:
        """Return the turns inside a text, in order; if there is none, the first turn that the text is a part of."""
        text = normalise(item)
        part_of = [place for place, turn in enumerate(self._texts) if text in turn and len(text) >= SHORTEST]
        return [place for place, turn in enumerate(self._texts) if turn and turn in text] or part_of[:1]


def normalise(text: str) -> str:
    """Return a text in small letters with single spaces.

    >>> normalise(" Ann:  Hello\\n")
    'ann: hello'
    """
    return " ".join(text.casefold().split())


def memories(tables: Tables) -> Iterator[PeerMemory]:
    """Yield a memory for each corpus and day of questions."""
    units = turn_units(tables["turns"])
    names = unit_names(units, tables["ids"]).join(units.with_columns(turn=pl.col("turns").list.first()), on="unit")
    turns = render_turns(tables["turns"], tables["texts"]).join(tables["sessions"], on=SESSION).join(
        names, on=[*SESSION, "turn"]).sort("corpus", "said_on", "session", "turn", maintain_order=True)
    questions = with_text(tables["questions"], tables["texts"]).join(question_names(tables), on="question")
    time = pl.col("said_on").dt.to_string("iso:strict").alias("time")
    for (corpus, _), asked in questions.group_by("corpus", pl.col("asked_on").dt.date(), maintain_order=True):
        day = pl.lit(asked["asked_on"][0], pl.Datetime("us"))
        rows = turns.filter(pl.col("corpus") == corpus, as_of(asked=day)).select(
            pl.format("turn-{}", pl.int_range(pl.len())).alias("id"), pl.col("search_text").alias("text"), "role",
            "speaker", pl.format("session-{}", "session").alias("session"), time, "document")
        parts = rows.drop("document").partition_by("session", maintain_order=True)
        yield PeerMemory([part.to_dicts() for part in parts], rows["document"].to_list(), asked.select(
            "topic", "text", pl.col("asked_on").dt.to_string("iso:strict")).rows())


def result_file(peer: Peer, described: Mapping[str, Any]) -> Path:
    """Return the file of a result; ``described`` is what decides it beside the peer and its versions."""
    digest = spec_digest({"format": FORMAT, "adapter": peer.source(), "versions": peer.record().get("versions"),
                          **described})
    return home() / "peers" / "results" / f"{peer.folder.name}-{digest[:16]}.json"


def run_peer(peer: Peer, asked: Sequence[PeerMemory], models: PeerModels, kept: Path, chat: bool, k: int,
             limit: float) -> None:
    """Run a peer on all memories and keep its result; raise PeerFailure if it dies, hangs or raises in one of them.

    ``chat`` tells it, by the variable MEMLAB_CHAT, that it may ask a chat model.
    """
    if peer.declared["ENCODER"]:
        models.prepare(turn["text"] for memory in asked for session in memory.sessions for turn in session)
    ranked: dict[str, list[str]] = {}
    figures: Any = Counter(packages=peer.record().get("bytes", 0))  # its update adds, seconds too
    variables = peer.declared["VARIABLES"] | ({"MEMLAB_CHAT": "1"} if chat else {})
    # a short path: that of a socket has a hundred characters
    with TemporaryDirectory(prefix="memlab-peer-", ignore_cleanup_errors=True) as place, models.served(place):
        words = peer.python(), str(peer.folder / "adapter.py"), f"{place}/models"
        with closing(PeerProcess(Path(place), variables, limit, *words)) as process:
            process.ask("load")
            for memory in asked:
                with TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
                    ranked |= _search(process, Path(folder), memory, figures, k)
            warnings = process.warnings()
            figures.update(disk=folder_size(Path(place)))  # what it keeps in its home
    write_json(kept, {"isolated": bool(isolation()), "ranked": ranked, "figures": figures, "warnings": warnings})


def _search(process: PeerProcess, folder: Path, memory: PeerMemory, figures: Any, k: int) -> Iterator[tuple[str, Any]]:
    start = process.processor_seconds()
    process.ask("open", str(folder))
    for session in memory.sessions:
        process.ask("add", session)
    process.ask("ready")
    ready = process.processor_seconds()
    found = process.ask("search", [[text, day] for _, text, day in memory.questions], k)
    figures.update(adding=ready - start, asking=process.processor_seconds() - ready)
    process.ask("close")
    figures.update(disk=folder_size(folder))
    turns = TurnMap({turn["id"]: turn["text"] for session in memory.sessions for turn in session})
    for (topic, *_), returned in zip(memory.questions, found):
        if not all(isinstance(item, str) for item in returned):
            raise PeerFailure(f"search returned {json.dumps(returned)[:80]}, where ids or texts are expected")
        places, unmapped = turns.places(returned)
        figures.update(returned=len(returned), unmapped=unmapped, empty=not returned,
                       short=0 < len(returned) < min(k, len(memory.documents)))
        yield topic, [memory.documents[at] for at in places[:k]]
