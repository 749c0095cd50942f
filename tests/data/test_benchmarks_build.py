"""The builder of tables: rows come out as they went in, however many there are."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from memlab.data import benchmarks
from memlab.data.benchmarks import Builder
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError


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
    monkeypatch.setattr(benchmarks, "ROWS", rows)
    in_pieces = made()
    assert all(in_pieces[name].equals(whole[name]) for name in whole)
    assert whole["turns"].height == 15
    assert whole["texts"].height == 6


def test_a_data_set_of_ones_own_has_the_same_rule_of_times() -> None:
    tokyo = timezone(timedelta(hours=9))
    builder = Builder()
    builder.session(corpus=0, session=0, said_on=datetime(2025, 5, 21, 1, 30, tzinfo=tokyo), name="a")
    builder.session(corpus=0, session=1, said_on=date(2025, 5, 20), name="b")
    with pytest.raises(MemlabError, match=r"asked_on of question q: .* no UTC offset, but .* \(said_on of session a\)"):
        builder.question(question=0, corpus=0, text="Q?", asked_on=datetime(2025, 5, 21), name="q", answer=None,
                         category="all", abstain=False, scored=False)
    assert builder.tables()["sessions"]["said_on"].to_list() == [datetime(2025, 5, 20, 16, 30), datetime(2025, 5, 20)]
