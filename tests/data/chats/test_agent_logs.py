"""Session logs of agents: a session that goes on in a second log, and a line that was cut off."""

from __future__ import annotations

from pathlib import Path

from tests.chat_exports import SAMPLES, json_lines, read, write


def test_a_resumed_session_repeats_nothing_and_a_cut_off_line_is_counted(tmp_path: Path) -> None:
    (log,) = SAMPLES["claude_code"]["files"].values()
    more = {**log[-1], "type": "user", "uuid": "12", "parentUuid": "11", "timestamp": "2025-06-01T12:00:00.000Z",
            "message": {"role": "user", "content": "And the docs?"}}
    rows, counts, _ = read(write(tmp_path, {"b.jsonl": log, "c.jsonl": json_lines(*log, more) + '{"type": "assis'}))
    assert [[text for *_, text in turns] for *_, turns in rows][1:] == [["And the docs?"]]
    assert counts["logs that end in the middle of a line"] == 1
    assert counts["lines repeated from an earlier log left out"] == 15
