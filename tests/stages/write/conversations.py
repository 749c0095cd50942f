"""Small conversations, written as lists, for the tests of chunkers."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame

DAY = datetime(2023, 5, 20, 9, 30)


def talk(*sessions: list[tuple[str, str] | tuple[str, str, str]]) -> Tables:
    """One corpus; a turn is (role, text) or (role, text, speaker); a session a day."""
    rows = [(s, t, *turn) for s, turns in enumerate(sessions) for t, turn in enumerate(turns)]
    return Tables(
        texts=texts_frame(r[3] for r in rows),
        sessions=frame("sessions", {"corpus": [0] * len(sessions), "session": range(len(sessions)),
                                    "said_on": [DAY + timedelta(days=s) for s in range(len(sessions))]}),
        turns=frame("turns", {"corpus": [0] * len(rows), "session": [r[0] for r in rows],
                              "turn": [r[1] for r in rows], "role": [r[2] for r in rows],
                              "speaker": [r[4] if len(r) > 4 else None for r in rows],
                              "text_id": [text_hash(r[3]) for r in rows]}),
    )


def in_two_corpora(tables: Tables) -> Tables:
    """The same turns in a second corpus too, whose sessions have no dates."""
    again = {name: tables[name].with_columns(pl.lit(1, pl.Int32).alias("corpus")) for name in ("turns", "sessions")}
    undated = again["sessions"].with_columns(pl.lit(None, pl.Datetime("us")).alias("said_on"))
    return tables.updated({"turns": pl.concat([tables["turns"], again["turns"]]),
                           "sessions": pl.concat([tables["sessions"], undated])})


def written(tables: Tables, column: str = "key") -> list[str]:
    """The texts of one column of the memories, in order."""
    texts = dict(tables["texts"].iter_rows())
    return [texts[h] for h in tables["memories"][f"{column}_id"]]
