"""The builder of tables: rows come out as they went in, however many there are."""

from __future__ import annotations

import pytest

from memlab.data import build
from memlab.data.build import Builder
from memlab.tables import Tables


def made() -> Tables:
    builder = Builder()
    for corpus in range(5):
        builder.corpus(corpus=corpus, name=f"c{corpus}")
        builder.session(corpus=corpus, session=0, said_on=None, name="s")
        for turn in range(3):
            builder.turn(corpus=corpus, session=0, turn=turn, role="user", speaker=None if corpus < 4 else "Ann",
                         text=f"{corpus % 2} {turn}", name=f"t{turn}")
    return builder.tables()


@pytest.mark.parametrize("rows", [1, 2, 5, 15])
def test_rows_that_became_frames_early_are_the_same_table(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made()
    monkeypatch.setattr(build, "ROWS", rows)
    in_pieces = made()
    assert all(in_pieces[name].equals(whole[name]) for name in whole)
    assert whole["turns"].height == 15
    assert whole["texts"].height == 6
