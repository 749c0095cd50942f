"""Sessions for a live memory from a folder of ``memlab import``."""

from __future__ import annotations

from pathlib import Path

from memlab.data.custom import Custom
from memlab.data.jsonl import SESSIONS, read
from memlab.errors import Faults, MemlabError
from memlab.live.fields import FIELDS
from memlab.live.sessions import Session, Turn


def sessions_of_folder(folder: Path, timezone: str | None = None) -> list[Session]:
    """Return the sessions of a folder's sessions.jsonl under their names, in the order of its lines.

    Raises Faults with all that is wrong with the folder, and MemlabError for one with the sessions of several people.
    """
    data = Custom(path=folder, timezone=timezone or "UTC")
    content = read(data.folder, data.zone)
    if content.faults:
        raise Faults(content.faults)
    corpora = sorted({line.corpus for line in content.sessions})
    if len(corpora) > 1:
        raise MemlabError(f"{SESSIONS} has {len(corpora)} corpora ({', '.join(corpora):.80}), and a memory holds one",
                          where=str(folder), fix="write a folder for each corpus")
    return [Session(line.said_on, [Turn(turn.role, turn.text, turn.speaker) for turn in line.turns], line.session,
                    **{name: getattr(line, name) for name in FIELDS}, metadata=line.metadata)
            for line in content.sessions]
