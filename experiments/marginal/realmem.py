"""RealMem (Apache-2.0, GitHub AvatarMemory/RealMemBench, dataset/) as sessions and questions for data=custom.

    python experiments/marginal/realmem.py FOLDER OUT        FOLDER has *_dialogues_256k.json, packed with xz or not

A question is a user's turn that asks, of the day before its own session: it sees the sessions of earlier days alone.
Its evidence are the turns whose words the memories it needs were taken from; a memory without one has its session.
"""

from __future__ import annotations

import json
import lzma
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any


def read(path: Path) -> list[dict[str, Any]]:
    """Return the sessions of one person, in the order of their days."""
    packed = path.read_bytes()
    text = lzma.decompress(packed) if path.suffix == ".xz" else packed
    sessions: list[dict[str, Any]] = json.loads(text)["dialogues"]
    return sessions


def day(session: dict[str, Any]) -> date:
    """Return the day of a session."""
    return date.fromisoformat(session["current_time"][:10])


def evidence(needed: list[dict[str, Any]], sessions: dict[str, dict[str, Any]], before: date) -> list[dict[str, Any]]:
    """Return the turns, or sessions, of an earlier day that the needed memories were taken from."""
    found = []
    for memory in needed:
        session = sessions.get(memory["session_uuid"])
        if session is None or day(session) >= before:
            continue
        made = session["extracted_memory"]
        snapshots = {one.get("source_content_snapshot") for one in (made if isinstance(made, list) else [made])
                     if one.get("content") == memory["content"]}
        turns = [i for i, turn in enumerate(session["dialogue_turns"]) if turn["content"] in snapshots]
        found.append({"session": memory["session_uuid"], **({"turn": turns[0]} if turns else {})})
    return [one for i, one in enumerate(found) if one not in found[:i]]


def main(folder: Path, out: Path) -> None:
    """Write OUT/sessions.jsonl and OUT/questions.jsonl."""
    sessions, questions = [], []
    for path in sorted(folder.glob("*_dialogues_256k.json*")):
        person, dialogues = path.name.partition("_dialogues")[0], read(path)
        by_id = {session["session_uuid"]: session for session in dialogues}
        for session in dialogues:
            turns = session["dialogue_turns"]
            said = [{"role": turn["speaker"].lower(), "text": turn["content"]} for turn in turns]
            sessions.append({"corpus": person, "session": session["session_uuid"], "said_on": str(day(session)),
                             "turns": said})
            for turn, reply in zip(turns, turns[1:]):
                if turn["is_query"] and (held := evidence(reply.get("memory_used") or [], by_id, day(session))):
                    questions.append({
                        "question": f"{person}:{turn['query_id']}", "corpus": person, "text": turn["content"],
                        "asked_on": str(day(session) - timedelta(days=1)), "evidence": held})
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in (("sessions", sessions), ("questions", questions)):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
